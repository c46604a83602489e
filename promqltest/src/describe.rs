//! Answers as text, for reports: one line for every series, in the notation of scripts.

use std::fmt::Write as _;

use tributary_promql::annotation::Level;
use tributary_promql::quote::quoted;
use tributary_promql::{Answer, Data, Labels};

/// More lines than this are counted, not shown.
const MOST_LINES: usize = 30;

/// More values than this in a line are counted, not shown.
const MOST_VALUES: usize = 60;

/// Whether the bits of values are shown too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Only the numbers.
    Numbers,
    /// The bits as well: two numbers that print the same may differ.
    Bits,
}

/// One line for every series or value.
pub(crate) fn data_lines(data: &Data, detail: Detail) -> Vec<String> {
    match data {
        Data::Scalar { t, value } => vec![format!("scalar {} @[{t}]", number(*value, detail))],
        Data::String { t, bytes } => vec![format!("string {} @[{t}]", quoted(bytes))],
        Data::Vector { t, series } => series
            .iter()
            .map(|(labels, value)| format!("{labels} {} @[{t}]", number(*value, detail)))
            .collect(),
        Data::Matrix(series) => series
            .iter()
            .map(|points| {
                let pairs = points.ts.iter().zip(&points.values);
                let values = pairs.map(|(t, value)| format!("{} @[{t}]", number(*value, detail)));
                series_line(&points.labels, values)
            })
            .collect(),
    }
}

/// The annotations of an answer, one in a line.
pub(crate) fn annotation_lines(answer: &Answer, query: &str) -> Vec<String> {
    [Level::Warning, Level::Info]
        .into_iter()
        .flat_map(|level| answer.annotations.texts(level, query))
        .collect()
}

/// A series and its values, as many as fit.
pub(crate) fn series_line(labels: &Labels, values: impl Iterator<Item = String>) -> String {
    let mut line = labels.to_string();
    let mut left_out = 0_usize;
    for (index, value) in values.enumerate() {
        if index < MOST_VALUES {
            write!(line, " {value}").expect("a string takes everything");
        } else {
            left_out += 1;
        }
    }
    if left_out > 0 {
        write!(line, " and {left_out} more").expect("a string takes everything");
    }
    line
}

/// Lines below each other, as many as fit; `nothing` if there are none.
pub(crate) fn joined(lines: &[String]) -> String {
    if lines.is_empty() {
        return String::from("nothing");
    }
    let shown = lines.len().min(MOST_LINES);
    let mut text = lines[..shown].join("\n");
    if lines.len() > shown {
        write!(text, "\nand {} lines more", lines.len() - shown)
            .expect("a string takes everything");
    }
    text
}

/// A value as scripts write it.
pub(crate) fn number(value: f64, detail: Detail) -> String {
    let text = if value.to_bits() == tributary_promql::STALE_BITS {
        String::from("stale")
    } else if value.is_infinite() {
        String::from(if value > 0.0 { "+Inf" } else { "-Inf" })
    } else {
        format!("{value:?}")
    };
    match detail {
        Detail::Numbers => text,
        Detail::Bits => format!("{text}={:016x}", value.to_bits()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_print_as_scripts_write_them() {
        for (value, text) in [
            (1.5, "1.5"),
            (f64::from_bits(tributary_promql::STALE_BITS), "stale"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Inf"),
        ] {
            assert_eq!(number(value, Detail::Numbers), text);
        }
        assert_eq!(number(1.0, Detail::Bits), "1.0=3ff0000000000000");
    }

    #[test]
    fn long_answers_are_cut_short() {
        let data = Data::Vector { t: 0, series: vec![(Labels::default(), 1.0); 40] };
        let text = joined(&data_lines(&data, Detail::Numbers));
        assert!(text.ends_with("and 10 lines more"), "{text}");
        let line = series_line(&Labels::default(), (0..70).map(|n| n.to_string()));
        assert!(line.ends_with("59 and 10 more"), "{line}");
        assert_eq!(joined(&[]), "nothing");
    }
}
