//! Hostile texts end with an error that names a limit, and soon.

use tributary_promql::{ErrorKind, Limits, Options, parse, parse_selector};

use super::support::all;

/// The error, which must be about a limit of ours.
fn beyond(text: &str, options: &Options) -> String {
    let error = parse(text, options).expect_err("this goes beyond a limit");
    assert_eq!(error.kind, ErrorKind::Limit, "{error}");
    error.to_string()
}

/// No limit on the length, so that the others are met.
fn endless() -> Options {
    Options { limits: Limits { max_bytes: usize::MAX, ..Limits::default() }, ..all() }
}

#[test]
fn a_text_may_be_only_so_long() {
    let text = format!("foo{}", " ".repeat(64 * 1024));
    assert_eq!(
        beyond(&text, &all()),
        "1:1: parse error: 65539 bytes of text, at most 65536 are allowed"
    );
    assert!(parse(&text[..64 * 1024], &all()).is_ok());
    assert!(parse_selector(&text, &all()).is_err());
}

#[test]
fn a_million_of_anything_is_refused_without_harm() {
    let million = 1_000_000;
    for (start, repeated) in [
        ("", "("),
        ("", "-"),
        ("", "sum("),
        ("", "a^"),
        ("", "abs(a+"),
        ("foo[", "("),
        ("foo[", "-"),
        ("foo[", "max_of("),
        ("foo[", "1^"),
        ("foo offset ", "-"),
        ("foo offset ", "("),
    ] {
        let text = format!("{start}{}", repeated.repeat(million));
        let error = beyond(&text, &endless());
        let message = "parse error: expressions nest more than 128 levels deep";
        assert!(error.ends_with(message), "{start}{repeated}: {error}");
    }
}

#[test]
fn a_chain_of_operators_grows_only_so_high() {
    let message = "parse error: operators and calls stack more than 500 levels high";
    for text in [
        "1+".repeat(100_000) + "1",
        "a or ".repeat(100_000) + "a",
        format!("foo{}", "[5m:]".repeat(100_000)),
        format!("foo[{}1]", "1+".repeat(100_000)),
        format!("foo offset (1){}", "*1".repeat(100_000)),
    ] {
        let error = beyond(&text, &endless());
        assert!(error.ends_with(message), "{}: {error}", &text[..20]);
    }
}

#[test]
fn the_highest_tree_allowed_can_be_walked() {
    for text in ["foo + ".repeat(499) + "foo", format!("foo[{}1]", "1 + ".repeat(499))] {
        let expr = parse(&text, &all()).unwrap();
        assert_eq!(expr.to_string(), text);
        assert_eq!(parse(&expr.pretty(), &endless()).map(|expr| expr.to_string()), Ok(text));
        assert_eq!(expr.clone(), expr);
    }
    let nested = format!("{}foo{}", "abs(".repeat(127), ")".repeat(127));
    assert_eq!(parse(&nested, &all()).map(|expr| expr.to_string()), Ok(nested));
}

#[test]
fn lists_are_only_so_long() {
    let matchers = r#"a="b","#.repeat(1_001);
    assert_eq!(
        beyond(&format!("foo{{{matchers}}}"), &all()),
        "1:6005: parse error: a selector has more than 1000 matchers"
    );
    assert!(parse(&format!("foo{{{}}}", &matchers[6..]), &all()).is_ok());
    let args = r#","x""#.repeat(999);
    assert_eq!(
        beyond(&format!(r#"label_join(foo,"a"{args})"#), &all()),
        "1:4012: parse error: a call has more than 1000 arguments"
    );
    assert!(parse(&format!(r#"label_join(foo,"a"{})"#, &args[4..]), &all()).is_ok());
}

#[test]
fn all_regular_expressions_together_are_only_so_large() {
    let together = "regular expressions too large together: characters and classes, repetitions \
                    written out, at most 200000 are allowed";
    let large = r#"a=~"(a{10}b{10}){50}(a{10}b{10}){50}","#;
    assert!(parse(&format!("foo{{{}}}", large.repeat(100)), &all()).is_ok());
    let error = beyond(&format!("foo{{{}}}", large.repeat(101)), &all());
    assert_eq!(error, format!("1:3805: parse error: {together}"));
    let many = format!("foo{{{}}}", large.repeat(20));
    let error = beyond(&vec![many; 6].join(" or "), &all());
    assert!(error.ends_with(together), "{error}");
    let replace = r#"label_replace(foo, "a", "", "b", ("(a{10}b{10}){100}"))"#;
    assert!(parse(&vec![replace; 100].join(" or "), &all()).is_ok());
    let error = beyond(&vec![replace; 101].join(" or "), &all());
    assert!(error.ends_with(together), "{error}");
}

#[test]
fn regular_expressions_are_only_so_large() {
    let size = "regular expression too large: characters and classes, repetitions written out, \
                at most 50000 are allowed";
    for pattern in ["(a{10}b{10}){100}".repeat(30), r"\\p{L}{1000}".to_owned(), "x".repeat(50_001)]
    {
        let error = beyond(&format!(r#"foo{{a=~"{pattern}"}}"#), &all());
        assert_eq!(error, format!("1:5: parse error: {size}"));
    }
    let groups = format!("{}{}", "(".repeat(1_000), ")*".repeat(1_000));
    for pattern in [groups, "a*".to_owned() + &"(?i)*".repeat(1_000)] {
        assert_eq!(
            beyond(&format!(r#"foo{{a=~"{pattern}"}}"#), &all()),
            "1:5: parse error: regular expression too large: groups inside each other, at most 50 \
             are allowed"
        );
    }
}
