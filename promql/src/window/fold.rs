//! The state of a window that is not complete yet: samples in, other states in, a value out.

use super::rate::{self, Counter};
use super::{ABSENT, RangeFunction, Samples, Window, is_absent, raw};
use crate::exact::ExactSum;

/// What a function must remember of the samples it has seen.
#[derive(Clone, Debug)]
pub enum Fold {
    /// The last sample, a staleness mark included.
    Last(Option<(i64, f64)>),
    /// First and last samples and the resets between.
    Counter(Counter),
    /// The last two samples.
    LastTwo(Option<(i64, f64)>, Option<(i64, f64)>),
    /// First and last value and how often something happened between.
    Steps {
        /// First and last value.
        ends: Option<(f64, f64)>,
        /// How often the value changed, or fell.
        count: u64,
    },
    /// How many samples.
    Count(u64),
    /// An exact sum and how many samples.
    Sum(ExactSum, u64),
    /// The sample that stands out.
    Best(Option<(i64, f64)>),
    /// The samples themselves.
    Raw(Vec<i64>, Vec<f64>),
}

impl Fold {
    /// The empty state of a function.
    pub fn new(function: RangeFunction) -> Self {
        use RangeFunction as F;
        match function {
            F::Last | F::TsOfNewest => Self::Last(None),
            F::Rate { .. } => Self::Counter(Counter::default()),
            F::Instant { .. } => Self::LastTwo(None, None),
            F::Changes | F::Resets => Self::Steps { ends: None, count: 0 },
            F::Count | F::Present => Self::Count(0),
            F::Sum | F::Avg => Self::Sum(ExactSum::default(), 0),
            F::Min
            | F::Max
            | F::FirstOverTime
            | F::LastOverTime
            | F::TsOfFirst
            | F::TsOfLast
            | F::TsOfMin
            | F::TsOfMax => Self::Best(None),
            F::Stddev
            | F::Stdvar
            | F::Quantile(_)
            | F::Mad
            | F::Deriv
            | F::PredictLinear(_)
            | F::Smoothing { .. } => Self::Raw(Vec::new(), Vec::new()),
        }
    }

    /// Takes in samples that come after all others so far. Staleness marks count for nobody but
    /// the instant selector.
    pub fn extend(&mut self, function: RangeFunction, samples: Samples<'_>) {
        for (t, v) in samples.iter() {
            if !is_absent(v) || function.sees_marks() {
                self.push(function, t, v);
            }
        }
    }

    fn push(&mut self, function: RangeFunction, t: i64, v: f64) {
        match self {
            Self::Last(last) => *last = Some((t, v)),
            Self::Counter(counter) => counter.push(t, v),
            Self::LastTwo(older, newer) => {
                *older = newer.replace((t, v));
            }
            Self::Steps { ends, count } => {
                let first = ends.map_or(v, |(first, last)| {
                    *count += u64::from(happened(function, last, v));
                    first
                });
                *ends = Some((first, v));
            }
            Self::Count(count) => *count += 1,
            Self::Sum(sum, count) => {
                sum.add(v);
                *count += 1;
            }
            Self::Best(best) => {
                if best.is_none_or(|(_, held)| replaces(function, held, v)) {
                    *best = Some((t, v));
                }
            }
            Self::Raw(ts, values) => {
                ts.push(t);
                values.push(v);
            }
        }
    }

