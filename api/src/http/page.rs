//! The web page: a query box, the live chart, the workers and the waterfall of a query's work. Its
//! files are part of the binary; the page asks nobody but the node it came from, and the browser is
//! told to hold it to that.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

use super::Answered;
use super::failure::{Failure, Kind};

/// The page may load and ask its own node alone; nobody may put it into a frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// A file of the page.
struct File {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

/// A file and the mark by which a browser knows it again.
struct Marked {
    file: File,
    mark: HeaderValue,
}

static FILES: LazyLock<Vec<Marked>> = LazyLock::new(|| {
    /// One file of the folder.
    macro_rules! file {
        ($name:literal, $kind:literal) => {
            File { name: $name, kind: $kind, text: include_str!(concat!("../../page/", $name)) }
        };
    }
    let files = [
        file!("index.html", "text/html; charset=utf-8"),
        file!("style.css", "text/css; charset=utf-8"),
        file!("icon.svg", "image/svg+xml"),
        file!("app.js", "text/javascript; charset=utf-8"),
        file!("chart.js", "text/javascript; charset=utf-8"),
        file!("complete.js", "text/javascript; charset=utf-8"),
        file!("format.js", "text/javascript; charset=utf-8"),
        file!("legend.js", "text/javascript; charset=utf-8"),
        file!("monitor.js", "text/javascript; charset=utf-8"),
        file!("stream.js", "text/javascript; charset=utf-8"),
        file!("waterfall.js", "text/javascript; charset=utf-8"),
    ];
    files.into_iter().map(Marked::of).collect()
});

impl Marked {
    fn of(file: File) -> Self {
        let hash = Sha256::digest(file.text);
        let digits: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        // Weak, because the same file may be sent compressed.
        let mark = HeaderValue::from_str(&format!("W/\"{digits}\""));
        Self { file, mark: mark.expect("digits make a header") }
    }

    fn sent(&self, headers: &HeaderMap) -> Response {
        let fixed = |text: &'static str| HeaderValue::from_static(text);
        let about: [(HeaderName, HeaderValue); 5] = [
            (ETAG, self.mark.clone()),
            (CACHE_CONTROL, fixed("no-cache")),
            (CONTENT_SECURITY_POLICY, fixed(POLICY)),
            (X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
            (REFERRER_POLICY, fixed("no-referrer")),
        ];
        let known = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let mark = self.mark.to_str().unwrap_or_default();
        let mut known = known.flat_map(|value| value.split(',')).map(str::trim);
        if known.any(|one| one == mark || one == "*") {
            return (StatusCode::NOT_MODIFIED, about).into_response();
        }
        (about, [(CONTENT_TYPE, self.file.kind)], self.file.text).into_response()
    }
}

/// `/`: the page itself. Also what simple clients ask to see whether anybody is there.
pub(super) async fn index(headers: HeaderMap) -> Answered {
    file(Path("index.html".to_owned()), headers).await
}

/// `/page/{file}`: what belongs to it.
pub(super) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Answered {
    match FILES.iter().find(|marked| marked.file.name == name) {
        Some(marked) => Ok(marked.sent(&headers)),
        None => Err(Failure::new(Kind::NotFound, "the page has no such file")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path as Folder;

    use super::*;

    #[test]
    fn every_file_of_the_folder_is_served_and_no_line_of_them_leads_elsewhere() {
        let folder = Folder::new(env!("CARGO_MANIFEST_DIR")).join("page");
        let names = std::fs::read_dir(folder).unwrap();
        let names: BTreeSet<String> =
            names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        let served: BTreeSet<String> =
            FILES.iter().map(|marked| marked.file.name.to_owned()).collect();
        assert_eq!(names, served);
        for File { name, text, .. } in FILES.iter().map(|marked| &marked.file) {
            let plain = text.replace("http://www.w3.org/2000/svg", "");
            for outside in ["http://", "https://", "\"//", "'//", "@import", "innerHTML", "eval("] {
                assert!(!plain.contains(outside), "{name} has {outside}");
            }
            if *name == "index.html" {
                // What the policy forbids would not work.
                for inline in ["<style", "style=", "onclick=", "onload=", "javascript:"] {
                    assert!(!plain.contains(inline), "{name} has {inline}");
                }
                assert_eq!(plain.matches("<script").count(), 1, "one script, from a file");
            }
        }
    }
}
