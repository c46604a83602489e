//! The labels of one series: sorted name and value pairs in one compact, cheaply cloned text.
//! Knows their order and their hashes; which series have them is the index's business.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use xxhash_rust::xxh3::xxh3_64;
use xxhash_rust::xxh64::xxh64;

use crate::matcher::{METRIC_NAME, is_plain_label_name};
use crate::quote::quoted;

/// Ends every name and every value. No UTF-8 text contains this byte.
const END: u8 = 0xff;

/// Sorted label pairs, the metric's name among them as [`METRIC_NAME`].
///
/// Equal labels have equal bytes, so comparing and hashing never walk the pairs. A label with an
/// empty value is the same as none and is left out.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Labels(Arc<[u8]>);

/// A label name that stands twice in one set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("label name {name:?} is not unique")]
pub struct DuplicateLabel {
    /// The name.
    pub name: String,
}

impl Default for Labels {
    fn default() -> Self {
        Self(Arc::from([]))
    }
}

impl Labels {
    /// Makes labels of pairs in any order. Pairs without a value are left out.
    pub fn new<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Result<Self, DuplicateLabel>
    where
        N: AsRef<str>,
        V: AsRef<str>,
    {
        let mut pairs: Vec<(N, V)> = pairs.into_iter().collect();
        pairs.sort_by(|a, b| a.0.as_ref().cmp(b.0.as_ref()));
        let twice = pairs.windows(2).find(|two| two[0].0.as_ref() == two[1].0.as_ref());
        if let Some(two) = twice {
            return Err(DuplicateLabel { name: two[0].0.as_ref().to_owned() });
        }
        Ok(Self::from_sorted(pairs.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))))
    }

    /// Makes labels of pairs that are already sorted by name, each name once.
    pub fn from_sorted<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut bytes = Vec::with_capacity(128);
        for (name, value) in pairs.filter(|(_, value)| !value.is_empty()) {
            bytes.extend_from_slice(name.as_bytes());
            bytes.push(END);
            bytes.extend_from_slice(value.as_bytes());
            bytes.push(END);
        }
        Self(bytes.into())
    }

    /// The pairs, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut parts = self.0.split(|byte| *byte == END).map(|part| {
            str::from_utf8(part).expect("labels are made of strings and split between them")
        });
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// The value of a label, or nothing where the series does not have it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|pair| pair.0 == name).map(|pair| pair.1)
    }

    /// The value of a label; empty where the series does not have it.
    pub fn value(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// The name of the metric, empty where there is none.
    pub fn metric(&self) -> &str {
        self.value(METRIC_NAME)
    }

    /// The pairs without the metric's name.
    pub fn without_metric(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().filter(|(name, _)| *name != METRIC_NAME)
    }

    /// How many bytes all pairs take.
    pub fn size_bytes(&self) -> usize {
        self.0.len()
    }

    /// True where there is no label at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The labels whose names are wanted.
    pub fn filtered(&self, wanted: impl Fn(&str) -> bool) -> Self {
        if self.iter().all(|(name, _)| wanted(name)) {
            return self.clone();
        }
        Self::from_sorted(self.iter().filter(|(name, _)| wanted(name)))
    }

    /// These labels and no others.
    pub fn only<N: AsRef<str>>(&self, names: &[N]) -> Self {
        self.filtered(|name| names.iter().any(|wanted| wanted.as_ref() == name))
    }

    /// All labels but these and the metric's name.
    pub fn without<N: AsRef<str>>(&self, names: &[N]) -> Self {
        self.filtered(|name| {
            name != METRIC_NAME && !names.iter().any(|unwanted| unwanted.as_ref() == name)
        })
    }

    /// All labels but the metric's name.
    pub fn without_name(&self) -> Self {
        self.filtered(|name| name != METRIC_NAME)
    }

    /// All labels but those that describe the metric: its name, type and unit.
    pub fn without_metadata(&self) -> Self {
        self.filtered(|name| !matches!(name, METRIC_NAME | "__type__" | "__unit__"))
    }

    /// With a label set to a value, or taken away if the value is empty.
    pub fn with(&self, name: &str, value: &str) -> Self {
        let before = self.iter().filter(|pair| pair.0 < name);
        let after = self.iter().filter(|pair| pair.0 > name);
        Self::from_sorted(before.chain(std::iter::once((name, value))).chain(after))
    }

    /// The packed text: names and values in turn, sorted by name, each ended by the byte 0xff.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Labels of a packed text, if it is one: whole pairs of UTF-8, sorted, none empty.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let text = match bytes {
            [] => return Some(Self::default()),
            [text @ .., END] => text,
            _ => return None,
        };
        let parts: Vec<&[u8]> = text.split(|byte| *byte == END).collect();
        let (pairs, rest) = parts.as_chunks::<2>();
        let fits = rest.is_empty()
            && pairs.iter().flatten().all(|part| !part.is_empty() && str::from_utf8(part).is_ok())
            && pairs.is_sorted_by(|one, other| one[0] < other[0]);
        fits.then(|| Self(bytes.into()))
    }

    /// A hash that stays the same on every machine and in every release.
    pub fn hash64(&self) -> u64 {
        xxh3_64(&self.0)
    }

    /// The hash by which Prometheus draws series for `limit_ratio`.
    pub fn prometheus_hash(&self) -> u64 {
        let mut bytes = Vec::with_capacity(self.0.len());
        for text in self.iter().flat_map(|(name, value)| [name, value]) {
            // Lengths of up to 254 bytes take one byte, others four.
            match u8::try_from(text.len()) {
                Ok(length) if length < u8::MAX => bytes.push(length),
                _ => {
                    bytes.push(u8::MAX);
                    bytes.extend_from_slice(&text.len().to_le_bytes()[..3]);
                }
            }
            bytes.extend_from_slice(text.as_bytes());
        }
        xxh64(&bytes, 0)
    }

    /// The shard of a series with these labels, out of `shards` (at least one).
    pub fn shard(&self, shards: u32) -> u32 {
        let shard = self.hash64() % u64::from(shards.max(1));
        u32::try_from(shard).expect("the remainder is less than a u32")
    }

    /// The order of series in a segment: by metric, then by the other labels.
    pub fn series_cmp(&self, other: &Self) -> Ordering {
        self.metric()
            .cmp(other.metric())
            .then_with(|| self.without_metric().cmp(other.without_metric()))
    }

    /// All labels in braces, the metric's name as one of them, as error messages have it:
    /// `{__name__="up", job="api"}`.
    pub fn braced(&self) -> String {
        let pairs: Vec<String> = self.iter().map(pair_text).collect();
        format!("{{{}}}", pairs.join(", "))
    }
}

