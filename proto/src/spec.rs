//! What a work item asks for, in plain types: bytes in, a spec or an error out, and back. What the
//! names of functions and aggregations mean is left to whoever runs leaves.

use bytes::Bytes;
use prost::Message;

use crate::limits::SPEC_MAX_BYTES;
use crate::wire::work as wire;

/// The newest version of specs this build reads. It writes the oldest that says what a spec says: 2
/// for inquiries, which an older worker would take for leaves, and 1 for all else.
pub const SCHEMA_VERSION: u32 = 2;

/// The version of specs without an inquiry.
const PLAIN_VERSION: u32 = 1;

/// A leaf over segments.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkSpec {
    /// What is made of the samples.
    pub leaf: LeafSpec,
    /// From which instant on the segments hold all samples, in milliseconds.
    pub from: i64,
    /// Up to, not including, which.
    pub to: i64,
    /// Place among work items of the same span.
    pub place: u32,
    /// The segments, oldest first.
    pub segments: Vec<SegmentSpec>,
    /// The most series, samples and values the item may take; zero for the worker's own limits.
    pub limits: [u64; 3],
    /// Set where series are asked for rather than samples.
    pub inquiry: Option<InquirySpec>,
}

/// Which series there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InquirySpec {
    /// From which instant on, in milliseconds.
    pub from: i64,
    /// Up to and including which.
    pub to: i64,
    /// What is told of them.
    pub tell: Tell,
    /// The label whose values are told.
    pub label: String,
    /// No more than so many things; zero for all.
    pub limit: u64,
}

/// What is told of the series that are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tell {
    /// All their labels.
    Series,
    /// The names of their labels.
    LabelNames,
    /// The values of one label.
    LabelValues,
    /// Their metrics, with kind, unit and help.
    Metrics,
}

/// The two files of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentSpec {
    /// Path and size of the series index.
    pub series: (String, u64),
    /// Path and size of the samples.
    pub samples: (String, u64),
}

/// A leaf.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafSpec {
    /// Label, operator and value of every matcher.
    pub matchers: Vec<(String, MatchOp, String)>,
    /// The windows: first instant, offset, step, count and range.
    pub windows: WindowsSpec,
    /// The name of the function of a window.
    pub function: String,
    /// Its parameters.
    pub parameters: Vec<f64>,
    /// What happens to the metric's name.
    pub name: NameRule,
    /// The aggregation that is begun.
    pub pushed: Option<PushedSpec>,
}

/// How a matcher compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchOp {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `=~`
    Matches,
    /// `!~`
    MatchesNot,
}

/// Windows of evenly spaced steps, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowsSpec {
    /// The first step's instant.
    pub at: i64,
    /// How far before its step a window ends.
    pub offset: i64,
    /// From one step to the next.
    pub step: i64,
    /// How many steps.
    pub count: u64,
    /// The length of a window.
    pub range: i64,
}

/// What happens to the metric's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    /// It stays.
    Keep,
    /// It goes at the end of the query.
    DropLater,
    /// It goes at once.
    DropNow,
}

/// An aggregation that is begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedSpec {
    /// Its name.
    pub op: String,
    /// The labels are those that do not count.
    pub without: bool,
    /// Labels by which series come together.
    pub labels: Vec<String>,
    /// The label that `count_values` writes to.
    pub value_label: String,
    /// How many `topk` and `bottomk` keep.
    pub keep: u64,
}

/// Why bytes are no spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// They are no such message.
    #[error("malformed work spec: {0}")]
    Malformed(String),
    /// They are of a version this build does not know.
    #[error("work spec of version {0}; this build knows version {SCHEMA_VERSION}")]
    Version(u32),
    /// Something is missing or out of range.
    #[error("work spec without a valid {0}")]
    Invalid(&'static str),
    /// They are too many.
    #[error("work spec of {0} bytes; the limit is {SPEC_MAX_BYTES}")]
    TooLong(usize),
}

