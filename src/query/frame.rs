//! What the frames of an answer say: from the text of an event to one of a few things.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// One frame of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Frame {
    /// A value of a series at a time.
    Result(Point),
    /// Figures about a series.
    Summary(Summary),
    /// Nothing flowed for a while; all is well.
    Heartbeat,
    /// No worker is there; the query waits for one.
    WaitingScaleUp,
    /// So much of the work is done.
    Progress {
        /// Work items that are done.
        done: u64,
        /// Of so many.
        total: u64,
    },
    /// The query can't be answered.
    Error {
        /// What kind of error it is.
        code: String,
        /// What is wrong.
        message: String,
    },
    /// The end.
    Done {
        /// The answer is complete.
        ok: bool,
    },
    /// Something that a newer server says.
    Unknown,
}

/// A value of a series at a time.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Point {
    /// Its labels.
    #[serde(default)]
    pub(super) tags: BTreeMap<String, String>,
    /// The value.
    #[serde(deserialize_with = "number")]
    pub(super) value: f64,
    /// Milliseconds of the Unix epoch.
    pub(super) timestamp: i64,
    /// What the server calls the series.
    #[serde(default)]
    pub(super) label: String,
}

/// Figures about a series.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Summary {
    /// Its labels.
    #[serde(default)]
    pub(super) tags: BTreeMap<String, String>,
    /// What the server calls it.
    #[serde(default)]
    pub(super) label: String,
    /// All other fields: `min`, `max`, `avg`, `p50` and so on.
    #[serde(flatten)]
    pub(super) figures: BTreeMap<String, Value>,
}

/// Why a text is no frame.
#[derive(Debug, thiserror::Error)]
#[error("a frame of the answer can't be read: {0}")]
pub(super) struct BadFrame(#[from] serde_json::Error);

#[derive(Deserialize)]
struct Envelope {
    r#type: String,
    #[serde(default)]
    data: Value,
}

#[derive(Deserialize)]
struct Progress {
    done: u64,
    total: u64,
}

#[derive(Deserialize)]
struct Complaint {
    #[serde(default)]
    code: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
struct End {
    status: String,
}

impl Frame {
    /// Reads the data of an event.
    pub(super) fn parse(text: &str) -> Result<Self, BadFrame> {
        let Envelope { r#type, data } = serde_json::from_str(text)?;
        Ok(match r#type.as_str() {
            "result" => Self::Result(serde_json::from_value(data)?),
            "summary" => Self::Summary(serde_json::from_value(data)?),
            "heartbeat" => Self::Heartbeat,
            "waiting_scale_up" => Self::WaitingScaleUp,
            "progress" => {
                let Progress { done, total } = serde_json::from_value(data)?;
                Self::Progress { done, total }
            }
            "error" => {
                let Complaint { code, message } = serde_json::from_value(data)?;
                Self::Error { code, message }
            }
            "done" => Self::Done { ok: serde_json::from_value::<End>(data)?.status == "ok" },
            _ => Self::Unknown,
        })
    }
}

/// A number, or one of the three that JSON can't write as numbers.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let value = Value::deserialize(from)?;
    figure(&value).ok_or_else(|| D::Error::custom(format!("{value} is no number")))
}

/// The number that a JSON value is, or stands for.
pub(super) fn figure(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "+Inf" => Some(f64::INFINITY),
            "-Inf" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// A series as people write it: `name{label="value"}`.
pub(super) struct SeriesName<'a>(pub(super) &'a BTreeMap<String, String>, pub(super) &'a str);

impl fmt::Display for SeriesName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(tags, label) = self;
        let name = tags.get("__name__").map_or("", String::as_str);
        let mut labels = tags.iter().filter(|(name, _)| *name != "__name__").peekable();
        if name.is_empty() && labels.peek().is_none() {
            // A series without any labels goes by what the server calls it.
            return f.write_str(if label.is_empty() { "{}" } else { label });
        }
        f.write_str(name)?;
        if labels.peek().is_none() {
            return Ok(());
        }
        let mut before = "{";
        for (name, value) in labels {
            write!(f, "{before}{name}={value:?}")?;
            before = ",";
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_frame_is_understood() {
        let point = r#"{"type":"result","data":{"tags":{"job":"a"},"value":1.5,"timestamp":7,"label":"x"}}"#;
        let Frame::Result(point) = Frame::parse(point).unwrap() else { panic!("no result") };
        assert_eq!((point.value, point.timestamp, point.tags["job"].as_str()), (1.5, 7, "a"));
        for (text, frame) in [
            (r#"{"type":"heartbeat","data":{"status":"ok"}}"#, Frame::Heartbeat),
            (r#"{"type":"waiting_scale_up"}"#, Frame::WaitingScaleUp),
            (
                r#"{"type":"progress","data":{"done":1,"total":4}}"#,
                Frame::Progress { done: 1, total: 4 },
            ),
            (r#"{"type":"done","data":{"status":"ok"}}"#, Frame::Done { ok: true }),
            (r#"{"type":"done","data":{"status":"error"}}"#, Frame::Done { ok: false }),
            (r#"{"type":"weather","data":[1]}"#, Frame::Unknown),
        ] {
            assert_eq!(Frame::parse(text).unwrap(), frame);
        }
        let error = Frame::parse(r#"{"type":"error","data":{"code":"bad_data","message":"no"}}"#);
        let expected = Frame::Error { code: "bad_data".into(), message: "no".into() };
        assert_eq!(error.unwrap(), expected);
    }

    #[test]
    fn values_beyond_json_are_texts() {
        let point = |value: &str| {
            Frame::parse(&format!(
                r#"{{"type":"result","data":{{"value":{value},"timestamp":0}}}}"#
            ))
        };
        let value = |text: &str| match point(text).unwrap() {
            Frame::Result(point) => point.value,
            other => panic!("{other:?}"),
        };
        assert!(value(r#""NaN""#).is_nan());
        assert_eq!(value(r#""+Inf""#), f64::INFINITY);
        assert_eq!(value(r#""-Inf""#), f64::NEG_INFINITY);
        assert_eq!(value("-0.0").to_bits(), (-0.0_f64).to_bits());
        for bad in [r#""12""#, "null", "[]"] {
            assert!(point(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bad in ["", "{", "1", r#"{"type":"progress","data":{"done":-1}}"#, r#"{"data":1}"#] {
            assert!(Frame::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn series_are_named_as_people_write_them() {
        let name = |tags: &[(&str, &str)], label: &str| {
            let tags = tags.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            SeriesName(&tags, label).to_string()
        };
        assert_eq!(name(&[("__name__", "up"), ("job", "a\"b")], ""), r#"up{job="a\"b"}"#);
        assert_eq!(name(&[("a", "1"), ("b", "2")], "x"), r#"{a="1",b="2"}"#);
        assert_eq!(name(&[("__name__", "up")], "x"), "up");
        assert_eq!((name(&[], "sum"), name(&[], "")), ("sum".to_owned(), "{}".to_owned()));
    }
}
