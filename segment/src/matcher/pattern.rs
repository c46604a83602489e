//! One compiled regular expression, with short cuts for what people write most: a list of names,
//! a prefix, a suffix, something in between.

use std::fmt;

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::hir::{Class, Hir, HirKind, Look, Repetition};
use tributary_promql::pattern::{Pattern as Syntax, PatternError};

/// Largest expression that is taken, in characters and classes with repetitions written out. A list
/// of thousands of host names fits.
const MAX_PATTERN_SIZE: usize = 1 << 20;

/// Largest compiled program: a list of some thousand host names, dots unescaped, fits.
const MAX_PROGRAM_BYTES: usize = 16 << 20;

/// Largest cache of a program's states while it runs.
const MAX_STATES_BYTES: usize = 4 << 20;

/// Expressions that stand for at most this many texts are kept as these texts.
const MAX_VALUES: usize = 16_384;

/// An expression that is wrong or too large.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPattern {
    /// Not a regular expression of Prometheus.
    #[error(transparent)]
    Syntax(#[from] PatternError),
    /// It would take too much memory.
    #[error("regexp of {length} bytes is too large: its program may have {limit} bytes")]
    TooLarge {
        /// Length of the expression.
        length: usize,
        /// The most that is taken.
        limit: usize,
    },
}

/// An expression that matches whole values. The dot matches line ends too, as in Prometheus.
pub struct Pattern {
    text: String,
    shape: Shape,
    prefix: String,
}

enum Shape {
    /// Exactly these texts, sorted.
    Values(Vec<String>),
    /// A text, with at least so many characters before and after it where any may be there.
    Around { before: Option<Gap>, middle: String, after: Option<Gap> },
    /// Anything else.
    Regex(Box<Regex>),
}

/// Room for any characters; some must be there, or none need be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gap {
    Any,
    Some,
}

impl Gap {
    fn fits(self, text: &str) -> bool {
        self == Self::Any || !text.is_empty()
    }
}

impl Pattern {
    /// Checks an expression and compiles it.
    pub fn new(text: &str) -> Result<Self, BadPattern> {
        Self::of(&Syntax::parse(text, MAX_PATTERN_SIZE)?)
    }

    /// Compiles an expression that was checked already.
    pub fn of(syntax: &Syntax) -> Result<Self, BadPattern> {
        let text = syntax.as_str();
        let too_large = |limit| BadPattern::TooLarge { length: text.len(), limit };
        let hir = regex_syntax::ParserBuilder::new()
            .utf8(false)
            .build()
            .parse(syntax.translated())
            .expect("the translation of a checked expression is one of this crate");
        let parts = parts(&hir);
        let shape = match shape(&parts) {
            Some(shape) => shape,
            None => {
                let regex = RegexBuilder::new(syntax.translated())
                    .size_limit(MAX_PROGRAM_BYTES)
                    .dfa_size_limit(MAX_STATES_BYTES)
                    .build()
                    // What can be parsed can be compiled, if only it is small enough.
                    .map_err(|_| too_large(MAX_PROGRAM_BYTES))?;
                Shape::Regex(Box::new(regex))
            }
        };
        let prefix = match parts.first().map(|part| part.kind()) {
            Some(HirKind::Literal(literal)) => text_prefix(&literal.0),
            _ => String::new(),
        };
        Ok(Self { text: text.to_owned(), shape, prefix })
    }

    /// The expression as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// True where the whole value matches.
    pub fn is_match(&self, value: &str) -> bool {
        match &self.shape {
            Shape::Values(values) => values.binary_search_by(|v| v.as_str().cmp(value)).is_ok(),
            Shape::Around { before, middle, after } => around(value, *before, middle, *after),
            Shape::Regex(regex) => regex.is_match(value.as_bytes()),
        }
    }

    /// The only values it matches, sorted, where they are few.
    pub(crate) fn values(&self) -> Option<&[String]> {
        match &self.shape {
            Shape::Values(values) => Some(values),
            Shape::Around { .. } | Shape::Regex(_) => None,
        }
    }

    /// A text that every match begins with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.text)
    }
}

fn around(value: &str, before: Option<Gap>, middle: &str, after: Option<Gap>) -> bool {
    match (before, after) {
        (None, None) => value == middle,
        (None, Some(after)) => value.strip_prefix(middle).is_some_and(|rest| after.fits(rest)),
        (Some(before), None) => value.strip_suffix(middle).is_some_and(|rest| before.fits(rest)),
        (Some(before), Some(after)) => {
            // Where characters must stand before or after, the text is looked for behind the
            // first and in front of the last one.
            let skip = |text: &str, gap| match gap {
                Gap::Any => Some(0),
                Gap::Some => text.chars().next().map(char::len_utf8),
            };
            let last = |text: &str, gap| match gap {
                Gap::Any => Some(0),
                Gap::Some => text.chars().next_back().map(char::len_utf8),
            };
            let inner = skip(value, before).zip(last(value, after));
            let inner = inner.and_then(|(start, end)| value.get(start..value.len() - end));
            inner.is_some_and(|inner| inner.contains(middle))
        }
    }
}

