//! The names of the metrics in a segment, exact and sorted, and the compact bytes the catalog keeps
//! of them. Most segments of a tenant hold the same metrics, so a list has a digest by which equal
//! lists are kept once.

use std::fmt;
use std::sync::Arc;

use core_workcoord::artifact::Checksum;
use sha2::{Digest, Sha256};

/// First byte of the stored form.
const FORMAT: u8 = 1;

/// Names of one segment, in bytes before compression. More would be no metric names.
const PLAIN_MAX_BYTES: usize = 64 << 20;

/// The end of a name, and their count, as stored.
const END_BYTES: usize = size_of::<u32>();

/// Fast, and within a few percent of what the higher levels reach on names.
const COMPRESSION_LEVEL: i32 = 3;

/// Metric names, sorted, each once. Cheap to clone, and compact: a list has a thousand names.
#[derive(Clone, PartialEq, Eq)]
pub struct MetricNames(Arc<Packed>);

#[derive(PartialEq, Eq)]
struct Packed {
    /// All names, one after the other.
    text: String,
    /// Where each of them ends.
    ends: Vec<u32>,
}

/// Why bytes are no list of names, or names can't be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMetricNames {
    /// A segment has one metric at least.
    #[error("there is no metric")]
    Empty,
    /// The list is longer than any real one.
    #[error("the metric names have more than {PLAIN_MAX_BYTES} bytes")]
    TooLarge,
    /// The bytes are not what `encode` writes.
    #[error("the list of metric names is damaged")]
    Damaged,
}

impl MetricNames {
    /// Sorts the names and keeps each once.
    pub fn new<N: AsRef<str>>(names: impl IntoIterator<Item = N>) -> Result<Self, BadMetricNames> {
        let names: Vec<N> = names.into_iter().collect();
        let mut names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            return Err(BadMetricNames::Empty);
        }
        if names.iter().map(|name| END_BYTES + name.len()).sum::<usize>() > PLAIN_MAX_BYTES {
            return Err(BadMetricNames::TooLarge);
        }
        let mut packed = Packed { text: String::new(), ends: Vec::with_capacity(names.len()) };
        for name in names {
            packed.text.push_str(name);
            let end = u32::try_from(packed.text.len()).expect("the sum of lengths was checked");
            packed.ends.push(end);
        }
        Ok(Self(Arc::new(packed)))
    }

    /// The names in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        let mut start = 0;
        self.0.ends.iter().map(move |end| {
            let end = *end as usize;
            let name = &self.0.text[start..end];
            start = end;
            name
        })
    }

    /// How many there are; never none.
    pub fn count(&self) -> usize {
        self.0.ends.len()
    }

    /// SHA-256 of the list, in hex: the key under which it is kept once.
    pub(crate) fn digest(&self) -> String {
        Checksum(Sha256::digest(self.plain()).into()).to_string()
    }

    /// The stored form.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let packed = zstd::bulk::compress(&self.plain(), COMPRESSION_LEVEL)
            .expect("compressing into memory with a valid level can't fail");
        [&[FORMAT], &packed[..]].concat()
    }

    /// Reads the stored form, and believes nothing that is not checked.
    pub(crate) fn decode(bytes: &[u8], digest: &str) -> Result<Self, BadMetricNames> {
        let Some((&FORMAT, packed)) = bytes.split_first() else {
            return Err(BadMetricNames::Damaged);
        };
        let claimed = zstd::zstd_safe::get_frame_content_size(packed).ok().flatten();
        let len = usize::try_from(claimed.ok_or(BadMetricNames::Damaged)?).unwrap_or(usize::MAX);
        if len > PLAIN_MAX_BYTES {
            return Err(BadMetricNames::TooLarge);
        }
        let plain = zstd::bulk::decompress(packed, len).map_err(|_| BadMetricNames::Damaged)?;
        if Checksum(Sha256::digest(&plain).into()).to_string() != digest {
            return Err(BadMetricNames::Damaged);
        }
        Self::from_plain(&plain).ok_or(BadMetricNames::Damaged)
    }

    /// The number of names, their ends, their text.
    fn plain(&self) -> Vec<u8> {
        let count = u32::try_from(self.count()).expect("the sum of lengths was checked");
        let mut plain = count.to_le_bytes().to_vec();
        plain.extend(self.0.ends.iter().flat_map(|end| end.to_le_bytes()));
        plain.extend_from_slice(self.0.text.as_bytes());
        plain
    }

    fn from_plain(plain: &[u8]) -> Option<Self> {
        let (count, rest) = plain.split_first_chunk::<END_BYTES>()?;
        let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
        let (ends, text) = rest.split_at_checked(count.checked_mul(END_BYTES)?)?;
        let text = str::from_utf8(text).ok()?.to_owned();
        let (ends, []) = ends.as_chunks::<END_BYTES>() else { return None };
        let ends: Vec<u32> = ends.iter().map(|end| u32::from_le_bytes(*end)).collect();
        let fits = ends.is_sorted()
            && ends.last().is_some_and(|end| *end as usize == text.len())
            && ends.iter().all(|end| text.is_char_boundary(*end as usize));
        let names = fits.then(|| Self(Arc::new(Packed { text, ends })))?;
        let ordered = names.iter().is_sorted_by(|one, next| one < next);
        ordered.then_some(names)
    }
}

impl fmt::Debug for MetricNames {
    /// The count alone: a list may have a thousand.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} metrics", self.count())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_list_is_sorted_and_has_each_name_once() {
        let names = MetricNames::new(["b", "a", "", "b"]).unwrap();
        assert_eq!(names.iter().collect::<Vec<_>>(), ["", "a", "b"]);
        assert_eq!(names.count(), 3);
        assert_eq!(MetricNames::new([""; 0]), Err(BadMetricNames::Empty));
    }

    #[test]
    fn a_small_file_can_not_ask_for_much_memory() {
        let bomb = zstd::bulk::compress(&vec![0; PLAIN_MAX_BYTES + 1], 3).unwrap();
        let bytes = [&[FORMAT], &bomb[..]].concat();
        assert_eq!(MetricNames::decode(&bytes, ""), Err(BadMetricNames::TooLarge));
    }

    proptest! {
        #[test]
        fn what_is_stored_reads_back(names in prop::collection::vec(".*", 1..40)) {
            let names = MetricNames::new(names).unwrap();
            prop_assert_eq!(MetricNames::decode(&names.encode(), &names.digest()), Ok(names));
        }

        #[test]
        fn a_damaged_list_is_refused(
            names in prop::collection::vec("[a-z_]{1,30}", 1..40),
            place in any::<prop::sample::Index>(),
            flip in 1_u8..,
        ) {
            let names = MetricNames::new(names).unwrap();
            let (digest, mut bytes) = (names.digest(), names.encode());
            let place = place.index(bytes.len());
            bytes[place] ^= flip;
            // A flipped bit may be one that zstd does not use; then the names are the same ones.
            if let Ok(read) = MetricNames::decode(&bytes, &digest) {
                prop_assert_eq!(read, names);
            }
            prop_assert!(MetricNames::decode(&bytes[..place], &digest).is_err());
        }

        #[test]
        fn whatever_the_bytes_are_a_list_is_sorted(plain in prop::collection::vec(0_u8..4, 0..60)) {
            if let Some(names) = MetricNames::from_plain(&plain) {
                prop_assert!(names.iter().is_sorted());
                prop_assert_eq!(names.plain(), plain);
            }
        }
    }
}
