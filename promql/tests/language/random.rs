//! Random trees survive printing; random texts do no harm.

use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;
use tributary_promql::{Limits, Options, parse, parse_selector, parse_series};

use super::grammar::{expression, one_of};
use super::support::{all, cases, none, placeless, tree};

/// A text of the case files, cut in two places and joined with another.
fn mutated() -> impl Strategy<Value = String> {
    let queries: Vec<String> = cases().into_iter().map(|case| case.query).collect();
    let pieces = one_of(&[
        "(", ")", "[", "]", "{", "}", ",", ":", "\"", "'", "`", "#", "\\", "@", "5m", "offset ",
        "by ", " and ", "=~", "{{", "}}", "\u{fffd}", "é", "\0", "0x", "1e", "_", "^-", "on(", "x",
    ]);
    let cut = |text: &str, at: usize| {
        let at = at % (text.len() + 1);
        (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
    };
    (select(queries.clone()), any::<usize>(), pieces, select(queries), any::<usize>()).prop_map(
        move |(one, one_cut, piece, other, other_cut)| {
            let (head, tail) = (&one[..cut(&one, one_cut)], &other[cut(&other, other_cut)..]);
            format!("{head}{piece}{tail}")
        },
    )
}

/// Reads a text in every way there is; whatever comes out is fine as long as something does.
fn read_in_every_way(text: &str) {
    let small = Limits { max_nesting: 8, max_height: 8, ..Limits::default() };
    for options in [all(), none(), Options { limits: small, ..all() }] {
        if let Ok(expr) = parse(text, &options) {
            assert!(expr.span().end <= text.len());
        }
        let _ = parse_selector(text, &options);
        if let Ok(description) = parse_series(text, &options) {
            let _ = description.values().take(100).count();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn printed_trees_read_back_as_themselves(text in expression()) {
        // Some combinations have the wrong types; they are not what this is about.
        if let Ok(expr) = parse(&text, &all()) {
            let expr = placeless(expr);
            prop_assert_eq!(&tree(&expr.to_string()), &expr, "{}", expr);
            prop_assert_eq!(&tree(&expr.pretty()), &expr, "{}", expr.pretty());
        }
    }

    #[test]
    fn mutated_queries_do_no_harm(text in mutated()) {
        read_in_every_way(&text);
    }

    #[test]
    fn any_text_does_no_harm(text in any::<String>()) {
        read_in_every_way(&text);
    }

    #[test]
    fn any_bytes_read_as_text_do_no_harm(bytes in any::<Vec<u8>>()) {
        read_in_every_way(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn most_random_expressions_have_a_place_in_the_language(text in expression()) {
        let outcome = parse(&text, &all()).map_err(|error| error.message);
        let syntax = outcome.as_ref().err().is_some_and(|message| message.starts_with("unexpected"));
        prop_assert!(!syntax, "{text}\n{outcome:?}");
    }
}