/// The pieces of an expression, one after the other, without groups around the whole and without
/// anchors at its ends, where it is anchored anyway.
fn parts(hir: &Hir) -> Vec<&Hir> {
    let mut parts = match hir.kind() {
        HirKind::Capture(group) => return parts(&group.sub),
        HirKind::Concat(parts) => parts.iter().collect(),
        _ => vec![hir],
    };
    while parts.first().is_some_and(|part| *part.kind() == HirKind::Look(Look::Start)) {
        parts.remove(0);
    }
    while parts.last().is_some_and(|part| *part.kind() == HirKind::Look(Look::End)) {
        parts.pop();
    }
    parts
}

fn shape(parts: &[&Hir]) -> Option<Shape> {
    if let Some(values) =
        parts.iter().try_fold(vec![Vec::new()], |so_far, part| product(&so_far, &expand(part)?))
    {
        let values: Option<Vec<String>> =
            values.into_iter().map(|value| String::from_utf8(value).ok()).collect();
        let mut values = values?;
        values.sort_unstable();
        values.dedup();
        return Some(Shape::Values(values));
    }
    let (before, rest) = match parts.split_first() {
        Some((first, rest)) if gap(first).is_some() => (gap(first), rest),
        _ => (None, parts),
    };
    let (after, middle) = match rest.split_last() {
        Some((last, middle)) if gap(last).is_some() => (gap(last), middle),
        _ => (None, rest),
    };
    let middle = match middle {
        [] => String::new(),
        [one] => match one.kind() {
            HirKind::Literal(literal) => String::from_utf8(literal.0.to_vec()).ok()?,
            _ => return None,
        },
        _ => return None,
    };
    Some(Shape::Around { before, middle, after })
}

/// `.*` or `.+`, however it is written.
fn gap(hir: &Hir) -> Option<Gap> {
    match hir.kind() {
        HirKind::Capture(group) => gap(&group.sub),
        HirKind::Repetition(Repetition { min: min @ (0 | 1), max: None, sub, .. }) => {
            let HirKind::Class(Class::Unicode(class)) = sub.kind() else { return None };
            let ranges = class.ranges();
            let all =
                ranges.len() == 1 && (ranges[0].start(), ranges[0].end()) == (char::MIN, char::MAX);
            all.then_some(if *min == 0 { Gap::Any } else { Gap::Some })
        }
        _ => None,
    }
}

/// All texts that an expression stands for, if they are few.
fn expand(hir: &Hir) -> Option<Vec<Vec<u8>>> {
    match hir.kind() {
        HirKind::Empty => Some(vec![Vec::new()]),
        HirKind::Literal(literal) => Some(vec![literal.0.to_vec()]),
        HirKind::Capture(group) => expand(&group.sub),
        HirKind::Class(Class::Unicode(class)) => {
            let few =
                class.ranges().iter().map(regex_syntax::hir::ClassUnicodeRange::len).sum::<usize>();
            let chars = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            (few <= MAX_VALUES).then(|| chars.map(|c| c.to_string().into_bytes()).collect())
        }
        HirKind::Concat(parts) => {
            parts.iter().try_fold(vec![Vec::new()], |so_far, part| product(&so_far, &expand(part)?))
        }
        HirKind::Alternation(branches) => {
            branches.iter().try_fold(Vec::new(), |mut all, branch| {
                all.extend(expand(branch)?);
                (all.len() <= MAX_VALUES).then_some(all)
            })
        }
        HirKind::Repetition(Repetition { min: 0, max: Some(1), sub, .. }) => {
            let mut values = expand(sub)?;
            values.push(Vec::new());
            Some(values)
        }
        HirKind::Class(Class::Bytes(_)) | HirKind::Look(_) | HirKind::Repetition(_) => None,
    }
}

fn product(left: &[Vec<u8>], right: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    if left.len().checked_mul(right.len())? > MAX_VALUES {
        return None;
    }
    let join = |a: &Vec<u8>, b: &Vec<u8>| [a.as_slice(), b.as_slice()].concat();
    Some(left.iter().flat_map(|a| right.iter().map(move |b| join(a, b))).collect())
}

