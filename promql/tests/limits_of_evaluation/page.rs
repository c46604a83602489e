//! `docs/limits.md` tells every limit, its default and what is said when it is reached. What it says
//! is compared with what happens.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use tributary_promql::eval::EvalError;
use tributary_promql::{ErrorKind, EvalLimits, Limits, Options, parse};

fn page() -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/limits.md");
    fs::read_to_string(path).expect("the page is part of the repository")
}

/// A number as the page writes it.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The page has exactly these rows under this heading.
fn assert_rows(heading: &str, rows: &[(&str, u64, String)]) {
    let page = page();
    let section = page.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("docs/limits.md has no section {heading:?}"));
    let told: Vec<(&str, &str, &str)> = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells: Vec<&str> = line.split(" | ").collect();
            let [name, _, default, said] = cells[..] else { panic!("four columns: {line}") };
            (name.trim_start_matches("| "), default, said.trim_end_matches(" |"))
        })
        .collect();
    let mut wanted = String::new();
    for (name, default, said) in rows {
        let _ = writeln!(wanted, "| `{name}` | … | {} | {said} |", grouped(*default));
    }
    let expected: Vec<(String, String, &str)> = rows
        .iter()
        .map(|(name, default, said)| (format!("`{name}`"), grouped(*default), said.as_str()))
        .collect();
    let same = told.len() == expected.len()
        && told.iter().zip(&expected).all(|(told, expected)| {
            (told.0, told.1, told.2) == (expected.0.as_str(), expected.1.as_str(), expected.2)
        });
    assert!(same, "docs/limits.md should have, under {heading:?}:\n{wanted}");
}

#[test]
fn the_page_has_every_limit_on_texts() {
    let limits = Limits::default();
    // Every field by name: a new one stops the build until it is told here, too.
    let Limits {
        max_bytes,
        max_nesting,
        max_height,
        max_matchers,
        max_arguments,
        max_pattern_size,
        max_patterns_size,
    } = limits;
    let said = |text: &str| {
        let error = parse(text, &Options::default()).expect_err("this goes beyond a limit");
        assert_eq!(error.kind, ErrorKind::Limit, "{error}");
        error.message
    };
    let too_large = "x".repeat(max_pattern_size + 1);
    let two_thousand = r#"a=~"(a{10}b{10}){100}","#;
    let rows = [
        ("max_bytes", max_bytes, said(&" ".repeat(max_bytes + 1))),
        ("max_nesting", max_nesting, said(&"(".repeat(max_nesting + 1))),
        ("max_height", max_height, said(&("1+".repeat(max_height + 1) + "1"))),
        ("max_matchers", max_matchers, said(&format!("{{{}}}", "a='b',".repeat(max_matchers + 1)))),
        ("max_arguments", max_arguments, said(&format!("abs(a{})", ",a".repeat(max_arguments)))),
        ("max_pattern_size", max_pattern_size, said(&format!(r#"a{{b=~"{too_large}"}}"#))),
        (
            "max_patterns_size",
            max_patterns_size,
            said(&format!("a{{{}}}", two_thousand.repeat(max_patterns_size / 2_000 + 1))),
        ),
    ];
    let rows = rows.map(|(name, default, said)| (name, default as u64, said));
    assert_rows("Texts", &rows);
}

#[test]
fn the_page_has_every_limit_on_evaluation() {
    let EvalLimits {
        max_series,
        max_samples,
        max_steps,
        max_subquery_steps,
        max_values,
        max_window_samples,
        max_label_bytes,
        max_series_label_bytes,
    } = EvalLimits::default();
    // That these words are what is said is tested limit by limit in `limits`.
    let rows = [
        ("max_series", max_series, "series in one selector"),
        ("max_samples", max_samples, "samples in one selector"),
        ("max_steps", max_steps, "steps"),
        ("max_subquery_steps", max_subquery_steps, "steps in a subquery"),
        ("max_values", max_values, "values in memory at once"),
        ("max_window_samples", max_window_samples, "samples in the windows of one function"),
        ("max_label_bytes", max_label_bytes, "bytes of labels"),
        ("max_series_label_bytes", max_series_label_bytes, "bytes of labels in one series"),
    ];
    let rows = rows.map(|(setting, limit, what)| {
        (setting, limit, EvalError::Limit { what, limit, setting }.to_string())
    });
    assert_rows("Evaluation", &rows);
}