    /// Takes in the state of the span that follows.
    pub fn merge(&mut self, function: RangeFunction, later: &Self) {
        match (self, later) {
            (Self::Last(mine), Self::Last(theirs)) => *mine = theirs.or(*mine),
            (Self::Counter(mine), Self::Counter(theirs)) => mine.merge(theirs),
            (Self::LastTwo(older, newer), Self::LastTwo(their_older, their_newer)) => {
                for sample in [their_older, their_newer].into_iter().flatten() {
                    *older = newer.replace(*sample);
                }
            }
            (
                Self::Steps { ends, count },
                Self::Steps { ends: Some((their_first, their_last)), count: their_count },
            ) => {
                *count += their_count;
                let first = ends.map_or(*their_first, |(first, last)| {
                    *count += u64::from(happened(function, last, *their_first));
                    first
                });
                *ends = Some((first, *their_last));
            }
            (Self::Count(mine), Self::Count(theirs)) => *mine += theirs,
            (Self::Sum(mine, count), Self::Sum(theirs, their_count)) => {
                mine.merge(theirs);
                *count += their_count;
            }
            (Self::Best(mine), Self::Best(Some(theirs))) => {
                if mine.is_none_or(|(_, held)| replaces(function, held, theirs.1)) {
                    *mine = Some(*theirs);
                }
            }
            (Self::Raw(ts, values), Self::Raw(their_ts, their_values)) => {
                ts.extend_from_slice(their_ts);
                values.extend_from_slice(their_values);
            }
            (Self::Steps { .. }, Self::Steps { ends: None, .. })
            | (Self::Best(_), Self::Best(None)) => {}
            (mine, theirs) => {
                unreachable!("states of one function are of one kind: {mine:?}, {theirs:?}")
            }
        }
    }

    /// What the window came to; [`ABSENT`] for nothing.
    pub fn finish(&self, function: RangeFunction, window: Window) -> f64 {
        use RangeFunction as F;
        match (self, function) {
            (Self::Last(Some((t, v))), F::TsOfNewest) if !is_absent(*v) => seconds(*t),
            (Self::Last(last), _) => last.map_or(ABSENT, |(_, v)| v),
            (Self::Counter(state), F::Rate { counter, per_second }) => {
                rate::extrapolate(state, counter, per_second, window)
            }
            (Self::LastTwo(Some(older), Some(newer)), F::Instant { counter }) => {
                rate::instant(*older, *newer, counter)
            }
            (Self::LastTwo(..), _) => ABSENT,
            (Self::Steps { ends, count }, _) => match ends {
                Some(_) => to_f64(*count),
                None => ABSENT,
            },
            (Self::Count(0), _) | (Self::Sum(_, 0), _) | (Self::Best(None), _) => ABSENT,
            (Self::Count(count), F::Count) => to_f64(*count),
            (Self::Count(_), _) => 1.0,
            (Self::Sum(sum, count), F::Avg) => sum.mean(*count),
            (Self::Sum(sum, _), _) => sum.value(),
            (Self::Best(Some((t, _))), F::TsOfFirst | F::TsOfLast | F::TsOfMin | F::TsOfMax) => {
                seconds(*t)
            }
            (Self::Best(Some((_, v))), _) => *v,
            (Self::Raw(ts, values), _) => {
                raw::value(function, Samples { ts, values }, window, &mut Vec::new())
            }
            (state, function) => unreachable!("{function:?} has no state like {state:?}"),
        }
    }
}

/// Whether a step from one value to the next is one that is counted.
#[inline]
pub(super) fn happened(function: RangeFunction, from: f64, to: f64) -> bool {
    match function {
        RangeFunction::Resets => to < from,
        _ => from != to && !(from.is_nan() && to.is_nan()),
    }
}

/// Whether a later sample takes the place of the one held.
#[inline]
pub(super) fn replaces(function: RangeFunction, held: f64, later: f64) -> bool {
    use RangeFunction as F;
    match function {
        F::Min => later < held || held.is_nan(),
        F::Max => later > held || held.is_nan(),
        // Of equal extremes the last one's time is asked for.
        F::TsOfMin => later <= held || held.is_nan(),
        F::TsOfMax => later >= held || held.is_nan(),
        F::LastOverTime | F::TsOfLast => true,
        _ => false,
    }
}

#[inline]
pub(super) fn to_f64(count: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of samples stay far below 2^53")]
    let count = count as f64;
    count
}

/// Milliseconds as seconds.
#[inline]
pub(super) fn seconds(ms: i64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "instants stay below 2^53 ms")]
    let ms = ms as f64;
    ms / 1000.0
}