fn text_prefix(bytes: &[u8]) -> String {
    // A character may be cut where branches share only its first bytes.
    let valid = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    valid.to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shape_of(text: &str) -> &'static str {
        match Pattern::new(text).unwrap().shape {
            Shape::Values(_) => "values",
            Shape::Around { .. } => "around",
            Shape::Regex(_) => "regex",
        }
    }

    #[test]
    fn what_people_write_takes_a_short_cut() {
        for text in
            ["a", "a|b|c", "^(?:a|b)$", "foo(bar|baz)?", "host_0[1-3]", "", "(a|)", "(?i)ab"]
        {
            assert_eq!(shape_of(text), "values", "{text}");
        }
        for text in [".*", ".+", "a.*", "a.+", ".*a", ".+a.*", "^a.*$", "(a.*)", "a(.*)"] {
            assert_eq!(shape_of(text), "around", "{text}");
        }
        for text in ["a.*b", "a*", "(a|b).*", "a.*|b", r"\bx", "(?-s).*", "^^a|b$$"] {
            assert_eq!(shape_of(text), "regex", "{text}");
        }
        let hosts: Vec<String> = (0..5_000).map(|i| format!("host_{i:05}.example.org")).collect();
        let many = Pattern::new(&hosts.join("|").replace('.', r"\.")).unwrap();
        assert_eq!(many.values().map(<[String]>::len), Some(5_000));
        let careless = Pattern::new(&hosts[..200].join("|")).unwrap();
        assert!(hosts[..200].iter().all(|host| careless.is_match(host)));
    }

    #[test]
    fn a_prefix_is_known_where_there_is_one() {
        assert_eq!(Pattern::new("api-.*[0-9]").unwrap().prefix(), "api-");
        assert_eq!(Pattern::new("^api-.*x$").unwrap().prefix(), "api-");
        assert_eq!(Pattern::new("(a|b)x.*y").unwrap().prefix(), "");
        assert_eq!(Pattern::new("a.*|b").unwrap().prefix(), "");
    }

    #[test]
    fn values_are_matched_whole_and_dots_match_line_ends() {
        let yes = |pattern: &str, value: &str| Pattern::new(pattern).unwrap().is_match(value);
        assert!(!yes("a", "ba") && !yes("a", "ab") && !yes("a|b", "ab"));
        assert!(yes("a.b", "a\nb") && yes("a.*", "a\n\n") && yes(".+", "\n"));
        assert!(yes("", "") && !yes("", "a") && yes(".*", "") && !yes(".+", ""));
        assert!(yes("(?i)host", "HoSt") && yes("^a$", "a") && !yes("^^", "a"));
        assert!(yes(r"\d", "7") && !yes(r"\d", "٣") && !yes(r"\w", "é"));
        assert!(yes(".+a.+", "xay") && !yes(".+a.+", "ay") && yes(".+a.+", "aaa"));
        assert!(!yes(".+aa.+", "aaa") && yes(".+aa.+", "éaaé"));
    }

    #[test]
    fn too_large_is_said_with_the_limit() {
        let error = Pattern::new(r"\pL{1000}x*").unwrap_err();
        assert!(matches!(error, BadPattern::TooLarge { .. }), "{error}");
        let error = Pattern::new(&"a".repeat(MAX_PATTERN_SIZE + 1)).unwrap_err();
        assert!(matches!(error, BadPattern::Syntax(PatternError::TooLarge { .. })), "{error}");
        let error = Pattern::new(&"(".repeat(100_000)).unwrap_err();
        assert!(matches!(error, BadPattern::Syntax(PatternError::Syntax { .. })), "{error}");
    }

    proptest! {
        #[test]
        fn short_cuts_agree_with_the_regular_expression(
            pattern in r"[\^]?([ab.]|\.\*|\.\+|\(a\|b?\)|[ab]\?|\[ab\]|\(\?i\)|a\|b|\|){0,5}[$]?",
            value in "[abAB\n]{0,5}",
        ) {
            let plain = Regex::new(&format!("^(?s:{pattern})$"));
            match Pattern::new(&pattern) {
                Ok(p) => {
                    let plain = plain.unwrap().is_match(value.as_bytes());
                    prop_assert_eq!(p.is_match(&value), plain, "{} on {:?}", pattern, value);
                    if p.is_match(&value) {
                        prop_assert!(value.starts_with(p.prefix()));
                        prop_assert!(p.values().is_none_or(|all| all.contains(&value)));
                    }
                }
                Err(error) => prop_assert!(plain.is_err(), "{}", error),
            }
        }

        #[test]
        fn any_text_is_a_pattern_or_an_error(
            text in r"[\\\[\](){}?*+.^$|a-c0-9:&\-~xpQEdwP<>,\u{e9}]{0,20}",
        ) {
            if let Ok(pattern) = Pattern::new(&text) {
                pattern.is_match("");
                pattern.is_match("abc\u{e9}");
            }
        }
    }
}
