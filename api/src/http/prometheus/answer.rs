//! The JSON of an answer, written straight from its values.

use axum::response::Response;
use tributary_promql::Data;

use crate::http::body::{self, Script};
use crate::http::json::{
    push_float, push_float_in_full, push_int, push_labels, push_quoted_float, push_text,
    push_texts, push_time,
};
use crate::question::QueryStats;

/// Samples, or series with one, that are written before anybody looks whether it is enough.
const AT_ONCE: usize = 256;

/// What is said beside the values.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// The answer may not be what was asked for.
    pub warnings: Vec<String>,
    /// Something is unusual.
    pub infos: Vec<String>,
    /// What it took, where that was asked for.
    pub stats: Option<QueryStats>,
}

/// The answer to a query as a response, written while it is sent.
pub(super) fn answer(data: Data, notes: &Notes) -> Response {
    body::json(Answer::new(data, notes))
}

/// The answer to a query as one text. Servers send it piece by piece instead.
pub fn answer_json(data: Data, notes: &Notes) -> Vec<u8> {
    let mut out = Vec::new();
    let mut script = Answer::new(data, notes);
    while script.write(&mut out) {}
    out
}

/// The end of every successful answer: what is said beside the data.
pub(super) fn notes_tail(warnings: &[String], infos: &[String]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, texts) in [("warnings", warnings), ("infos", infos)] {
        if !texts.is_empty() {
            out.push(b',');
            push_text(&mut out, name);
            out.push(b':');
            push_texts(&mut out, texts);
        }
    }
    out.push(b'}');
    out
}

struct Answer {
    data: Data,
    begun: bool,
    /// The series that is written, and how many of its samples are.
    place: (usize, usize),
    tail: Vec<u8>,
}

impl Answer {
    fn new(data: Data, notes: &Notes) -> Self {
        let mut tail = Vec::new();
        if let Some(stats) = &notes.stats {
            push_stats(&mut tail, stats);
        }
        tail.push(b'}');
        tail.extend(notes_tail(&notes.warnings, &notes.infos));
        Self { data, begun: false, place: (0, 0), tail }
    }
}

