//! Leaves as specs of work items, and back.

use tributary_promql::aggregate::{Rank, Reduction};
use tributary_promql::expr::Grouping;
use tributary_promql::leaf::{Leaf, LeafOutput, NameRule, Pushed, PushedOp, TimeSpan};
use tributary_promql::matcher::Condition;
use tributary_promql::pattern::Pattern;
use tributary_promql::window::{RangeFunction, Windows};
use tributary_promql::{EvalLimits, Limits, Matcher};
use tributary_proto::spec::{
    InquirySpec, LeafSpec, MatchOp, NameRule as NameRuleSpec, PushedSpec, SegmentSpec, SpecError,
    Tell as TellSpec, WindowsSpec, WorkSpec,
};

use crate::inquiry::{SeriesInquiry, Tell, inquiry_leaf};

/// Instants and lengths of time beyond this are refused, so that arithmetic can't overflow.
const FARTHEST: i64 = i64::MAX / 4;

/// The most steps of a leaf.
const MOST_STEPS: u64 = 1 << 20;

/// A work item that can be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// What is made of the samples.
    pub leaf: Leaf,
    /// Which samples the segments hold all of.
    pub span: TimeSpan,
    /// Place among work items of the same span.
    pub place: u32,
    /// The segments, oldest first.
    pub segments: Vec<SegmentSpec>,
    /// How much it may take.
    pub limits: EvalLimits,
    /// Set where series are asked for rather than samples.
    pub inquiry: Option<SeriesInquiry>,
}

