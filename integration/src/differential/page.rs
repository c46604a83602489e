//! The page `docs/promql.md`: every part of the language, whether it is here, what it needs, and how
//! often it has been compared with Prometheus. Written from a report, and read back to see that
//! nobody has written on it by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use tributary_promql::ValueType;
use tributary_promql::functions::{self, Arity, Function};
use tributary_promqltest::{DataSet, Engine, LocalEngine, Query, Settings, Time};

use super::coverage::{AGGREGATIONS, NOT_IN_3_5, Part, Syntax, all_parts};
use super::explained::{CHANCE, DIGITS, EXPLANATIONS, ROUNDING};
use super::run::Report;

const TITLE: &str = "# PromQL, as it is here and as Prometheus has it\n";

const COMMAND: &str = "TRIBUTARY_WRITE_DOCS=1 TRIBUTARY_PAIRS=20000 integration/with-prometheus.sh \\\n  \
                       cargo test --package tributary-integration --test differential";

const FUNCTIONS_FLAG: &str = "`promql-experimental-functions`";

/// Everything on the page that is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The version of Prometheus.
    pub version: String,
    /// Questions asked, the same to the last bit, the same within the tolerance, with an error on
    /// both sides, without any values.
    pub totals: [usize; 5],
    /// How often each reason was the reason.
    pub reasons: BTreeMap<&'static str, usize>,
    /// Questions with each part, those with values in the answer, and reasons of differences.
    pub parts: BTreeMap<Part, (usize, usize, BTreeSet<&'static str>)>,
}

/// All reasons in the order of the page.
pub fn reasons() -> Vec<&'static str> {
    EXPLANATIONS.iter().map(|known| known.reason).chain([DIGITS, ROUNDING, CHANCE]).collect()
}

impl Counts {
    /// What a report has counted.
    pub fn of(report: &Report, version: &str) -> Self {
        let Report { pairs, same_bits, close, errors, empty, .. } = *report;
        let parts = report
            .parts
            .iter()
            .map(|(part, tally)| (*part, (tally.pairs, tally.answered, tally.reasons.clone())));
        Self {
            version: version.to_owned(),
            totals: [pairs, same_bits, close, errors, empty],
            reasons: report.explained.clone(),
            parts: parts.collect(),
        }
    }

    /// Reads a page back; none if it is not one that [`Counts::page`] has written.
    pub fn read(page: &str) -> Option<Self> {
        let mut counts = Self::default();
        let mut numbers = Vec::new();
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("Compared with Prometheus ") {
                counts.version = rest.trim_end_matches(':').to_owned();
            } else if let Some(rest) = line.strip_prefix("- ") {
                numbers.push(rest.split(' ').next()?.replace(',', "").parse().ok()?);
            }
        }
        counts.totals = numbers.try_into().ok()?;
        let rows: BTreeMap<&str, Vec<&str>> = page.lines().filter_map(row).collect();
        for (number, reason) in reasons().into_iter().enumerate() {
            let cells = rows.get((number + 1).to_string().as_str())?;
            let count: usize = cells.first()?.replace(',', "").parse().ok()?;
            if count > 0 {
                counts.reasons.insert(reason, count);
            }
        }
        for part in all_parts() {
            let [.., pairs, answered, why] = rows.get(name(part).as_str())?.as_slice() else {
                return None;
            };
            if *pairs == "–" {
                continue;
            }
            let number = |text: &str| text.replace(',', "").parse::<usize>().ok();
            let all = reasons();
            let why = why.split(", ").filter(|text| !text.is_empty() && *text != "–");
            let why: Option<BTreeSet<&'static str>> =
                why.map(|text| all.get(text.parse::<usize>().ok()? - 1).copied()).collect();
            counts.parts.insert(part, (number(pairs)?, number(answered)?, why?));
        }
        Some(counts)
    }

    /// Writes the page.
    pub fn page(&self) -> String {
        let mut page = String::new();
        let [pairs, same_bits, close, errors, empty] = self.totals.map(grouped);
        let explained = grouped(self.reasons.values().sum());
        let _ = write!(
            page,
            "{TITLE}\n\
             Written by the differential test, which asks both the same random questions about the \
             same random\nsamples; never by hand:\n\n\
             ```sh\n{COMMAND}\n```\n\n\
             Compared with Prometheus {}:\n\n\
             - {pairs} questions, half of them for one instant and half over a range;\n\
             - {same_bits} answers that are the same to the last bit;\n\
             - {close} that are the same within a relative tolerance of 1e-9;\n\
             - {errors} errors among all these, mostly in the same words;\n\
             - {empty} answers without any values.\n\n\
             {explained} differ for a reason that is listed at the end; none differs without one. We \
             follow the newest\nPrometheus, which has changed in places since that version. Samples are \
             floats: native histograms\nare not there yet, so functions and operators that only make \
             sense for them answer with nothing, as\nPrometheus' do for floats. `pairs` counts the \
             questions that contain something, `with values` those\nof them whose answer is not empty, \
             and `reasons` names the differences that begin \
             there, with the
same operands on both sides.
",
            self.version
        );
        page.push_str("\n## Functions\n\n");
        page.push_str(HEAD);
        for function in functions::functions() {
            let needs = if function.experimental { FUNCTIONS_FLAG } else { "–" };
            self.row(&mut page, Part::Function(function.name), &support(function), needs);
        }
        page.push_str("\n## Aggregations\n\n");
        page.push_str(HEAD);
        for op in AGGREGATIONS {
            let needs = if op.is_experimental() { FUNCTIONS_FLAG } else { "–" };
            self.row(&mut page, Part::Aggregation(op.text()), "yes", needs);
        }
        page.push_str("\n## Operators\n\n");
        page.push_str(HEAD);
        for part in all_parts() {
            if let Part::Operator(text) = part {
                self.row(&mut page, part, operator_support(text), "–");
            }
        }
        page.push_str("\n## Everything else\n\n");
        page.push_str(HEAD);
        for (syntax, _) in Syntax::ALL {
            let (supported, needs) = syntax.support();
            self.row(&mut page, Part::Syntax(*syntax), supported, needs);
        }
        page.push_str("\n## Reasons of differences\n\n| | times | reason |\n|---|---|---|\n");
        for (number, reason) in reasons().into_iter().enumerate() {
            let count = self.reasons.get(reason).copied().unwrap_or_default();
            let _ = writeln!(page, "| {} | {} | {reason} |", number + 1, grouped(count));
        }
        page
    }

    fn row(&self, page: &mut String, part: Part, supported: &str, needs: &str) {
        let (pairs, answered, why) = match self.parts.get(&part) {
            None => ("–".to_owned(), "–".to_owned(), "–".to_owned()),
            Some((pairs, answered, why)) => {
                let numbers =
                    reasons().into_iter().zip(1..).filter(|(reason, _)| why.contains(reason));
                let numbers: Vec<String> = numbers.map(|(_, number)| number.to_string()).collect();
                let why = if numbers.is_empty() { "–".to_owned() } else { numbers.join(", ") };
                (grouped(*pairs), grouped(*answered), why)
            }
        };
        let name = name(part);
        let _ = writeln!(page, "| {name} | {supported} | {needs} | {pairs} | {answered} | {why} |");
    }
}

