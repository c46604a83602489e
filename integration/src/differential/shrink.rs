//! Makes a question that shows a difference as small as it gets, then its data: the least that
//! still shows one. What counts as showing it is asked of others.

use tributary_promqltest::DataSet;

use super::data::only;
use super::grammar::Question;
use super::rewrite;

/// Questions tried at most for one difference.
const MAX_TRIES: usize = 600;

/// The smallest question found that still `shows` the difference.
pub fn shrink<E>(
    question: Question,
    mut shows: impl FnMut(&Question) -> Result<bool, E>,
) -> Result<Question, E> {
    let mut smallest = question;
    let mut tries = 0;
    'smaller: loop {
        for candidate in rewrite::smaller(&smallest) {
            tries += 1;
            if tries > MAX_TRIES {
                return Ok(smallest);
            }
            if shows(&candidate)? {
                smallest = candidate;
                continue 'smaller;
            }
        }
        return Ok(smallest);
    }
}

/// The fewest series found with which the difference still `shows`.
pub fn shrink_data<E>(
    data: DataSet,
    mut shows: impl FnMut(&DataSet) -> Result<bool, E>,
) -> Result<DataSet, E> {
    let mut smallest = data;
    // Ever smaller shares are left out, down to single series.
    let mut share = smallest.series().len().div_ceil(2);
    while share > 0 {
        let mut from = 0;
        while from < smallest.series().len() {
            let keys: Vec<_> = smallest.series().keys().cloned().collect();
            let left_out = &keys[from..keys.len().min(from + share)];
            let candidate = only(&smallest, |labels| !left_out.contains(labels));
            if shows(&candidate)? {
                smallest = candidate;
            } else {
                from += share;
            }
        }
        share /= 2;
    }
    Ok(smallest)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tributary_promql::Labels;

    use super::*;
    use crate::differential::data::data_set;
    use crate::differential::grammar::{LOOKBACK_MS, When};

    #[test]
    fn a_difference_in_one_function_is_found_in_a_large_expression() {
        let text = "sum by (a) (rate(m{x=\"1\"}[5m] offset 1m)) + (n or floor(-deriv(m[5m])) * 2)";
        let when = When::Range { start: 0, end: 100, step: 10 };
        let question = Question {
            text: text.to_owned(),
            when,
            lookback: LOOKBACK_MS,
            delayed_name_removal: true,
        };
        let shows = |question: &Question| {
            let early = question.when.instants().contains(&30);
            Ok::<_, Infallible>(question.text.contains("deriv(") && early)
        };
        let Ok(smallest) = shrink(question, shows);
        assert_eq!(smallest.text, "deriv(m[5m])");
        assert_eq!(smallest.when, When::Instant(30));
        assert!(!smallest.delayed_name_removal);
    }

    #[test]
    fn only_the_series_that_matter_are_left() {
        let labels = |n: usize| Labels::new([("a", n.to_string())]).unwrap();
        let data = data_set((0..23).map(|n| (labels(n), vec![(0, 1.0)])));
        let needed = [labels(17), labels(3)];
        let mut tries = 0;
        let shows = |data: &DataSet| {
            tries += 1;
            Ok::<_, Infallible>(needed.iter().all(|labels| data.series().contains_key(labels)))
        };
        let Ok(smallest) = shrink_data(data, shows);
        assert_eq!(smallest.series().keys().cloned().collect::<Vec<_>>(), needed);
        assert!(tries < 60, "{tries}");
    }
}
