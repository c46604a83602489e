//! What is asked: queries of all classes over the tenants' data, drawn from a seed, each to be asked
//! in one way by clients, and always with the same answer.

use crate::data::{BEGIN_MS, SPAN_MS, TENANTS};
use crate::dice::Dice;

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Its number.
    pub number: usize,
    /// Whose data.
    pub tenant: &'static str,
    /// What kind of query it is.
    pub class: &'static str,
    /// The path and how it is asked there.
    pub how: How,
}

/// How something is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum How {
    /// As a stream of events: the JSON body.
    Stream(String),
    /// Of Prometheus' API: the path, with its parameters.
    Prometheus(String),
}

/// Classes of expressions: from a look-up to everything at once.
const EXPRESSIONS: [(&str, &str); 22] = [
    ("selector", "memory_bytes"),
    ("selector", "requests_total{job=\"web\",code=~\"5..\"}"),
    ("rate", "rate(requests_total[5m])"),
    ("rate", "irate(requests_total{instance=\"host-1\"}[1m])"),
    ("rate", "increase(requests_total[37m])"),
    ("rate", "resets(requests_total[1h])"),
    ("over_time", "avg_over_time(memory_bytes[10m])"),
    ("over_time", "sum_over_time(memory_bytes[45m])"),
    ("over_time", "quantile_over_time(0.9, memory_bytes[20m])"),
    ("over_time", "stddev_over_time(memory_bytes[15m])"),
    ("over_time", "deriv(memory_bytes[25m])"),
    ("aggregate", "sum(rate(requests_total[5m]))"),
    ("aggregate", "sum by (job) (rate(requests_total[10m]))"),
    ("aggregate", "avg without (instance) (increase(requests_total[15m]))"),
    ("aggregate", "stddev(memory_bytes)"),
    ("aggregate", "topk(2, rate(requests_total[5m]))"),
    ("aggregate", "count_values(\"value\", round(memory_bytes / 1e8))"),
    ("binary", "sum(rate(requests_total{code=\"500\"}[5m])) / sum(rate(requests_total[5m]))"),
    ("binary", "rate(requests_total[5m]) > on(instance) group_left memory_bytes / 1e9"),
    ("histogram", "histogram_quantile(0.9, sum by (le) (rate(latency_seconds_bucket[5m])))"),
    ("subquery", "max_over_time(sum(rate(requests_total[5m]))[30m:1m])"),
    ("offset", "memory_bytes - memory_bytes offset 30m"),
];

/// Draws so many questions; every class is among them where there are enough.
pub fn draw(dice: &mut Dice, count: usize) -> Vec<Question> {
    (0..count)
        .map(|number| {
            let tenant = TENANTS[number % TENANTS.len()];
            // Inquiries about series are work too.
            if number % 12 == 11 {
                let (class, how) = inquiry(dice);
                return Question { number, tenant, class, how };
            }
            let (class, text) = EXPRESSIONS[(number * 5 + dice.below(2)) % EXPRESSIONS.len()];
            Question { number, tenant, class, how: query(dice, text) }
        })
        .collect()
}

fn query(dice: &mut Dice, text: &str) -> How {
    let span = SPAN_MS.unsigned_abs();
    let minute = 60_000;
    let length = *dice.pick(&[30 * minute, 60 * minute, 120 * minute, span - 10 * minute]);
    let begin = BEGIN_MS.unsigned_abs() + dice.within(0..(span - length) / minute + 1) * minute;
    let end = begin + length;
    let step = *dice.pick(&[15, 60, 300]);
    match dice.below(8) {
        0 => {
            let at = end as f64 / 1e3;
            How::Prometheus(format!("/api/v1/query?query={}&time={at}", escape(text)))
        }
        1..=3 => {
            let (begin, end) = (begin as f64 / 1e3, end as f64 / 1e3);
            let query = escape(text);
            How::Prometheus(format!(
                "/api/v1/query_range?query={query}&start={begin}&end={end}&step={step}"
            ))
        }
        way => {
            let (s, e, step) = (begin.to_string(), end.to_string(), format!("{step}s"));
            let mut body = serde_json::json!({"q": text, "s": s, "e": e, "step": step});
            if way == 7 {
                body["summary"] = true.into();
            }
            How::Stream(body.to_string())
        }
    }
}

fn inquiry(dice: &mut Dice) -> (&'static str, How) {
    let (begin, end) = (BEGIN_MS / 1_000, (BEGIN_MS + SPAN_MS) / 1_000);
    let path = match dice.below(3) {
        0 => format!("/api/v1/series?match[]=requests_total&start={begin}&end={end}"),
        1 => format!("/api/v1/labels?start={begin}&end={end}"),
        _ => format!("/api/v1/label/instance/values?start={begin}&end={end}"),
    };
    ("inquiry", How::Prometheus(path))
}

/// A text as part of a URL.
fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let mut out = String::new();
    for byte in text.bytes() {
        if plain(byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

impl Question {
    /// What is asked, for people.
    pub fn text(&self) -> String {
        let Self { number, tenant, class, how } = self;
        match how {
            How::Stream(body) => format!("#{number} {class} of {tenant}: stream {body}"),
            How::Prometheus(path) => format!("#{number} {class} of {tenant}: GET {path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn questions_are_of_all_classes_tenants_and_ways() {
        let questions = draw(&mut Dice::of(3), 48);
        let classes: BTreeSet<_> = questions.iter().map(|question| question.class).collect();
        assert_eq!(classes.len(), 9, "{classes:?}");
        let tenants: BTreeSet<_> = questions.iter().map(|question| question.tenant).collect();
        assert_eq!(tenants.len(), TENANTS.len());
        let streams = questions.iter().filter(|it| matches!(it.how, How::Stream(_))).count();
        assert!((10..38).contains(&streams), "{streams}");
        assert_eq!(questions, draw(&mut Dice::of(3), 48));
    }
}
