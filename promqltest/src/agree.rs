//! Whether two ways gave the same answer, to the last bit.

use tributary_promql::Answer;

use crate::check::Mismatch;
use crate::describe::{Detail, annotation_lines, data_lines, joined};

/// What a way made of a query.
pub(crate) type Outcome = Result<Answer, String>;

/// The difference between the first way's outcome and another's, if there is one.
pub(crate) fn difference(first: &Outcome, other: &Outcome, query: &str) -> Option<Mismatch> {
    let (one, two) = match (first, other) {
        (Err(one), Err(two)) if one == two => return None,
        (Ok(one), Ok(two)) => (one, two),
        _ => return Some(Mismatch { expected: told(first), got: told(other) }),
    };
    if !one.data.same_bits(&two.data) {
        let (expected, got) =
            (data_lines(&one.data, Detail::Bits), data_lines(&two.data, Detail::Bits));
        return Some(only_different(&expected, &got));
    }
    let (expected, got) = (annotation_lines(one, query), annotation_lines(two, query));
    (expected != got).then(|| only_different(&expected, &got))
}

/// Leaves out the lines that both have, unless only their order differs.
fn only_different(expected: &[String], got: &[String]) -> Mismatch {
    let beyond = |lines: &[String], others: &[String]| -> Vec<String> {
        lines.iter().filter(|line| !others.contains(line)).cloned().collect()
    };
    let (more, less) = (beyond(expected, got), beyond(got, expected));
    if more.is_empty() && less.is_empty() {
        return Mismatch { expected: joined(expected), got: joined(got) };
    }
    Mismatch { expected: joined(&more), got: joined(&less) }
}

fn told(outcome: &Outcome) -> String {
    match outcome {
        Ok(answer) => joined(&data_lines(&answer.data, Detail::Numbers)),
        Err(error) => format!("error: {error}"),
    }
}
