//! Prometheus' JSON back into an answer, to the last bit: floats are written so that they read back as
//! they were. Only the many kinds of NaN are one in JSON; [`in_json`] makes any answer one that could
//! have come so.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use tributary_promql::annotation::{Annotations, Level};
use tributary_promql::span::Span;
use tributary_promql::{Answer, Data, Labels, Points};

/// A place that no text has: what is told there is told without a place.
const NOWHERE: Span = Span { start: usize::MAX, end: usize::MAX };

/// Annotations of one level that a server tells.
const MOST_NOTES: usize = 10;

/// What a server says.
#[derive(Deserialize)]
struct Reply {
    #[serde(default)]
    data: Option<Payload>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
    #[serde(default)]
    infos: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    result_type: String,
    result: Value,
}

/// A time in seconds and a value, as JSON has them.
type Pair = (serde_json::Number, String);

#[derive(Deserialize)]
struct One {
    metric: BTreeMap<String, String>,
    value: Pair,
}

#[derive(Deserialize)]
struct Many {
    metric: BTreeMap<String, String>,
    values: Vec<Pair>,
}

/// Reads an answer to a query at `at`, or the error that came in its place.
pub(super) fn read(json: &[u8], at: i64) -> Result<Answer, String> {
    let unreadable = |error: serde_json::Error| {
        format!("the reply can't be read: {error}: {}", String::from_utf8_lossy(json))
    };
    let reply: Reply = serde_json::from_slice(json).map_err(unreadable)?;
    if let Some(error) = reply.error {
        // Where the text is to blame, Prometheus says so in front of what it says.
        let error = error.strip_prefix("invalid parameter \"query\": ").unwrap_or(&error);
        return Err(error.to_owned());
    }
    let Some(Payload { result_type, result }) = reply.data else {
        return Err("a reply with neither data nor error".to_owned());
    };
    let data = match result_type.as_str() {
        "scalar" => {
            let (t, value): Pair = serde_json::from_value(result).map_err(unreadable)?;
            Data::Scalar { t: millis(&t)?, value: float(&value)? }
        }
        "string" => {
            let (t, text): Pair = serde_json::from_value(result).map_err(unreadable)?;
            Data::String { t: millis(&t)?, bytes: text.into_bytes() }
        }
        "vector" => {
            let all: Vec<One> = serde_json::from_value(result).map_err(unreadable)?;
            // Without any series nobody says when.
            let t = all.first().map_or(Ok(at), |one| millis(&one.value.0))?;
            let series = all.iter().map(|one| Ok((labels(&one.metric)?, float(&one.value.1)?)));
            Data::Vector { t, series: series.collect::<Result<_, String>>()? }
        }
        "matrix" => {
            let all: Vec<Many> = serde_json::from_value(result).map_err(unreadable)?;
            Data::Matrix(all.iter().map(points).collect::<Result<_, String>>()?)
        }
        other => return Err(format!("a reply of the type {other:?}")),
    };
    Ok(Answer { data, annotations: told(&reply.warnings, &reply.infos) })
}

/// The answer as it would be if it had come as JSON.
pub(super) fn in_json(answer: Answer, query: &str) -> Answer {
    let mut data = answer.data;
    match &mut data {
        Data::Scalar { value, .. } => one_nan(value),
        Data::String { .. } => {}
        Data::Vector { series, .. } => series.iter_mut().for_each(|(_, value)| one_nan(value)),
        Data::Matrix(series) => {
            series.iter_mut().flat_map(|points| &mut points.values).for_each(one_nan);
        }
    }
    let texts = |level| answer.annotations.texts(level, query);
    Answer { data, annotations: told(&texts(Level::Warning), &texts(Level::Info)) }
}

fn one_nan(value: &mut f64) {
    if value.is_nan() {
        *value = f64::NAN;
    }
}

/// Annotations as they were told, with their places in them.
fn told(warnings: &[String], infos: &[String]) -> Annotations {
    let mut annotations = Annotations::default();
    // A server tells no more, and then how many more there are.
    for text in warnings.iter().take(MOST_NOTES) {
        annotations.warn(NOWHERE, text.strip_prefix("PromQL warning: ").unwrap_or(text));
    }
    for text in infos.iter().take(MOST_NOTES) {
        annotations.info(NOWHERE, text.strip_prefix("PromQL info: ").unwrap_or(text));
    }
    annotations
}

