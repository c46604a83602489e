//! A difference as a `.test` script: the samples, the question, and what Prometheus answered, so
//! that it can be kept as a test of its own.

use std::fmt::Write as _;

use tributary_promql::duration::PromDuration;
use tributary_promql::{Data, Labels, STALE_BITS};
use tributary_promqltest::DataSet;

use super::data;
use super::grammar::{LOOKBACK_MS, Question, When};
use super::outcome::{Outcome, Told};
use super::rewrite;

/// Writes the script. Times are moved by whole days so that they begin near zero.
pub fn script(samples: &DataSet, question: &Question, peer: &Outcome) -> String {
    let by = -data::first_day(samples);
    let (samples, moved) = (data::moved(samples, by), rewrite::moved(question, by));
    let mut text = String::new();
    if question.lookback != LOOKBACK_MS {
        let _ = writeln!(text, "# lookback {}", time(question.lookback));
    }
    if !question.delayed_name_removal {
        text.push_str("# without delayed name removal\n");
    }
    load(&mut text, &samples);
    let when = match moved.when {
        When::Instant(t) => format!("instant at {}", time(t)),
        When::Range { start, end, step } => {
            format!("range from {} to {} step {}", time(start), time(end), time(step))
        }
    };
    let _ = writeln!(text, "eval {when} {}", moved.text.replace('\n', " "));
    match peer {
        Outcome::Failed(error) => {
            let _ = writeln!(text, "  expect fail msg: {}", error.replace('\n', " "));
        }
        Outcome::Answered(told) => expected(&mut text, told, question.when),
    }
    text
}

fn time(ms: i64) -> String {
    PromDuration::from_millis(ms).to_string()
}

fn load(text: &mut String, samples: &DataSet) {
    if samples.series().is_empty() {
        return;
    }
    // All times are multiples of the interval, so that the script has every sample at its time.
    let times = samples.series().values().flat_map(|samples| samples.ts.iter().copied());
    let interval = times.fold(0, greatest_common_divisor).max(1);
    let _ = writeln!(text, "load {}", time(interval));
    for (labels, samples) in samples.series() {
        let mut items = Vec::new();
        let mut next = 0;
        for (t, value) in samples.iter() {
            let at = t / interval;
            match at - next {
                0 => {}
                1 => items.push("_".to_owned()),
                gap => items.push(format!("_x{gap}")),
            }
            items.push(number(value));
            next = at + 1;
        }
        let _ = writeln!(text, "  {} {}", series(labels), items.join(" "));
    }
    text.push('\n');
}

fn expected(text: &mut String, told: &Told, when: When) {
    for (kind, notes) in [("warn", &told.warnings), ("info", &told.infos)] {
        for note in notes {
            let _ = writeln!(text, "  expect {kind} msg: {note}");
        }
    }
    match &told.data {
        Data::Scalar { value, .. } => {
            let _ = writeln!(text, "  {}", number(*value));
        }
        Data::String { bytes, .. } => {
            let _ = writeln!(text, "  expect string {:?}", String::from_utf8_lossy(bytes));
        }
        Data::Vector { series: all, .. } => {
            for (labels, value) in all {
                let _ = writeln!(text, "  {} {}", series(labels), number(*value));
            }
        }
        Data::Matrix(all) => {
            for points in all {
                let value_at = |t: i64| {
                    let at = points.ts.iter().position(|at| *at == t)?;
                    Some(number(points.values[at]))
                };
                let times = when.instants();
                let values: Vec<String> = match when {
                    // The samples of a window as they are; a script cannot say their times here.
                    When::Instant(_) => points.values.iter().copied().map(number).collect(),
                    When::Range { .. } => {
                        times.iter().map(|t| value_at(*t).unwrap_or("_".to_owned())).collect()
                    }
                };
                let _ = writeln!(text, "  {} {}", series(&points.labels), values.join(" "));
            }
        }
    }
}

/// A series as scripts name it.
fn series(labels: &Labels) -> String {
    let plain = |char: char| char == '_' || char == ':' || char.is_ascii_alphanumeric();
    if labels.metric().chars().all(plain) { labels.to_string() } else { labels.braced() }
}

fn number(value: f64) -> String {
    if value.to_bits() == STALE_BITS {
        "stale".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "Inf".to_owned() } else { "-Inf".to_owned() }
    } else if value != 0.0 && !(1e-4..1e17).contains(&value.abs()) {
        format!("{value:e}")
    } else {
        value.to_string()
    }
}

fn greatest_common_divisor(one: i64, other: i64) -> i64 {
    if other == 0 { one.abs() } else { greatest_common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tributary_promql::parse_series;

    use super::*;
    use crate::differential::data::DAY_MS;

    #[test]
    fn a_difference_becomes_a_script_that_reads_back() {
        let labels = Labels::new([("__name__", "m"), ("a", "b")]).unwrap();
        let stale = f64::from_bits(STALE_BITS);
        let points = vec![(DAY_MS + 500, 1.5), (DAY_MS + 1000, stale), (DAY_MS + 3000, f64::MAX)];
        let samples = data::data_set([(labels.clone(), points)]);
        let question = Question {
            text: "m @ 86403".to_owned(),
            when: When::Instant(DAY_MS + 61_000),
            lookback: LOOKBACK_MS,
            delayed_name_removal: true,
        };
        let data = Data::Vector { t: DAY_MS + 61_000, series: vec![(labels, f64::INFINITY)] };
        let told =
            Told { data, warnings: BTreeSet::from(["w (1:1)".to_owned()]), infos: BTreeSet::new() };
        let text = script(&samples, &question, &Outcome::Answered(told));
        assert_eq!(
            text,
            "load 500ms\n  m{a=\"b\"} _ 1.5 stale _x3 1.7976931348623157e308\n\n\
             eval instant at 1m1s m @ 3.000\n  expect warn msg: w (1:1)\n  m{a=\"b\"} Inf\n"
        );
        let line = text.lines().nth(1).unwrap();
        let series = parse_series(line.trim(), &rewrite::options()).unwrap();
        assert_eq!(series.values().count(), 7);
    }
}
