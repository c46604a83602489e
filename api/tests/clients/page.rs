//! The web page as a browser gets it, and as a client that only wants to know whether anybody is there.

use std::io::Read as _;

use axum::http::Method;
use flate2::read::GzDecoder;

use crate::memory::Memory;
use crate::reply::{get, over, request, send};

#[tokio::test]
async fn the_page_comes_with_all_that_belongs_to_it_and_may_load_nothing_else() {
    let routes = over(Memory::of("load 1m\n  up 1\n"));
    let page = get(&routes, "/").await;
    assert_eq!(
        (page.status.as_u16(), page.header("content-type")),
        (200, "text/html; charset=utf-8")
    );
    assert_eq!(page.header("x-content-type-options"), "nosniff");
    let policy = page.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");

    // What the page names, and what that names in turn.
    let mut named = vec![page.text().to_owned()];
    let mut seen = std::collections::BTreeSet::new();
    while let Some(text) = named.pop() {
        let words = text.split(['"', '\'']);
        let files = words.filter_map(|word| word.strip_prefix("page/").or(word.strip_prefix("./")));
        for file in files.map(str::to_owned).collect::<Vec<_>>() {
            if seen.insert(file.clone()) {
                let reply = get(&routes, &format!("/page/{file}")).await;
                assert_eq!(reply.status, 200, "{file}");
                assert_eq!(reply.header("content-security-policy"), policy);
                named.push(reply.text().to_owned());
            }
        }
    }
    assert!(seen.len() >= 10 && seen.contains("app.js") && seen.contains("style.css"), "{seen:?}");
    for other in ["/page/none.js", "/page/..%2Fsrc%2Flib.rs", "/page/"] {
        assert_eq!(get(&routes, other).await.error().0, 404, "{other}");
    }
}

#[tokio::test]
async fn a_browser_that_has_a_file_is_not_sent_it_again_and_gets_it_compressed() {
    let routes = over(Memory::of("load 1m\n  up 1\n"));
    let first = get(&routes, "/page/app.js").await;
    let mark = first.header("etag");
    let ask = async |name, value: &str| {
        send(&routes, request(Method::GET, "/page/app.js", &[(name, value)], "")).await
    };
    for known in [mark, "*", &format!("\"other\", {mark}")] {
        let reply = ask("if-none-match", known).await;
        assert_eq!((reply.status.as_u16(), reply.body.len()), (304, 0), "{known}");
        assert_eq!(reply.header("etag"), mark);
    }
    assert_eq!(ask("if-none-match", "W/\"other\"").await.status, 200);
    let small = ask("accept-encoding", "gzip").await;
    assert_eq!((small.header("content-encoding"), small.header("etag")), ("gzip", mark));
    let mut text = String::new();
    GzDecoder::new(&*small.body).read_to_string(&mut text).unwrap();
    assert_eq!(text, first.text());
    let head = send(&routes, request(Method::HEAD, "/", &[], "")).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
}
