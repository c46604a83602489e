//! What several of the tests need: trees without places, and the cases and scripts they read.

use std::fs;
use std::path::PathBuf;

use tributary_promql::duration_expr::{DurationExpr, DurationValue};
use tributary_promql::expr::VectorSelector;
use tributary_promql::span::Span;
use tributary_promql::{Expr, Features, Options, parse};

/// Every feature on.
pub fn all() -> Options {
    Options::with_all_features()
}

/// No feature on.
pub fn none() -> Options {
    Options { features: Features::default(), ..Options::default() }
}

/// Reads a query with every feature on and forgets where its parts stand.
pub fn tree(text: &str) -> Expr {
    match parse(text, &all()) {
        Ok(expr) => placeless(expr),
        Err(error) => panic!("{text}\n{error}"),
    }
}

/// The same tree, as if all of it stood at the start of the text.
pub fn placeless(mut expr: Expr) -> Expr {
    forget_places(&mut expr);
    expr
}

fn forget_places(expr: &mut Expr) {
    match expr {
        Expr::Aggregate(aggregate) => aggregate.span = Span::default(),
        Expr::Binary(_) => {}
        Expr::Call(call) => call.span = Span::default(),
        Expr::Matrix(matrix) => {
            matrix.span = Span::default();
            forget_in_vector(&mut matrix.vector);
            forget_in_duration(Some(&mut matrix.range));
        }
        Expr::Number(number) => number.span = Span::default(),
        Expr::Paren(paren) => paren.span = Span::default(),
        Expr::String(string) => string.span = Span::default(),
        Expr::Subquery(subquery) => {
            subquery.span = Span::default();
            forget_in_duration(Some(&mut subquery.range));
            forget_in_duration(subquery.step.as_mut());
            forget_in_duration(subquery.offset.as_mut());
        }
        Expr::Unary(unary) => unary.span = Span::default(),
        Expr::Vector(vector) => forget_in_vector(vector),
    }
    expr.children_mut().into_iter().for_each(forget_places);
}

fn forget_in_vector(vector: &mut VectorSelector) {
    vector.span = Span::default();
    forget_in_duration(vector.offset.as_mut());
}

fn forget_in_duration(value: Option<&mut DurationValue>) {
    if let Some(DurationValue::Computed(expr)) = value {
        forget_in_duration_expr(expr);
    }
}

fn forget_in_duration_expr(expr: &mut DurationExpr) {
    match expr {
        DurationExpr::Number(number) => number.span = Span::default(),
        DurationExpr::Step(span) | DurationExpr::Range(span) => *span = Span::default(),
        DurationExpr::Negative { operand, start } => {
            *start = 0;
            forget_in_duration_expr(operand);
        }
        DurationExpr::Paren { inner, start } => {
            *start = 0;
            forget_in_duration_expr(inner);
        }
        DurationExpr::Pick { left, right, .. } | DurationExpr::Binary { left, right, .. } => {
            forget_in_duration_expr(left);
            forget_in_duration_expr(right);
        }
    }
}

/// One query of the case files and what becomes of it.
pub struct Case {
    pub place: String,
    pub options: Options,
    pub query: String,
    /// The canonical form, or the error.
    pub outcome: Result<String, String>,
}

/// Every case of the case files.
pub fn cases() -> Vec<Case> {
    let files = [
        ("calls", include_str!("cases/calls.txt")),
        ("durations", include_str!("cases/durations.txt")),
        ("literals", include_str!("cases/literals.txt")),
        ("modifiers", include_str!("cases/modifiers.txt")),
        ("operators", include_str!("cases/operators.txt")),
        ("selectors", include_str!("cases/selectors.txt")),
        ("text", include_str!("cases/text.txt")),
    ];
    files.iter().flat_map(|(file, text)| cases_of(file, text)).collect()
}

fn cases_of(file: &str, text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut options = none();
    let mut query = None;
    for (index, line) in text.lines().enumerate() {
        let place = format!("{file}.txt:{}", index + 1);
        let (mark, rest) = line.split_at_checked(1).unwrap_or(("", ""));
        let rest = rest.strip_prefix(' ').unwrap_or(rest);
        match mark {
            "" | ";" => {}
            "@" if rest == "every feature" => options = all(),
            "@" if rest == "no feature" => options = none(),
            "?" => query = Some(spelled_out(rest)),
            "=" | "!" => {
                let printed = spelled_out(rest);
                let outcome = if mark == "=" { Ok(printed) } else { Err(printed) };
                let query = query.take().unwrap_or_else(|| panic!("{place}: no query before it"));
                cases.push(Case { place, options: options.clone(), query, outcome });
            }
            _ => panic!("{place}: {line}"),
        }
    }
    cases
}

fn spelled_out(text: &str) -> String {
    text.replace('⏎', "\n").replace('␍', "\r").replace('⇥', "\t").replace('␠', " ")
}

/// A query of Prometheus' own test scripts.
pub struct ScriptQuery {
    pub place: String,
    pub query: String,
    /// The script says it fails, at parsing or later.
    pub fails: bool,
}

/// The folder with Prometheus' test scripts, if it is there.
fn script_folder() -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/promqltest");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: the folder shared/promqltest is not beside this repository");
    None
}

/// Every line of every script, with its place.
fn script_lines() -> Vec<(String, String)> {
    let mut lines = Vec::new();
    let Some(folder) = script_folder() else {
        return lines;
    };
    let mut files: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "test")) {
        let name = file.file_name().expect("a file has a name").to_string_lossy().into_owned();
        for (index, line) in
            fs::read_to_string(file).expect("scripts can be read").lines().enumerate()
        {
            lines.push((format!("{name}:{}", index + 1), line.to_owned()));
        }
    }
    lines
}

/// Every query of the scripts. None if the scripts are not there.
pub fn script_queries() -> Vec<ScriptQuery> {
    let lines = script_lines();
    let mut queries: Vec<ScriptQuery> = Vec::new();
    for (place, line) in lines {
        if let Some(query) = query_of(&line) {
            let fails = line.starts_with("eval_fail");
            queries.push(ScriptQuery { place, query: query.to_owned(), fails });
        } else if line.trim_start().starts_with("expect fail") {
            queries.last_mut().expect("an expectation follows a query").fails = true;
        }
    }
    queries
}

/// The query of a line such as `eval instant at 5m foo` or
/// `eval range from 0 to 5m step 1m foo`.
fn query_of(line: &str) -> Option<&str> {
    let (command, rest) = line.split_once(char::is_whitespace)?;
    if command != "eval" && !command.starts_with("eval_") {
        return None;
    }
    let (kind, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    let words_before = match kind {
        "instant" if rest.trim_start().starts_with("at ") => 2,
        "instant" => 0,
        "range" => 6,
        _ => return None,
    };
    let mut rest = rest.trim_start();
    for _ in 0..words_before {
        rest = rest.split_once(char::is_whitespace)?.1.trim_start();
    }
    Some(rest.trim_end())
}

/// Every description of a series that the scripts load. Start timestamps are the runner's own.
pub fn script_series() -> Vec<(String, String)> {
    let mut series = Vec::new();
    let mut loading = false;
    for (place, line) in script_lines() {
        let line = line.trim();
        if line.starts_with("load") {
            loading = true;
        } else if line.is_empty() {
            loading = false;
        } else if loading && !line.starts_with('#') {
            let metric = line.split_whitespace().next().unwrap_or_default();
            if !metric.ends_with("@st") {
                series.push((place, line.to_owned()));
            }
        }
    }
    series
}
