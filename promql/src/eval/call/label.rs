//! Functions of labels: `label_replace` and `label_join`. They look at every series once, whatever
//! values it has.

use std::borrow::Cow;

use super::settled;
use super::template::Template;
use crate::eval::{Context, EvalError};
use crate::features::Limits;
use crate::frame::{Frame, Row};
use crate::matcher::{METRIC_NAME, compiled};
use crate::pattern::CapturingPattern;

/// `label_replace`, given its destination, replacement, source and pattern.
pub(super) fn replace(
    mut frame: Frame,
    strings: &[Vec<u8>],
    ctx: &Context,
) -> Result<Frame, EvalError> {
    let [destination, replacement, source, pattern] = strings else {
        unreachable!("parsing checks the number of arguments");
    };
    let bad_pattern = || invalid("invalid regular expression in label_replace()", pattern);
    let text = str::from_utf8(pattern).map_err(|_| bad_pattern())?;
    let most = Limits::default().max_pattern_size;
    let pattern = CapturingPattern::parse(text, most).map_err(|_| bad_pattern())?;
    let regex = compiled(pattern.translated()).map_err(|_| bad_pattern())?;
    let destination = label_name(destination, "invalid destination label name in label_replace()")?;
    let template = Template::parse(&text_of(replacement), pattern.group_names());
    // A name that is not UTF-8 is no label's, so its value is empty.
    let source = str::from_utf8(source).unwrap_or_default();
    let mut tally = ctx.limits.tally();
    for row in &mut frame.rows {
        let made = match regex.captures(row.labels.value(source)) {
            Some(found) => {
                check_size(row, destination, template.expanded_len(&found), ctx)?;
                Some(template.expand(&found))
            }
            None => None,
        };
        if let Some(value) = made {
            set(row, destination, &value);
        }
        tally.labels(row.labels.size_bytes())?;
    }
    settled(frame.rows, ctx)
}

/// `label_join`, given its destination, separator and sources.
pub(super) fn join(
    mut frame: Frame,
    strings: &[Vec<u8>],
    ctx: &Context,
) -> Result<Frame, EvalError> {
    let [destination, separator, sources @ ..] = strings else {
        unreachable!("parsing checks the number of arguments");
    };
    let bad_source = "invalid source label name in label_join()";
    let sources: Vec<&str> =
        sources.iter().map(|source| label_name(source, bad_source)).collect::<Result<_, _>>()?;
    let destination = label_name(destination, "invalid destination label name in label_join()")?;
    let separator = text_of(separator);
    let mut tally = ctx.limits.tally();
    for row in &mut frame.rows {
        let values: Vec<&str> = sources.iter().map(|source| row.labels.value(source)).collect();
        let texts: usize = values.iter().map(|value| value.len()).sum();
        let separators = separator.len() * values.len().saturating_sub(1);
        check_size(row, destination, texts + separators, ctx)?;
        let value = values.join(&separator);
        set(row, destination, &value);
        tally.labels(row.labels.size_bytes())?;
    }
    settled(frame.rows, ctx)
}

/// Refuses a value that would make the labels of its series too large, before it is made.
fn check_size(row: &Row, name: &str, value_len: usize, ctx: &Context) -> Result<(), EvalError> {
    let replaced = row.labels.value(name).len();
    ctx.limits.series_label_bytes(row.labels.size_bytes() - replaced + value_len)
}

/// Sets a label. A metric's name that was set has a meaning again.
fn set(row: &mut Row, name: &str, value: &str) {
    row.labels = row.labels.with(name, value);
    row.drop_name &= name != METRIC_NAME;
}

/// Labels are UTF-8; what is not is replaced.
fn text_of(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// The name of a label, which may be any text but the empty one.
fn label_name<'a>(bytes: &'a [u8], problem: &str) -> Result<&'a str, EvalError> {
    let name = str::from_utf8(bytes).ok().filter(|name| !name.is_empty());
    name.ok_or_else(|| invalid(problem, bytes))
}

fn invalid(problem: &str, bytes: &[u8]) -> EvalError {
    EvalError::invalid(format!("{problem}: {}", text_of(bytes)))
}