const HEAD: &str =
    "| | here | needs | pairs | with values | reasons |\n|---|---|---|---|---|---|\n";

/// The first cell of a row of a table, and the others.
fn row(line: &str) -> Option<(&str, Vec<&str>)> {
    let mut cells = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ");
    Some((cells.next()?, cells.collect()))
}

/// A part as the page names it.
pub fn name(part: Part) -> String {
    match part {
        Part::Function(name) | Part::Aggregation(name) | Part::Operator(name) => {
            format!("`{name}`")
        }
        Part::Syntax(syntax) => {
            let text = Syntax::ALL.iter().find(|(one, _)| *one == syntax).map(|(_, text)| *text);
            text.unwrap_or_default().to_owned()
        }
    }
}

/// A number with its thousands apart.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Whether a function is here: asked of the engine itself.
fn support(function: &Function) -> String {
    let count = match function.arity {
        Arity::Exactly(count) | Arity::Between(count, _) | Arity::AtLeast(count) => count,
    };
    let argument = |index: usize| match function.argument_type(index) {
        Some(ValueType::Scalar) | None => "0.5",
        Some(ValueType::Vector) => "m",
        Some(ValueType::Matrix) => "m[5m]",
        Some(ValueType::String) => "\"a\"",
    };
    let arguments: Vec<&str> = (0..count).map(argument).collect();
    let query = Query {
        text: format!("{}({})", function.name, arguments.join(", ")),
        time: Time::Instant { at: 0 },
        settings: Settings::default(),
    };
    match LocalEngine::default().answer(&DataSet::default(), &query) {
        Err(error) if error.contains("not supported") => "not yet".to_owned(),
        _ if NOT_IN_3_5.contains(&function.name) => "yes, new since 3.5".to_owned(),
        _ if is_native(function.name) => "for floats".to_owned(),
        _ => "yes".to_owned(),
    }
}

/// A function that answers with nothing for floats.
pub fn is_native(name: &str) -> bool {
    ["avg", "count", "stddev", "stdvar", "sum"]
        .iter()
        .any(|of| name.strip_prefix("histogram_") == Some(of))
}

fn operator_support(text: &str) -> &'static str {
    if matches!(text, "</" | ">/") { "for floats, new since 3.5" } else { "yes" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_back_as_what_it_was_written_from() {
        let mut counts = Counts {
            version: "3.5.3".to_owned(),
            totals: [20_000, 3, 2, 1, 0],
            ..Counts::default()
        };
        for (number, part) in all_parts().into_iter().enumerate() {
            let why =
                if number.is_multiple_of(3) { BTreeSet::from([ROUNDING]) } else { BTreeSet::new() };
            counts.parts.insert(part, (number * 1000, number, why));
        }
        counts.parts.remove(&Part::Function("start_timestamp"));
        counts.reasons.insert(ROUNDING, 1234);
        let page = counts.page();
        assert_eq!(Counts::read(&page), Some(counts));
        assert!(page.contains("1,234") && page.contains("20,000 questions"));
        assert_eq!(Counts::read(&page.replace("`abs`", "`absolute`")), None);
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