impl WorkSpec {
    /// The spec as bytes: equal specs have equal bytes.
    pub fn encode(&self) -> Bytes {
        let LeafSpec { matchers, windows, function, parameters, name, pushed } = &self.leaf;
        let matchers = matchers.iter().map(|(label, op, value)| wire::Matcher {
            label: label.clone(),
            op: match op {
                MatchOp::Equal => wire::MatchOp::Equal,
                MatchOp::NotEqual => wire::MatchOp::NotEqual,
                MatchOp::Matches => wire::MatchOp::Matches,
                MatchOp::MatchesNot => wire::MatchOp::MatchesNot,
            }
            .into(),
            value: value.clone(),
        });
        let WindowsSpec { at, offset, step, count, range } = *windows;
        let leaf = wire::Leaf {
            matchers: matchers.collect(),
            windows: Some(wire::Windows { at, offset, step, count, range }),
            function: function.clone(),
            parameters: parameters.clone(),
            name: match name {
                NameRule::Keep => wire::NameRule::Keep,
                NameRule::DropLater => wire::NameRule::DropLater,
                NameRule::DropNow => wire::NameRule::DropNow,
            }
            .into(),
            pushed: pushed.as_ref().map(|pushed| wire::Pushed {
                op: pushed.op.clone(),
                without: pushed.without,
                labels: pushed.labels.clone(),
                value_label: pushed.value_label.clone(),
                keep: pushed.keep,
            }),
        };
        let segments = self.segments.iter().map(|segment| wire::Segment {
            series_path: segment.series.0.clone(),
            samples_path: segment.samples.0.clone(),
            series_bytes: segment.series.1,
            samples_bytes: segment.samples.1,
        });
        let [series, samples, values] = self.limits;
        let inquiry = self.inquiry.as_ref().map(|inquiry| wire::Inquiry {
            from: inquiry.from,
            to: inquiry.to,
            tell: match inquiry.tell {
                Tell::Series => wire::Tell::Series,
                Tell::LabelNames => wire::Tell::LabelNames,
                Tell::LabelValues => wire::Tell::LabelValues,
                Tell::Metrics => wire::Tell::Metrics,
            }
            .into(),
            label: inquiry.label.clone(),
            limit: inquiry.limit,
        });
        let spec = wire::WorkSpec {
            schema_version: if inquiry.is_some() { SCHEMA_VERSION } else { PLAIN_VERSION },
            leaf: Some(leaf),
            span: Some(wire::Span { from: self.from, to: self.to }),
            place: self.place,
            segments: segments.collect(),
            limits: Some(wire::Limits { series, samples, values }),
            inquiry,
        };
        spec.encode_to_vec().into()
    }

    /// The spec that bytes are.
    pub fn decode(bytes: &[u8]) -> Result<Self, SpecError> {
        if bytes.len() > SPEC_MAX_BYTES {
            return Err(SpecError::TooLong(bytes.len()));
        }
        let spec = wire::WorkSpec::decode(bytes)
            .map_err(|error| SpecError::Malformed(error.to_string()))?;
        if !(PLAIN_VERSION..=SCHEMA_VERSION).contains(&spec.schema_version) {
            return Err(SpecError::Version(spec.schema_version));
        }
        if spec.inquiry.is_some() != (spec.schema_version == SCHEMA_VERSION) {
            return Err(SpecError::Invalid("inquiry for its version"));
        }
        let span = spec.span.ok_or(SpecError::Invalid("span"))?;
        if span.from >= span.to {
            return Err(SpecError::Invalid("span"));
        }
        let limits = spec.limits.unwrap_or_default();
        let segments = spec.segments.into_iter().map(|segment| SegmentSpec {
            series: (segment.series_path, segment.series_bytes),
            samples: (segment.samples_path, segment.samples_bytes),
        });
        Ok(Self {
            leaf: leaf(spec.leaf.ok_or(SpecError::Invalid("leaf"))?)?,
            from: span.from,
            to: span.to,
            place: spec.place,
            segments: segments.collect(),
            limits: [limits.series, limits.samples, limits.values],
            inquiry: spec.inquiry.map(inquiry).transpose()?,
        })
    }
}

fn inquiry(inquiry: wire::Inquiry) -> Result<InquirySpec, SpecError> {
    let tell = match wire::Tell::try_from(inquiry.tell) {
        Ok(wire::Tell::Series) => Tell::Series,
        Ok(wire::Tell::LabelNames) => Tell::LabelNames,
        Ok(wire::Tell::LabelValues) => Tell::LabelValues,
        Ok(wire::Tell::Metrics) => Tell::Metrics,
        _ => return Err(SpecError::Invalid("thing to tell")),
    };
    let wire::Inquiry { from, to, label, limit, .. } = inquiry;
    Ok(InquirySpec { from, to, tell, label, limit })
}

