//! States of windows as bytes.

use super::fold::Fold;
use super::rate::Counter;
use super::{RangeFunction, is_absent};
use crate::bytes::{BadState, Reader, put_f64, put_option, put_sample, put_u64};
use crate::exact::ExactSum;

impl Fold {
    /// The state as bytes, after those that are there.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Last(last) => put_option(out, *last, put_sample),
            Self::Counter(counter) => counter.write(out),
            Self::LastTwo(older, newer) => {
                put_option(out, *older, put_sample);
                put_option(out, *newer, put_sample);
            }
            Self::Steps { ends, count } => {
                put_option(out, *ends, |out, (first, last)| {
                    put_f64(out, first);
                    put_f64(out, last);
                });
                put_u64(out, *count);
            }
            Self::Count(count) => put_u64(out, *count),
            Self::Sum(sum, count) => {
                sum.write(out);
                put_u64(out, *count);
            }
            Self::Best(best) => put_option(out, *best, put_sample),
            Self::Raw(ts, values) => {
                put_u64(out, ts.len() as u64);
                ts.iter().zip(values).for_each(|(t, v)| put_sample(out, (*t, *v)));
            }
        }
    }

    /// The state of a function from its bytes.
    pub fn read(function: RangeFunction, bytes: &[u8]) -> Result<Self, BadState> {
        let mut input = Reader::new(bytes);
        let state = match Self::new(function) {
            Self::Last(_) => Self::Last(input.option(Reader::sample)?),
            Self::Counter(_) => Self::Counter(Counter::read(&mut input)?),
            Self::LastTwo(..) => {
                let older = input.option(Reader::sample)?;
                Self::LastTwo(older, input.option(Reader::sample)?)
            }
            Self::Steps { .. } => {
                let ends = input.option(|input| Ok((input.f64()?, input.f64()?)))?;
                Self::Steps { ends, count: bounded(input.u64()?)? }
            }
            Self::Count(_) => Self::Count(bounded(input.u64()?)?),
            Self::Sum(..) => {
                let sum = ExactSum::read(&mut input)?;
                Self::Sum(sum, bounded(input.u64()?)?)
            }
            Self::Best(_) => Self::Best(input.option(Reader::sample)?),
            Self::Raw(..) => {
                let length = input.length(16)?;
                let samples = (0..length).map(|_| input.sample());
                let (ts, values) = samples.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
                Self::Raw(ts, values)
            }
        };
        input.end()?;
        Ok(state)
    }
}

impl Counter {
    fn write(&self, out: &mut Vec<u8>) {
        put_u64(out, self.count);
        put_sample(out, self.first);
        put_sample(out, self.last);
        put_u64(out, self.resets.len() as u64);
        self.resets.iter().for_each(|before| put_f64(out, *before));
    }

    fn read(input: &mut Reader<'_>) -> Result<Self, BadState> {
        let count = bounded(input.u64()?)?;
        let (first, last) = (input.sample()?, input.sample()?);
        let length = input.length(8)?;
        let resets = (0..length).map(|_| input.f64()).collect::<Result<Vec<_>, _>>()?;
        if is_absent(first.1) || is_absent(last.1) {
            return Err(BadState);
        }
        Ok(Self { count, first, last, resets })
    }
}

/// A count that can be added to others without fear.
fn bounded(count: u64) -> Result<u64, BadState> {
    if count < 1 << 48 { Ok(count) } else { Err(BadState) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Samples;

    #[test]
    fn states_with_times_that_no_window_has_are_refused() {
        let rate = RangeFunction::Rate { counter: true, per_second: true };
        let mut fold = Fold::new(rate);
        fold.extend(rate, Samples { ts: &[1, 2], values: &[1.0, 2.0] });
        let mut bytes = Vec::new();
        fold.write(&mut bytes);
        assert!(Fold::read(rate, &bytes).is_ok());
        for (field, t) in [(8, i64::MIN), (8, i64::MAX), (24, i64::MIN), (24, i64::MAX)] {
            let mut bad = bytes.clone();
            bad[field..field + 8].copy_from_slice(&t.to_le_bytes());
            assert_eq!(Fold::read(rate, &bad).unwrap_err(), BadState, "{t} at {field}");
        }
    }
}
