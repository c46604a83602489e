//! Order of the series of an instant query: by value or by labels. Range queries are in the order
//! of their labels whatever is asked for, and say so.

use std::cmp::Ordering;

use crate::eval::{CallSite, Context};
use crate::frame::{Frame, Row};

/// From the least or from the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

impl Direction {
    fn of(self, order: Ordering) -> Ordering {
        match self {
            Self::Up => order,
            Self::Down => order.reverse(),
        }
    }
}

/// `sort` and `sort_desc`. NaN comes last either way.
pub(super) fn by_value(
    mut frame: Frame,
    direction: Direction,
    site: &CallSite,
    ctx: &mut Context,
) -> Frame {
    if !ctx.is_instant {
        warn_of_range(site, ctx);
        return frame;
    }
    let value = |row: &Row| row.values[0];
    frame.rows.sort_by(|one, other| {
        let (one, other) = (value(one), value(other));
        match one.partial_cmp(&other) {
            Some(order) => direction.of(order),
            None => one.is_nan().cmp(&other.is_nan()),
        }
    });
    frame
}

/// `sort_by_label` and `sort_by_label_desc`: by the values of these labels, then by all labels.
pub(super) fn by_label(
    mut frame: Frame,
    names: &[Vec<u8>],
    direction: Direction,
    site: &CallSite,
    ctx: &mut Context,
) -> Frame {
    if !ctx.is_instant {
        warn_of_range(site, ctx);
        return frame;
    }
    // A name that is not UTF-8 is no label's.
    let names: Vec<&str> = names.iter().map(|name| str::from_utf8(name).unwrap_or("")).collect();
    frame.rows.sort_by(|one, other| {
        let (one, other) = (&one.labels, &other.labels);
        let orders = names.iter().map(|name| naturally(one.value(name), other.value(name)));
        let order = orders.fold(Ordering::Equal, Ordering::then);
        direction.of(order.then_with(|| one.cmp(other)))
    });
    frame
}

fn warn_of_range(site: &CallSite, ctx: &mut Context) {
    let message =
        "sort is ineffective for range queries since results are always ordered by labels";
    ctx.annotations.warn(site.span, message);
}

/// Compares texts run by run: digits by the number they spell, anything else as it is.
///
/// Prometheus' order has no answer for a text without runs and for numbers beyond 64 bits, and two
/// for `1` and `01`. Here the empty text comes first, numbers have any length, and texts that are
/// equal otherwise are compared as they are.
fn naturally(one: &str, other: &str) -> Ordering {
    let (mut ones, mut others) = (Runs(one), Runs(other));
    loop {
        let order = match (ones.next(), others.next()) {
            (None, None) => return one.cmp(other),
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(one), Some(other)) if is_number(one) && is_number(other) => {
                let (one, other) = (one.trim_start_matches('0'), other.trim_start_matches('0'));
                one.len().cmp(&other.len()).then_with(|| one.cmp(other))
            }
            (Some(one), Some(other)) => one.cmp(other),
        };
        if order.is_ne() {
            return order;
        }
    }
}

fn is_number(run: &str) -> bool {
    run.starts_with(|char: char| char.is_ascii_digit())
}

/// The longest runs of digits and of anything else.
struct Runs<'a>(&'a str);

impl<'a> Iterator for Runs<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let digits = self.0.chars().next()?.is_ascii_digit();
        let end = self.0.find(|char: char| char.is_ascii_digit() != digits);
        let (run, rest) = self.0.split_at(end.unwrap_or(self.0.len()));
        self.0 = rest;
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_inside_texts_are_compared_as_numbers() {
        let mut texts =
            ["4m1000", "4m600", "4m5", "1.111.3", "1.11.3", "1.2.3", "", "a", "a-1", "a1"];
        texts.sort_by(|one, other| naturally(one, other));
        let sorted = ["", "1.2.3", "1.11.3", "1.111.3", "4m5", "4m600", "4m1000", "a", "a1", "a-1"];
        assert_eq!(texts, sorted);
        let huge = "123456789012345678901234567890";
        assert_eq!(naturally("9", huge), Ordering::Less);
        assert_eq!(naturally("01", "1"), Ordering::Less);
    }

    proptest! {
        #[test]
        fn natural_order_is_an_order(texts in prop::collection::vec("[a01-]{0,4}", 3)) {
            let [a, b, c] = [&texts[0], &texts[1], &texts[2]];
            prop_assert_eq!(naturally(a, b), naturally(b, a).reverse());
            prop_assert_eq!(naturally(a, b) == Ordering::Equal, a == b);
            if naturally(a, b).is_le() && naturally(b, c).is_le() {
                prop_assert!(naturally(a, c).is_le());
            }
        }
    }
}