fn leaf(leaf: wire::Leaf) -> Result<LeafSpec, SpecError> {
    let matchers = leaf.matchers.into_iter().map(|matcher| {
        let op = match wire::MatchOp::try_from(matcher.op) {
            Ok(wire::MatchOp::Equal) => MatchOp::Equal,
            Ok(wire::MatchOp::NotEqual) => MatchOp::NotEqual,
            Ok(wire::MatchOp::Matches) => MatchOp::Matches,
            Ok(wire::MatchOp::MatchesNot) => MatchOp::MatchesNot,
            _ => return Err(SpecError::Invalid("operator of a matcher")),
        };
        Ok((matcher.label, op, matcher.value))
    });
    let matchers = matchers.collect::<Result<Vec<_>, _>>()?;
    let name = match wire::NameRule::try_from(leaf.name) {
        Ok(wire::NameRule::Keep) => NameRule::Keep,
        Ok(wire::NameRule::DropLater) => NameRule::DropLater,
        Ok(wire::NameRule::DropNow) => NameRule::DropNow,
        _ => return Err(SpecError::Invalid("rule for the metric's name")),
    };
    let wire::Windows { at, offset, step, count, range } =
        leaf.windows.ok_or(SpecError::Invalid("window"))?;
    let pushed = leaf.pushed.map(|pushed| PushedSpec {
        op: pushed.op,
        without: pushed.without,
        labels: pushed.labels,
        value_label: pushed.value_label,
        keep: pushed.keep,
    });
    let windows = WindowsSpec { at, offset, step, count, range };
    let (function, parameters) = (leaf.function, leaf.parameters);
    Ok(LeafSpec { matchers, windows, function, parameters, name, pushed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> WorkSpec {
        WorkSpec {
            leaf: LeafSpec {
                matchers: vec![("__name__".into(), MatchOp::Equal, "up".into())],
                windows: WindowsSpec { at: 1, offset: -2, step: 3, count: 4, range: 5 },
                function: "rate".into(),
                parameters: vec![0.5],
                name: NameRule::DropNow,
                pushed: Some(PushedSpec {
                    op: "topk".into(),
                    without: true,
                    labels: vec!["host".into()],
                    value_label: String::new(),
                    keep: 3,
                }),
            },
            from: i64::MIN,
            to: i64::MAX,
            place: 2,
            segments: vec![SegmentSpec { series: ("a".into(), 1), samples: ("b".into(), 2) }],
            limits: [1, 2, 3],
            inquiry: None,
        }
    }

    fn inquiry() -> WorkSpec {
        let tell = Tell::LabelValues;
        let inquiry = InquirySpec { from: -5, to: 7, tell, label: "host".into(), limit: 9 };
        WorkSpec { inquiry: Some(inquiry), ..spec() }
    }

    #[test]
    fn a_spec_comes_back_as_it_went() {
        for spec in [spec(), inquiry()] {
            assert_eq!(WorkSpec::decode(&spec.encode()), Ok(spec));
        }
    }

    #[test]
    fn a_worker_that_knows_no_inquiries_refuses_them_rather_than_run_a_leaf() {
        let sent = wire::WorkSpec::decode(inquiry().encode()).unwrap();
        assert_eq!(sent.schema_version, 2);
        let sent = wire::WorkSpec::decode(spec().encode()).unwrap();
        assert_eq!(sent.schema_version, 1, "what it does know stays as it was");
    }

    #[test]
    fn what_is_no_spec_is_refused_and_says_why() {
        assert_eq!(WorkSpec::decode(&[]), Err(SpecError::Version(0)));
        assert!(matches!(WorkSpec::decode(&[7; 9]), Err(SpecError::Malformed(_))));
        let newer = wire::WorkSpec { schema_version: 3, ..wire::WorkSpec::default() };
        assert_eq!(WorkSpec::decode(&newer.encode_to_vec()), Err(SpecError::Version(3)));
        for schema_version in [1, 2] {
            let inquiry = (schema_version == 1).then(wire::Inquiry::default);
            let mixed = wire::WorkSpec { schema_version, inquiry, ..wire::WorkSpec::default() };
            let refused = WorkSpec::decode(&mixed.encode_to_vec());
            assert_eq!(refused, Err(SpecError::Invalid("inquiry for its version")));
        }
        let mut told = wire::WorkSpec::decode(inquiry().encode()).unwrap();
        told.inquiry.as_mut().unwrap().tell = 99;
        let refused = WorkSpec::decode(&told.encode_to_vec());
        assert_eq!(refused, Err(SpecError::Invalid("thing to tell")));
        let empty = wire::WorkSpec { schema_version: 1, ..wire::WorkSpec::default() };
        assert_eq!(WorkSpec::decode(&empty.encode_to_vec()), Err(SpecError::Invalid("span")));
        let long = vec![0; SPEC_MAX_BYTES + 1];
        assert_eq!(WorkSpec::decode(&long), Err(SpecError::TooLong(long.len())));
    }
}