/// Why a spec can't be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSpec {
    /// Its bytes are no spec.
    #[error(transparent)]
    Bytes(#[from] SpecError),
    /// It names something that this build does not know.
    #[error("work spec with an unknown {what}: {name:?}")]
    Unknown {
        /// What it is.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Something in it makes no sense.
    #[error("work spec with an impossible {0}")]
    Impossible(&'static str),
    /// A regular expression is no such thing.
    #[error("work spec with a bad regular expression: {0}")]
    Pattern(String),
}

/// The spec of a leaf over segments.
pub fn spec_of(work: &Work) -> WorkSpec {
    let leaf = &work.leaf;
    let (function, parameters) = function_spec(leaf.output);
    let matchers = leaf.matchers.iter().map(|matcher| {
        let op = match matcher.condition {
            Condition::Equal(_) => MatchOp::Equal,
            Condition::NotEqual(_) => MatchOp::NotEqual,
            Condition::Matches(_) => MatchOp::Matches,
            Condition::MatchesNot(_) => MatchOp::MatchesNot,
        };
        (matcher.name.clone(), op, matcher.value().to_owned())
    });
    let Windows { at, offset, step, count, range } = leaf.windows;
    WorkSpec {
        leaf: LeafSpec {
            matchers: matchers.collect(),
            windows: WindowsSpec { at, offset, step, count: count as u64, range },
            function: function.to_owned(),
            parameters,
            name: match leaf.name {
                NameRule::Keep => NameRuleSpec::Keep,
                NameRule::DropLater => NameRuleSpec::DropLater,
                NameRule::DropNow => NameRuleSpec::DropNow,
            },
            pushed: leaf.pushed.as_ref().map(pushed_spec),
        },
        from: work.span.from,
        to: work.span.to,
        place: work.place,
        segments: work.segments.clone(),
        limits: [work.limits.max_series, work.limits.max_samples, work.limits.max_values],
        inquiry: work.inquiry.as_ref().map(inquiry_spec),
    }
}

impl Work {
    /// The work that bytes of a spec ask for, within the limits of whoever runs it.
    pub fn of(bytes: &[u8], own: &EvalLimits) -> Result<Self, BadSpec> {
        let spec = WorkSpec::decode(bytes)?;
        let within = |asked: u64, own: u64| if asked == 0 { own } else { asked.min(own) };
        let [series, samples, values] = spec.limits;
        let limits = EvalLimits {
            max_series: within(series, own.max_series),
            max_samples: within(samples, own.max_samples),
            max_values: within(values, own.max_values),
            ..*own
        };
        let work = Self {
            leaf: leaf(spec.leaf)?,
            span: TimeSpan { from: spec.from, to: spec.to },
            place: spec.place,
            segments: spec.segments,
            limits,
            inquiry: spec.inquiry.map(inquiry).transpose()?,
        };
        work.check_inquiry()?;
        Ok(work)
    }

    /// An inquiry has one leaf and one span: what is found would be told wrongly with any other.
    fn check_inquiry(&self) -> Result<(), BadSpec> {
        if self.inquiry.is_none() {
            return Ok(());
        }
        if self.span != TimeSpan::ALL {
            return Err(BadSpec::Impossible("span of an inquiry"));
        }
        if self.leaf != inquiry_leaf(self.leaf.matchers.clone()) {
            return Err(BadSpec::Impossible("leaf of an inquiry"));
        }
        Ok(())
    }
}

fn inquiry_spec(inquiry: &SeriesInquiry) -> InquirySpec {
    let (tell, label) = match &inquiry.tell {
        Tell::Series => (TellSpec::Series, ""),
        Tell::LabelNames => (TellSpec::LabelNames, ""),
        Tell::LabelValues(label) => (TellSpec::LabelValues, label.as_str()),
        Tell::Metrics => (TellSpec::Metrics, ""),
    };
    let SeriesInquiry { from, to, limit, .. } = *inquiry;
    InquirySpec { from, to, tell, label: label.to_owned(), limit }
}

fn inquiry(spec: InquirySpec) -> Result<SeriesInquiry, BadSpec> {
    let InquirySpec { from, to, tell, label, limit } = spec;
    if from > to {
        return Err(BadSpec::Impossible("time of an inquiry"));
    }
    if label.is_empty() == (tell == TellSpec::LabelValues) {
        return Err(BadSpec::Impossible("label of an inquiry"));
    }
    let tell = match tell {
        TellSpec::Series => Tell::Series,
        TellSpec::LabelNames => Tell::LabelNames,
        TellSpec::LabelValues => Tell::LabelValues(label),
        TellSpec::Metrics => Tell::Metrics,
    };
    Ok(SeriesInquiry { from, to, tell, limit })
}

fn leaf(spec: LeafSpec) -> Result<Leaf, BadSpec> {
    let matchers = spec.matchers.into_iter().map(|(name, op, value)| {
        let pattern = |value: &str| {
            Pattern::parse(value, Limits::default().max_pattern_size)
                .map_err(|error| BadSpec::Pattern(error.to_string()))
        };
        let condition = match op {
            MatchOp::Equal => Condition::Equal(value),
            MatchOp::NotEqual => Condition::NotEqual(value),
            MatchOp::Matches => Condition::Matches(pattern(&value)?),
            MatchOp::MatchesNot => Condition::MatchesNot(pattern(&value)?),
        };
        Ok(Matcher { name, condition })
    });
    Ok(Leaf {
        matchers: matchers.collect::<Result<_, BadSpec>>()?,
        windows: windows(spec.windows)?,
        output: function(&spec.function, &spec.parameters)?,
        name: match spec.name {
            NameRuleSpec::Keep => NameRule::Keep,
            NameRuleSpec::DropLater => NameRule::DropLater,
            NameRuleSpec::DropNow => NameRule::DropNow,
        },
        pushed: spec.pushed.map(pushed).transpose()?,
    })
}

fn windows(spec: WindowsSpec) -> Result<Windows, BadSpec> {
    let WindowsSpec { at, offset, step, count, range } = spec;
    let near = |time: i64| (-FARTHEST..=FARTHEST).contains(&time);
    if count > MOST_STEPS {
        return Err(BadSpec::Impossible("number of steps"));
    }
    let count = usize::try_from(count).map_err(|_| BadSpec::Impossible("number of steps"))?;
    let length = i64::try_from(count).ok().and_then(|count| count.checked_mul(step));
    let fits = step > 0
        && range >= 0
        && [at, offset, range].into_iter().all(near)
        && length.is_some_and(near);
    if !fits {
        return Err(BadSpec::Impossible("window"));
    }
    Ok(Windows { at, offset, step, count, range })
}

/// The functions without parameters, by name.
const FUNCTIONS: [(&str, RangeFunction); 24] = {
    use RangeFunction as F;
    [
        ("last", F::Last),
        ("ts_of_newest", F::TsOfNewest),
        ("rate", F::Rate { counter: true, per_second: true }),
        ("increase", F::Rate { counter: true, per_second: false }),
        ("delta", F::Rate { counter: false, per_second: false }),
        ("irate", F::Instant { counter: true }),
        ("idelta", F::Instant { counter: false }),
        ("changes", F::Changes),
        ("resets", F::Resets),
        ("count_over_time", F::Count),
        ("present_over_time", F::Present),
        ("sum_over_time", F::Sum),
        ("avg_over_time", F::Avg),
        ("min_over_time", F::Min),
        ("max_over_time", F::Max),
        ("first_over_time", F::FirstOverTime),
        ("last_over_time", F::LastOverTime),
        ("ts_of_first_over_time", F::TsOfFirst),
        ("ts_of_last_over_time", F::TsOfLast),
        ("ts_of_min_over_time", F::TsOfMin),
        ("ts_of_max_over_time", F::TsOfMax),
        ("stddev_over_time", F::Stddev),
        ("stdvar_over_time", F::Stdvar),
        ("mad_over_time", F::Mad),
    ]
};

fn function_spec(output: LeafOutput) -> (&'static str, Vec<f64>) {
    let LeafOutput::Value(function) = output else { return ("samples", Vec::new()) };
    match function {
        RangeFunction::Quantile(quantile) => ("quantile_over_time", vec![quantile]),
        RangeFunction::Deriv => ("deriv", Vec::new()),
        RangeFunction::PredictLinear(ahead) => ("predict_linear", vec![ahead]),
        RangeFunction::Smoothing { factor, trend } => {
            ("double_exponential_smoothing", vec![factor, trend])
        }
        plain => {
            let known = FUNCTIONS.iter().find(|(_, function)| *function == plain);
            (known.expect("every function has a name").0, Vec::new())
        }
    }
}

fn function(name: &str, parameters: &[f64]) -> Result<LeafOutput, BadSpec> {
    let function = match (name, parameters) {
        ("samples", []) => return Ok(LeafOutput::Samples),
        ("quantile_over_time", [quantile]) => RangeFunction::Quantile(*quantile),
        ("deriv", []) => RangeFunction::Deriv,
        ("predict_linear", [ahead]) => RangeFunction::PredictLinear(*ahead),
        ("double_exponential_smoothing", [factor, trend]) => {
            RangeFunction::Smoothing { factor: *factor, trend: *trend }
        }
        (name, []) => match FUNCTIONS.iter().find(|(known, _)| *known == name) {
            Some((_, function)) => *function,
            None => return Err(unknown("function", name)),
        },
        (name, _) => return Err(unknown("function with these parameters", name)),
    };
    Ok(LeafOutput::Value(function))
}

fn unknown(what: &'static str, name: &str) -> BadSpec {
    let name = name.chars().take(64).collect();
    BadSpec::Unknown { what, name }
}

/// The aggregations that make one series of a group, by name.
const REDUCTIONS: [(&str, Reduction); 8] = [
    ("sum", Reduction::Sum),
    ("avg", Reduction::Avg),
    ("count", Reduction::Count),
    ("group", Reduction::Group),
    ("min", Reduction::Min),
    ("max", Reduction::Max),
    ("stddev", Reduction::Stddev),
    ("stdvar", Reduction::Stdvar),
];

fn pushed_spec(pushed: &Pushed) -> PushedSpec {
    let (without, labels) = match &pushed.grouping {
        Grouping::By(labels) => (false, labels.clone()),
        Grouping::Without(labels) => (true, labels.clone()),
    };
    let (op, value_label, keep) = match &pushed.op {
        PushedOp::Reduce(reduction) => {
            let known = REDUCTIONS.iter().find(|(_, known)| known == reduction);
            (known.expect("every aggregation has a name").0, String::new(), 0)
        }
        PushedOp::CountValues(label) => ("count_values", label.clone(), 0),
        PushedOp::Rank(Rank { count, largest }) => {
            (if *largest { "topk" } else { "bottomk" }, String::new(), *count as u64)
        }
    };
    PushedSpec { op: op.to_owned(), without, labels, value_label, keep }
}

fn pushed(spec: PushedSpec) -> Result<Pushed, BadSpec> {
    let grouping =
        if spec.without { Grouping::Without(spec.labels) } else { Grouping::By(spec.labels) };
    let op = match spec.op.as_str() {
        "count_values" if spec.value_label.is_empty() => {
            return Err(BadSpec::Impossible("label for values"));
        }
        "count_values" => PushedOp::CountValues(spec.value_label),
        "topk" | "bottomk" => {
            let count = usize::try_from(spec.keep).map_err(|_| BadSpec::Impossible("rank"))?;
            PushedOp::Rank(Rank { count, largest: spec.op == "topk" })
        }
        name => match REDUCTIONS.iter().find(|(known, _)| *known == name) {
            Some((_, reduction)) => PushedOp::Reduce(*reduction),
            None => return Err(unknown("aggregation", name)),
        },
    };
    Ok(Pushed { op, grouping })
}
