//! The key that a request shows, in whichever header. Whether it is a right one is not known here.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Headers that hold a key and nothing else.
const KEY_HEADERS: [&str; 3] = ["x-api-key", "api-key", "x-cardinalhq-api-key"];

/// The key that is shown: as `Authorization: Bearer`, as the password of `Authorization: Basic`,
/// or in a header of its own. The first that is there counts, in this order.
pub(super) fn key(headers: &HeaderMap) -> Option<String> {
    let text = |name: &str| headers.get(name).map(HeaderValue::to_str)?.ok();
    text(AUTHORIZATION.as_str())
        .and_then(authorized)
        .or_else(|| KEY_HEADERS.into_iter().find_map(text).map(|key| key.trim().to_owned()))
}

fn authorized(value: &str) -> Option<String> {
    let (scheme, rest) = value.trim().split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(rest).ok()?).ok()?;
    decoded.split_once(':').map(|(_, password)| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_stand_in_any_of_its_headers() {
        for (name, value, key) in [
            ("authorization", "Bearer abc", Some("abc")),
            ("authorization", "bearer  abc ", Some("abc")),
            ("authorization", "Basic Z3JhZmFuYTphYmM=", Some("abc")),
            ("authorization", "Basic ???", None),
            ("authorization", "Digest abc", None),
            ("authorization", "abc", None),
            ("x-api-key", "abc", Some("abc")),
            ("api-key", "abc", Some("abc")),
            ("x-cardinalhq-api-key", " abc", Some("abc")),
            ("cookie", "abc", None),
        ] {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
            assert_eq!(super::key(&headers).as_deref(), key, "{name}: {value}");
        }
    }
}
