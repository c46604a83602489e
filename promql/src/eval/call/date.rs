//! Functions of dates: what the calendar says of Unix seconds.

use super::{Arguments, unnamed};
use crate::calendar::Date;
use crate::eval::{Context, EvalError, Value};
use crate::frame::Frame;
use crate::labels::Labels;

/// What is asked of a date.
pub(super) type Part = fn(&Date) -> f64;

/// The part that the function of that name asks for.
#[expect(clippy::cast_precision_loss, reason = "years and days stay far below 2^53")]
pub(super) fn part(name: &str) -> Option<Part> {
    Some(match name {
        "day_of_month" => |date| date.day as f64,
        "day_of_week" => |date| date.day_of_week as f64,
        "day_of_year" => |date| date.day_of_year as f64,
        "days_in_month" => |date| date.days_in_month() as f64,
        "hour" => |date| date.hour as f64,
        "minute" => |date| date.minute as f64,
        "month" => |date| date.month as f64,
        "year" => |date| date.year as f64,
        _ => return None,
    })
}

/// The part of the dates that the argument gives, or of the steps' own.
pub(super) fn call(part: Part, args: Vec<Value>, ctx: &Context) -> Result<Frame, EvalError> {
    if args.is_empty() {
        let values = ctx.steps.iter().map(|at| part(&Date::of_unix_seconds(at / 1000)));
        return Ok(Frame::of_one(Labels::default(), values.collect()));
    }
    let dates = Arguments::new(args).frame();
    unnamed(dates.map(|value| part(&Date::of_unix_seconds(whole_seconds(value)))), ctx)
}

/// Without the fraction. What whole numbers of 64 bits cannot hold, NaN too, is the least of them,
/// as on the processors Prometheus mostly runs on.
fn whole_seconds(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is to go")]
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_lose_their_fraction_towards_zero_and_odd_ones_are_the_least() {
        assert_eq!(whole_seconds(1.9), 1);
        assert_eq!(whole_seconds(-1.9), -1);
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e19, -1e19] {
            assert_eq!(whole_seconds(value), i64::MIN);
        }
    }
}