fn points(many: &Many) -> Result<Points, String> {
    let mut points = Points { labels: labels(&many.metric)?, ..Points::default() };
    for (t, value) in &many.values {
        points.ts.push(millis(t)?);
        points.values.push(float(value)?);
    }
    Ok(points)
}

fn labels(metric: &BTreeMap<String, String>) -> Result<Labels, String> {
    Labels::new(metric).map_err(|error| error.to_string())
}

fn float(text: &str) -> Result<f64, String> {
    match text {
        "NaN" => Ok(f64::NAN),
        "+Inf" => Ok(f64::INFINITY),
        "-Inf" => Ok(f64::NEG_INFINITY),
        text => text.parse().map_err(|_| format!("{text:?} is no number")),
    }
}

/// Seconds, with three digits behind the point at most, as milliseconds.
fn millis(seconds: &serde_json::Number) -> Result<i64, String> {
    let bad = || format!("{seconds} is no time");
    let seconds = seconds.as_f64().ok_or_else(bad)?;
    let millis = (seconds * 1_000.0).round();
    if millis.abs() > 2_f64.powi(53) {
        return Err(bad());
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and below 2^53")]
    let millis = millis as i64;
    Ok(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(json: &str) -> Data {
        read(format!("{{\"status\":\"success\",\"data\":{json}}}").as_bytes(), 7).unwrap().data
    }

    #[test]
    fn all_shapes_read_back_to_the_last_bit() {
        let labels = Labels::new([("__name__", "a"), ("b", "é")]).unwrap();
        let value = 0.1 + 0.2;
        let expected = Data::Vector { t: -1_001, series: vec![(labels.clone(), value)] };
        let metric = r#""metric":{"b":"é","__name__":"a"}"#;
        let vector = data(&format!(
            r#"{{"resultType":"vector","result":[{{{metric},"value":[-1.001,"{value}"]}}]}}"#
        ));
        assert!(vector.same_bits(&expected), "{vector:?}");
        let matrix = data(&format!(
            r#"{{"resultType":"matrix","result":[{{{metric},"values":[[60,"-0"],[60.5,"+Inf"]]}}]}}"#
        ));
        let expected =
            Points { labels, ts: vec![60_000, 60_500], values: vec![-0.0, f64::INFINITY] };
        assert!(matrix.same_bits(&Data::Matrix(vec![expected])), "{matrix:?}");
        let scalar = data(r#"{"resultType":"scalar","result":[1.5,"5e-324"]}"#);
        assert!(scalar.same_bits(&Data::Scalar { t: 1_500, value: 5e-324 }), "{scalar:?}");
        let string = data(r#"{"resultType":"string","result":[0,"x"]}"#);
        assert!(string.same_bits(&Data::String { t: 0, bytes: b"x".to_vec() }), "{string:?}");
        let nothing = data(r#"{"resultType":"vector","result":[]}"#);
        assert!(nothing.same_bits(&Data::Vector { t: 7, series: vec![] }), "{nothing:?}");
    }

    #[test]
    fn errors_and_notes_come_as_they_were_told() {
        let error = r#"{"status":"error","errorType":"bad_data",
            "error":"invalid parameter \"query\": 1:3: parse error: x"}"#;
        assert_eq!(read(error.as_bytes(), 0).unwrap_err(), "1:3: parse error: x");
        let told = r#"{"status":"success","data":{"resultType":"vector","result":[]},
            "warnings":["PromQL warning: w (1:2)"],"infos":["PromQL info: i"]}"#;
        let answer = read(told.as_bytes(), 0).unwrap();
        assert_eq!(answer.annotations.texts(Level::Warning, "query"), ["PromQL warning: w (1:2)"]);
        assert_eq!(answer.annotations.texts(Level::Info, "query"), ["PromQL info: i"]);
        assert!(read(b"<html>", 0).unwrap_err().contains("can't be read"));
        assert!(read(b"{}", 0).is_err());
    }

    #[test]
    fn an_answer_in_json_has_one_nan_and_its_notes_with_places() {
        let value = f64::from_bits(0xfff8_0000_0000_0001);
        let mut annotations = Annotations::default();
        annotations.warn(Span { start: 2, end: 3 }, "w");
        let answer = Answer { data: Data::Scalar { t: 0, value }, annotations };
        let answer = in_json(answer, "query");
        assert!(answer.data.same_bits(&Data::Scalar { t: 0, value: f64::NAN }));
        assert_eq!(answer.annotations.texts(Level::Warning, "query"), ["PromQL warning: w (1:3)"]);
    }
}