impl Script for Answer {
    fn write(&mut self, out: &mut Vec<u8>) -> bool {
        if !self.begun {
            self.begun = true;
            let kind = self.data.value_type().name();
            out.extend_from_slice(br#"{"status":"success","data":{"resultType":"#);
            push_text(out, kind);
            out.extend_from_slice(br#","result":["#);
        }
        let more = match &self.data {
            Data::Scalar { t, value } => {
                push_time(out, *t);
                out.extend_from_slice(b",\"");
                push_float_in_full(out, *value);
                out.push(b'"');
                false
            }
            Data::String { t, bytes } => {
                push_time(out, *t);
                out.push(b',');
                push_text(out, &String::from_utf8_lossy(bytes));
                false
            }
            Data::Vector { t, series } => {
                let first = self.place.0;
                let end = series.len().min(first + AT_ONCE);
                for (place, (labels, value)) in (first..).zip(&series[first..end]) {
                    out.extend_from_slice(if place > 0 {
                        b",{\"metric\":"
                    } else {
                        b"{\"metric\":"
                    });
                    push_labels(out, labels);
                    out.extend_from_slice(br#","value":["#);
                    push_time(out, *t);
                    out.push(b',');
                    push_quoted_float(out, *value);
                    out.extend_from_slice(b"]}");
                }
                self.place.0 = end;
                end < series.len()
            }
            Data::Matrix(series) => {
                let (at, from) = &mut self.place;
                if let Some(points) = series.get(*at) {
                    if *from == 0 {
                        out.extend_from_slice(if *at > 0 {
                            b",{\"metric\":"
                        } else {
                            b"{\"metric\":"
                        });
                        push_labels(out, &points.labels);
                        out.extend_from_slice(br#","values":["#);
                    }
                    let end = points.ts.len().min(*from + AT_ONCE);
                    let samples = points.ts[*from..end].iter().zip(&points.values[*from..end]);
                    for (place, (t, value)) in (*from..).zip(samples) {
                        out.extend_from_slice(if place > 0 { b",[" } else { b"[" });
                        push_time(out, *t);
                        out.extend_from_slice(b",\"");
                        push_float(out, *value);
                        out.extend_from_slice(b"\"]");
                    }
                    *from = end;
                    if end == points.ts.len() {
                        out.extend_from_slice(b"]}");
                        (*at, *from) = (*at + 1, 0);
                    }
                }
                *at < series.len()
            }
        };
        if !more {
            out.push(b']');
            out.append(&mut self.tail);
        }
        more
    }
}

/// What a query took, in Prometheus' names where it has one, and in ours.
fn push_stats(out: &mut Vec<u8>, stats: &QueryStats) {
    let seconds = |out: &mut Vec<u8>, name: &str, value: std::time::Duration| {
        push_text(out, name);
        out.push(b':');
        push_float(out, value.as_secs_f64());
    };
    let count = |out: &mut Vec<u8>, name: &str, value: u64| {
        out.push(b',');
        push_text(out, name);
        out.push(b':');
        push_int(out, i64::try_from(value).unwrap_or(i64::MAX));
    };
    out.extend_from_slice(br#","stats":{"timings":{"#);
    for (place, (name, value)) in [
        ("evalTotalTime", stats.total.saturating_sub(stats.planning)),
        ("resultSortTime", std::time::Duration::ZERO),
        ("queryPreparationTime", stats.planning),
        ("innerEvalTime", stats.evaluation),
        ("execQueueTime", std::time::Duration::ZERO),
        ("execTotalTime", stats.total),
    ]
    .into_iter()
    .enumerate()
    {
        if place > 0 {
            out.push(b',');
        }
        seconds(out, name, value);
    }
    out.extend_from_slice(br#"},"samples":{"totalQueryableSamples":"#);
    push_int(out, i64::try_from(stats.artifact_rows).unwrap_or(i64::MAX));
    out.extend_from_slice(br#","peakSamples":0},"tributary":{"#);
    seconds(out, "firstResultTime", stats.first_result);
    for (name, value) in [
        ("leaves", u64::from(stats.leaves)),
        ("workItems", u64::from(stats.items)),
        ("segments", stats.segments),
        ("artifactBytes", stats.artifact_bytes),
        ("artifactRows", stats.artifact_rows),
    ] {
        count(out, name, value);
    }
    out.extend_from_slice(b"}}");
}

#[cfg(test)]
mod tests {
    use tributary_promql::{Labels, Points};

    use super::*;

    fn text(data: Data) -> String {
        String::from_utf8(answer_json(data, &Notes::default())).unwrap()
    }

    fn labels(name: &str) -> Labels {
        Labels::new([("__name__", "m"), ("a", name)]).unwrap()
    }

    #[test]
    fn every_kind_of_answer_has_prometheus_form() {
        assert_eq!(
            text(Data::Scalar { t: 1_500, value: 1e21 }),
            r#"{"status":"success","data":{"resultType":"scalar","result":[1.500,"1000000000000000000000"]}}"#
        );
        assert_eq!(
            text(Data::String { t: 0, bytes: b"a\"\xff".to_vec() }),
            "{\"status\":\"success\",\"data\":{\"resultType\":\"string\",\"result\":[0,\"a\\\"\u{fffd}\"]}}"
        );
        let series = vec![(labels("1"), 0.5), (labels("2"), f64::INFINITY)];
        assert_eq!(
            text(Data::Vector { t: 1_001, series }),
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{"__name__":"m","a":"1"},"value":[1.001,"0.5"]},{"metric":{"__name__":"m","a":"2"},"value":[1.001,"+Inf"]}]}}"#
        );
        let points =
            Points { labels: labels("1"), ts: vec![0, 60_000], values: vec![1.0, f64::NAN] };
        assert_eq!(
            text(Data::Matrix(vec![points])),
            r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"__name__":"m","a":"1"},"values":[[0,"1"],[60,"NaN"]]}]}}"#
        );
        for data in [Data::Matrix(vec![]), Data::Vector { t: 0, series: vec![] }] {
            assert!(text(data).ends_with(r#""result":[]}}"#));
        }
    }

    #[test]
    fn notes_and_stats_follow_the_values() {
        let notes = Notes {
            warnings: vec!["w".to_owned()],
            infos: vec!["i".to_owned()],
            stats: Some(QueryStats { leaves: 2, ..QueryStats::default() }),
        };
        let out = answer_json(Data::Vector { t: 0, series: vec![] }, &notes);
        let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(read["warnings"][0], "w");
        assert_eq!(read["infos"][0], "i");
        assert_eq!(read["data"]["stats"]["timings"]["execTotalTime"], 0);
        assert_eq!(read["data"]["stats"]["tributary"]["leaves"], 2);
    }

    #[test]
    fn long_series_are_written_in_parts_that_fit_together() {
        let count = 3 * AT_ONCE + 1;
        let ts: Vec<i64> = (0..).take(count).map(|t: i64| t * 1000).collect();
        let values: Vec<f64> = ts.iter().map(|t| *t as f64 / 7000.0).collect();
        let series = ["1", "2"].map(|name| Points {
            labels: labels(name),
            ts: ts.clone(),
            values: values.clone(),
        });
        let read: serde_json::Value =
            serde_json::from_str(&text(Data::Matrix(series.into()))).unwrap();
        for series in read["data"]["result"].as_array().unwrap() {
            let read = series["values"].as_array().unwrap();
            assert_eq!(read.len(), count);
            for (place, point) in read.iter().enumerate() {
                assert_eq!(point[0].as_i64().unwrap() * 1000, ts[place]);
                assert_eq!(point[1].as_str().unwrap().parse::<f64>().unwrap(), values[place]);
            }
        }
    }
}
