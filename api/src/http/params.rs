//! The parameters of a request, wherever they stand: in the address, in a form, in a JSON object.
//! Those of the body count before those of the address, as in Prometheus.

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use serde_json::Value;
use tokio::time;

use super::failure::{Failure, Kind};
use super::settings::Settings;

/// The parameters of a request, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Reads all parameters of a request, and its body with them.
    pub(crate) async fn read(request: Request, settings: &Settings) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        let body = whole_body(body, settings).await?;
        let mut params = of_body(&parts, &body)?;
        params.extend(of_form(parts.uri.query().unwrap_or_default())?);
        Ok(Self(params))
    }

    /// The first value of this name.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(of, _)| of == name).map(|(_, value)| value.as_str())
    }

    /// The first value of this name; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// The first value of this name that is not empty.
    pub(crate) fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.is_empty())
    }

    /// All values of this name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(of, _)| of == name).map(|(_, value)| value.as_str())
    }
}

async fn whole_body(body: Body, settings: &Settings) -> Result<Bytes, Failure> {
    let limit = settings.max_body_bytes;
    let whole = time::timeout(settings.body_timeout, Limited::new(body, limit).collect()).await;
    match whole {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            let message = format!("the request body has more than {limit} bytes");
            Err(Failure::new(Kind::TooLarge, message))
        }
        Ok(Err(error)) => {
            Err(Failure::bad_data(format!("the request body can't be read: {error}")))
        }
        Err(_) => Err(Failure::new(Kind::SlowRequest, "the request body did not come in time")),
    }
}

fn of_body(parts: &Parts, body: &[u8]) -> Result<Vec<(String, String)>, Failure> {
    let text = body.trim_ascii();
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let kind = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let is_json = kind.eq_ignore_ascii_case("application/json") || kind.ends_with("+json");
    // No form begins so, and `curl -d` calls everything a form.
    if is_json || text.starts_with(b"{") {
        return of_json(text);
    }
    if kind.is_empty() || kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let form = std::str::from_utf8(text);
        return of_form(form.map_err(|_| Failure::bad_data("the form is not UTF-8"))?);
    }
    Err(Failure::new(
        Kind::UnsupportedMedia,
        format!(
            "a body of type {kind:?} is not understood; application/x-www-form-urlencoded and \
             application/json are"
        ),
    ))
}

/// Parameters that are texts and nothing else: a query of `1` is written `"1"`.
const TEXTS: [&str; 5] = ["match[]", "metric", "q", "query", "tagName"];

/// The one parameter that may stand more than once.
const REPEATED: &str = "match[]";

/// An object whose values are texts, numbers or truths.
fn of_json(text: &[u8]) -> Result<Vec<(String, String)>, Failure> {
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| Failure::bad_data(format!("the body is no JSON: {error}")))?;
    let Value::Object(object) = value else {
        return Err(Failure::bad_data("the body is JSON, but not an object"));
    };
    let mut params = Vec::new();
    for (name, value) in object {
        let values = match value {
            Value::Array(values) if name == REPEATED => values,
            Value::Null => continue,
            // The data source sends what it has seen along with a text to check; nobody reads it.
            Value::Object(_) if name == "exemplar" => continue,
            single => vec![single],
        };
        for value in values {
            let value = match value {
                Value::String(text) => text,
                _ if TEXTS.contains(&name.as_str()) => {
                    return Err(Failure::parameter(&name, "a text is expected"));
                }
                Value::Number(number) => number.to_string(),
                Value::Bool(truth) => truth.to_string(),
                Value::Null | Value::Array(_) | Value::Object(_) => {
                    let why = "a text, a number or a truth is expected";
                    return Err(Failure::parameter(&name, why));
                }
            };
            params.push((name.clone(), value));
        }
    }
    Ok(params)
}

/// What stands after the `?` of an address, or in a form.
fn of_form(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Ok((decoded(name)?, decoded(value)?))
    });
    pairs
        .collect::<Result<_, String>>()
        .map_err(|why| Failure::bad_data(format!("error parsing form values: {why}")))
}

fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let escape = after.split_at_checked(2);
                let digits = escape.and_then(|(digits, _)| std::str::from_utf8(digits).ok());
                let digits = digits.filter(|two| two.bytes().all(|byte| byte.is_ascii_hexdigit()));
                let byte = digits.and_then(|two| u8::from_str_radix(two, 16).ok());
                let shown = String::from_utf8_lossy(&after[..after.len().min(2)]);
                bytes.push(byte.ok_or_else(|| format!("invalid URL escape \"%{shown}\""))?);
                rest = &after[2..];
            }
            byte => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| "a value is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use axum::http::Method;

    use super::*;

    async fn read(kind: &str, address: &str, body: &str) -> Result<Params, Failure> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(address)
            .header(CONTENT_TYPE, kind)
            .body(Body::from(body.to_owned()))
            .unwrap();
        let settings = Settings { max_body_bytes: 100, ..Settings::default() };
        Params::read(request, &settings).await
    }

    const FORM: &str = "application/x-www-form-urlencoded";
    const JSON: &str = "application/json; charset=utf-8";

    #[tokio::test]
    async fn parameters_come_from_address_form_and_json() {
        let params = read(FORM, "/?query=a&match[]=x&e=", "query=b%2Bc+d&match%5B%5D=y").await;
        let params = params.unwrap();
        assert_eq!(params.get("query"), Some("b+c d"));
        assert_eq!(params.all("match[]").collect::<Vec<_>>(), ["y", "x"]);
        assert_eq!((params.get("e"), params.filled("e")), (Some(""), None));

        let body = r#"{"q":"up","s":1700000000000,"summary":true,"match[]":["a","b"],"x":null}"#;
        for kind in [JSON, FORM] {
            let params = read(kind, "/?q=down", body).await.unwrap();
            assert_eq!(params.text("q"), "up");
            assert_eq!(params.text("s"), "1700000000000");
            assert_eq!(params.text("summary"), "true");
            assert_eq!(params.all("match[]").collect::<Vec<_>>(), ["a", "b"]);
            assert_eq!(params.get("x"), None);
        }
        assert_eq!(read("text/plain", "/", "  ").await.unwrap(), Params::default());
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_refused_with_the_reason() {
        let refused = async |kind, address, body| {
            let failure = read(kind, address, body).await.unwrap_err();
            (failure.kind, failure.message)
        };
        let (kind, why) = refused(JSON, "/", "{\"q\": ").await;
        assert_eq!(kind, Kind::BadData);
        assert!(why.contains("line 1 column 5"), "{why}");
        let (_, why) = refused(JSON, "/", "[1]").await;
        assert_eq!(why, "the body is JSON, but not an object");
        let (_, why) = refused(JSON, "/", r#"{"x":[[]]}"#).await;
        assert!(why.starts_with(r#"invalid parameter "x""#), "{why}");
        let (_, why) = refused(JSON, "/", r#"{"q":1}"#).await;
        assert_eq!(why, r#"invalid parameter "q": a text is expected"#);
        let (_, why) = refused(FORM, "/?query=%zz", "").await;
        assert_eq!(why, r#"error parsing form values: invalid URL escape "%zz""#);
        let (_, why) = refused(FORM, "/?query=%4", "").await;
        assert_eq!(why, r#"error parsing form values: invalid URL escape "%4""#);
        let (_, why) = refused(FORM, "/", "query=%ff").await;
        assert_eq!(why, "error parsing form values: a value is not UTF-8");
        let (kind, why) = refused("text/plain", "/", "query=1").await;
        assert_eq!(kind, Kind::UnsupportedMedia);
        assert!(why.contains("text/plain"), "{why}");
        let long = format!("query={}", "x".repeat(100));
        let (kind, why) = refused(FORM, "/", &long).await;
        assert_eq!(
            (kind, why.as_str()),
            (Kind::TooLarge, "the request body has more than 100 bytes")
        );
    }
}
