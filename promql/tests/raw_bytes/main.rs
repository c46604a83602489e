//! Whatever somebody sends as a query: no panic, no hang, no lack of stack. What is read prints and
//! reads back as the same tree; what can be planned is evaluated, in one cell or in several, to the
//! same answer or to an error. `TRIBUTARY_FUZZ_CASES` sets how many texts the tests try (20,000);
//! those that evaluate try a fraction of it. A failure prints its text and the seed it came from.

#[path = "../common/mod.rs"]
mod common;
#[path = "../language/grammar.rs"]
mod grammar;
#[path = "../language/support.rs"]
#[allow(dead_code, reason = "written for the tests of the language")]
mod support;
mod tables;
mod texts;
mod watch;
mod world;

use std::cell::Cell;

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tributary_promql::{Expr, Options, parse, parse_selector, parse_series};

use support::placeless;
use watch::watched;
use world::{Question, question};

/// Fewer texts than this may well all be refused, or all be read.
const ENOUGH_TO_JUDGE: u32 = 1_000;

/// Evaluation takes this much longer than reading.
const EVALUATED: u32 = 10;

fn cases() -> u32 {
    match std::env::var("TRIBUTARY_FUZZ_CASES") {
        Ok(text) => text.parse().expect("TRIBUTARY_FUZZ_CASES is a number"),
        Err(_) => 20_000,
    }
}

/// What became of the texts.
#[derive(Debug, Default)]
struct Tally {
    refused: Cell<u32>,
    read: Cell<u32>,
    answered: Cell<u32>,
}

fn count(counter: &Cell<u32>) {
    counter.set(counter.get() + 1);
}

/// Reads a text in every way there is. Whatever tree comes out prints as itself.
fn read(text: &str) -> Result<Option<Expr>, TestCaseError> {
    let options = Options::with_all_features();
    let _ = parse(text, &Options::default());
    let _ = parse_selector(text, &options);
    if let Ok(description) = parse_series(text, &options) {
        let _ = description.values().take(100).count();
    }
    let Ok(expr) = parse(text, &options) else { return Ok(None) };
    prop_assert!(expr.span().end <= text.len());
    let tree = placeless(expr.clone());
    for printed in [expr.to_string(), expr.pretty()] {
        let again = parse(&printed, &options).map(placeless);
        // What is printed may be longer than what was read, and so beyond the limit on texts.
        if printed.len() <= options.limits.max_bytes {
            prop_assert_eq!(again.as_ref(), Ok(&tree), "printed as {}", printed);
        }
    }
    Ok(Some(expr))
}

/// Tries every text and, where it can be read, the question.
fn fuzz(cases: u32, texts: impl Strategy<Value = (String, Question)>) -> Tally {
    let tally = Tally::default();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&texts, |(text, question)| {
        watched(&format!("{text}\n{question:?}"), || match read(&text)? {
            None => {
                count(&tally.refused);
                Ok(())
            }
            Some(expr) => {
                count(&tally.read);
                if question.answer(&text, &expr)? {
                    count(&tally.answered);
                }
                Ok(())
            }
        })
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    tally
}

#[test]
fn noise_is_survived() {
    let noise = any::<Vec<u8>>().prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    fuzz(cases() / 2, (noise, question()));
    fuzz(cases() / 2, (any::<String>(), question()));
}

#[test]
fn words_in_any_order_are_refused_or_make_sense() {
    let tally = fuzz(cases(), (texts::soup(), question()));
    if cases() >= ENOUGH_TO_JUDGE {
        assert!(tally.refused > tally.read && tally.read.get() > 0, "{tally:?}");
    }
}

#[test]
fn damaged_queries_are_refused_or_make_sense() {
    let tally = fuzz(cases() / EVALUATED * 5, (texts::damaged(), question()));
    if cases() >= ENOUGH_TO_JUDGE {
        assert!(tally.refused.get() > 0 && tally.answered.get() > 0, "{tally:?}");
    }
}

#[test]
fn expressions_of_any_shape_are_answered_or_refused_with_a_reason() {
    let tally = fuzz(cases() / EVALUATED, (grammar::expression(), question()));
    if cases() >= ENOUGH_TO_JUDGE {
        assert!(tally.answered.get() > 0, "{tally:?}");
    }
}

#[test]
fn calls_of_every_function_are_answered_or_refused_with_a_reason() {
    let tally = fuzz(cases() / EVALUATED * 2, (texts::calls(), question()));
    if cases() >= ENOUGH_TO_JUDGE {
        assert!(tally.answered.get() * 4 > tally.read.get(), "{tally:?}");
    }
}
