//! Answers of Prometheus' HTTP API, read into outcomes.

use serde_json::Value;
use tributary_promql::{Data, Labels, Points};

use super::PeerError;
use crate::differential::outcome::{Outcome, Told};

/// Reads an answer. Errors of the query are outcomes; anything else is no answer.
pub(super) fn outcome(status: u16, body: &[u8]) -> Result<Outcome, PeerError> {
    let no_answer = || {
        let text: String = String::from_utf8_lossy(body).chars().take(300).collect();
        PeerError::NoAnswer(format!("status {status}: {text}"))
    };
    let json: Value = serde_json::from_slice(body).map_err(|_| no_answer())?;
    if json["status"] == "error" {
        let kind = json["errorType"].as_str().ok_or_else(no_answer)?;
        let text = json["error"].as_str().ok_or_else(no_answer)?;
        // Time-outs, aborts and the like say nothing about the query.
        if !matches!(kind, "bad_data" | "execution") {
            return Err(no_answer());
        }
        // The words of the HTTP API around those of the language.
        let text = text.strip_prefix("invalid parameter \"query\": ").unwrap_or(text);
        return Ok(Outcome::Failed(text.to_owned()));
    }
    let notes = |name: &str| {
        json[name]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let data = data(&json["data"]).ok_or_else(no_answer)?;
    Ok(Outcome::Answered(Told { data, warnings: notes("warnings"), infos: notes("infos") }))
}

fn data(data: &Value) -> Option<Data> {
    let result = &data["result"];
    Some(match data["resultType"].as_str()? {
        "scalar" => {
            let (t, value) = point(result)?;
            Data::Scalar { t, value }
        }
        "string" => Data::String {
            t: milliseconds(&result[0])?,
            bytes: result[1].as_str()?.as_bytes().to_vec(),
        },
        "vector" => {
            let mut time = 0;
            let mut series = Vec::new();
            for one in result.as_array()? {
                let (t, value) = point(&one["value"])?;
                time = t;
                series.push((labels(&one["metric"])?, value));
            }
            Data::Vector { t: time, series }
        }
        "matrix" => {
            let all = result.as_array()?.iter().map(|one| {
                let mut points = Points { labels: labels(&one["metric"])?, ..Points::default() };
                for pair in one["values"].as_array()? {
                    let (t, value) = point(pair)?;
                    points.ts.push(t);
                    points.values.push(value);
                }
                Some(points)
            });
            Data::Matrix(all.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn labels(metric: &Value) -> Option<Labels> {
    let pairs: Option<Vec<(&str, &str)>> = metric
        .as_object()?
        .iter()
        .map(|(name, value)| Some((name.as_str(), value.as_str()?)))
        .collect();
    Labels::new(pairs?).ok()
}

/// A time in seconds and a value as a string.
fn point(pair: &Value) -> Option<(i64, f64)> {
    let value = match pair[1].as_str()? {
        "NaN" => f64::NAN,
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        number => number.parse().ok()?,
    };
    Some((milliseconds(&pair[0])?, value))
}

fn milliseconds(seconds: &Value) -> Option<i64> {
    let seconds = seconds.as_f64()?;
    #[expect(clippy::cast_possible_truncation, reason = "times are of this century")]
    let milliseconds = (seconds * 1000.0).round() as i64;
    Some(milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_an_answer_is_read() {
        let answered = |json: &str| match outcome(200, json.as_bytes()).unwrap() {
            Outcome::Answered(told) => told,
            failed @ Outcome::Failed(_) => panic!("{failed:?}"),
        };
        let told = answered(
            r#"{"status":"success","warnings":["w"],"infos":["i"],"data":{"resultType":"vector",
            "result":[{"metric":{"a":"b"},"value":[1.234,"+Inf"]}]}}"#,
        );
        assert!(told.warnings.contains("w") && told.infos.contains("i"));
        let Data::Vector { t: 1234, series } = told.data else { panic!("{:?}", told.data) };
        assert_eq!(series[0].0.get("a"), Some("b"));
        assert_eq!(series[0].1, f64::INFINITY);
        let told = answered(
            r#"{"status":"success","data":{"resultType":"matrix",
            "result":[{"metric":{},"values":[[1,"1"],[2.5,"NaN"]]}]}}"#,
        );
        let Data::Matrix(series) = told.data else { panic!("{:?}", told.data) };
        assert_eq!(series[0].ts, [1000, 2500]);
        assert!(series[0].values[1].is_nan());
        let told =
            answered(r#"{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}"#);
        assert!(matches!(told.data, Data::Scalar { t: 1000, value: 2.0 }));
        let told =
            answered(r#"{"status":"success","data":{"resultType":"string","result":[1,"x"]}}"#);
        assert!(matches!(told.data, Data::String { t: 1000, bytes } if bytes == b"x"));
    }

    #[test]
    fn an_error_of_the_query_is_an_outcome_and_a_time_out_is_not() {
        let error = r#"{"status":"error","errorType":"bad_data","error":"no"}"#;
        assert!(
            matches!(outcome(400, error.as_bytes()), Ok(Outcome::Failed(text)) if text == "no")
        );
        let error = r#"{"status":"error","errorType":"timeout","error":"slow"}"#;
        assert!(outcome(503, error.as_bytes()).is_err());
        assert!(outcome(200, b"<html>").is_err());
    }
}