fn pair_text((name, value): (&str, &str)) -> String {
    let value = quoted(value.as_bytes());
    if is_plain_label_name(name) {
        format!("{name}={value}")
    } else {
        format!("{}={value}", quoted(name.as_bytes()))
    }
}

impl Ord for Labels {
    /// As Prometheus sorts labels: pair by pair, name before value, fewer pairs first.
    fn cmp(&self, other: &Self) -> Ordering {
        if Arc::ptr_eq(&self.0, &other.0) {
            return Ordering::Equal;
        }
        let same = self.0.iter().zip(other.0.iter()).position(|(a, b)| a != b);
        let Some(at) = same else { return self.0.len().cmp(&other.0.len()) };
        // A text that ends here is a prefix of the other, so its end sorts before any character.
        match (self.0[at], other.0[at]) {
            (END, _) => Ordering::Less,
            (_, END) => Ordering::Greater,
            (a, b) => a.cmp(&b),
        }
    }
}

impl PartialOrd for Labels {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Labels {
    /// As PromQL writes it: `metric{name="value", …}`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metric = self.metric();
        let pairs: Vec<String> = self.without_metric().map(pair_text).collect();
        f.write_str(metric)?;
        if metric.is_empty() || !pairs.is_empty() {
            write!(f, "{{{}}}", pairs.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels::new(pairs.iter().copied()).unwrap()
    }

    #[test]
    fn pairs_come_back_sorted_and_without_empty_values() {
        let l = labels(&[("zone", "b"), ("__name__", "up"), ("gone", ""), ("job", "api")]);
        assert_eq!(
            l.iter().collect::<Vec<_>>(),
            [("__name__", "up"), ("job", "api"), ("zone", "b")]
        );
        assert_eq!(l.metric(), "up");
        assert_eq!(l.get("gone"), None);
        assert_eq!(l.to_string(), r#"up{job="api", zone="b"}"#);
        assert_eq!(l.braced(), r#"{__name__="up", job="api", zone="b"}"#);
        assert!(labels(&[("a", "")]).is_empty());
        assert_eq!(labels(&[("__name__", "up")]).to_string(), "up");
        assert_eq!(Labels::default().to_string(), "{}");
        assert_eq!(labels(&[("a.b", "é\n")]).to_string(), r#"{"a.b"="é\n"}"#);
    }

    #[test]
    fn labels_are_chosen_set_and_taken_away() {
        let l = labels(&[("__name__", "m"), ("a", "1"), ("b", "3")]);
        assert_eq!(l.without_name().to_string(), r#"{a="1", b="3"}"#);
        assert_eq!(l.only(&["a"]).to_string(), r#"{a="1"}"#);
        assert_eq!(l.without(&["a"]).to_string(), r#"{b="3"}"#);
        assert_eq!(l.with("a", "").with("z", "9").with("b", "4").to_string(), r#"m{b="4", z="9"}"#);
    }

    #[test]
    fn packed_texts_are_labels_only_if_they_are_whole_and_sorted() {
        for bytes in [
            &b"a\xff"[..],
            b"a\xff1",
            b"b\xff1\xffa\xff2\xff",
            b"a\xff\xff",
            b"\xff",
            b"a\xff\xc3\xff",
        ] {
            assert_eq!(Labels::from_bytes(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn a_name_stands_only_once() {
        let twice = Labels::new([("a", "1"), ("b", "2"), ("a", "1")]);
        assert_eq!(twice.unwrap_err().name, "a");
    }

    #[test]
    fn hash_and_shard_never_change() {
        let l = labels(&[("__name__", "up"), ("job", "api")]);
        assert_eq!(l.hash64(), xxh3_64(b"__name__\xffup\xffjob\xffapi\xff"));
        assert_eq!(u64::from(l.shard(7)), l.hash64() % 7);
        assert_eq!(l.shard(0), 0);
    }

    proptest! {
        #[test]
        fn order_is_that_of_the_pairs(
            a in prop::collection::btree_map("[a-cA-C_]{1,3}", "[a-b\u{7f}\u{e9}]{1,2}", 0..4),
            b in prop::collection::btree_map("[a-cA-C_]{1,3}", "[a-b\u{7f}\u{e9}]{1,2}", 0..4),
        ) {
            let (la, lb) = (Labels::new(&a).unwrap(), Labels::new(&b).unwrap());
            prop_assert_eq!(la.cmp(&lb), a.iter().cmp(b.iter()));
            prop_assert_eq!(la == lb, a == b);
            prop_assert_eq!(Labels::from_bytes(la.as_bytes()), Some(la.clone()));
            let back: Vec<_> = la.iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
            prop_assert_eq!(back, a.into_iter().collect::<Vec<_>>());
        }
    }
}
