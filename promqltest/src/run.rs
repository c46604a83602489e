//! Puts the cases of a script to engines and gathers what came of it. Every instant query is asked
//! again as the middle of a range query and, with `@` on its selectors, at other times: Prometheus'
//! own runner does the same.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tributary_promql::Data;

use crate::agree::{Outcome, difference};
use crate::check::{Mismatch, check_annotations, check_error, check_values};
use crate::data::DataSet;
use crate::engine::{Query, Settings, Time, Way};
use crate::needs::{Need, Special};
use crate::pinned::{asks_for_query, other_times, pinned};
use crate::script::{Case, Command, Expected, Script, ScriptError};

/// What came of one script.
#[derive(Clone, Debug, Default)]
pub struct FileReport {
    /// The script.
    pub name: String,
    /// Cases whose every answer was right.
    pub passed: usize,
    /// Cases that failed.
    pub failed: usize,
    /// What went wrong in them: at least one for each.
    pub failures: Vec<Failure>,
    /// Cases that were not asked, by reason.
    pub skipped: BTreeMap<Need, usize>,
}

/// One thing that went wrong.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The line of the case, the first being 1.
    pub line: usize,
    /// The query, as it was asked.
    pub query: String,
    /// The way that gave the wrong answer.
    pub way: String,
    /// What was expected.
    pub expected: String,
    /// What came instead.
    pub got: String,
}

const MINUTE: i64 = 60_000;

/// Puts every case of a script to all ways. The first must give what is expected, the others what
/// the first gives. `on_case` is called after each case.
///
/// # Panics
///
/// Without any way.
pub fn run(name: &str, script: &Script, ways: &[Way], mut on_case: impl FnMut()) -> FileReport {
    assert!(!ways.is_empty(), "somebody has to answer");
    let mut report = FileReport { name: name.to_owned(), ..FileReport::default() };
    let mut data = DataSet::default();
    let mut special = Special::default();
    for command in &script.commands {
        follow(&mut data, command);
        match command {
            Command::Clear => special = Special::default(),
            Command::Load(load) => special.load(load),
            Command::CutAt(_) => {}
            Command::Eval(case) => {
                match special.need_of(case) {
                    Some(need) => *report.skipped.entry(need).or_default() += 1,
                    None => {
                        let failures = Trial { case, data: &data, ways }.run();
                        report.take(failures);
                    }
                }
                on_case();
            }
        }
    }
    report
}

/// All data that cases of a script are asked over, in the order in which the script comes to it. For
/// engines that have to bring it somewhere first.
pub fn data_sets(script: &Script) -> Vec<DataSet> {
    let mut data = DataSet::default();
    let mut is_new = true;
    let mut sets = Vec::new();
    for command in &script.commands {
        follow(&mut data, command);
        match command {
            Command::Clear | Command::Load(_) | Command::CutAt(_) => is_new = true,
            Command::Eval(_) if is_new => {
                sets.push(data.clone());
                is_new = false;
            }
            Command::Eval(_) => {}
        }
    }
    sets
}

/// The data after a command.
fn follow(data: &mut DataSet, command: &Command) {
    match command {
        Command::Clear => *data = DataSet::default(),
        Command::Load(load) => {
            let series = load.series.iter();
            data.load(series.map(|(l, series)| (l.clone(), series.samples.clone())).collect());
        }
        Command::CutAt(times) => data.cut_at(times.clone()),
        Command::Eval(_) => {}
    }
}

impl FileReport {
    /// Of a script that can't be read: one failure, at the place where reading ended.
    pub fn unreadable(name: &str, error: ScriptError) -> Self {
        let failure = Failure {
            line: error.line,
            query: String::new(),
            way: String::new(),
            expected: String::from("a script"),
            got: error.message,
        };
        let mut report = Self { name: name.to_owned(), ..Self::default() };
        report.take(vec![failure]);
        report
    }

    /// Cases that were not asked.
    pub fn skips(&self) -> usize {
        self.skipped.values().sum()
    }

    /// Takes in what went wrong in one case.
    fn take(&mut self, failures: Vec<Failure>) {
        if failures.is_empty() {
            self.passed += 1;
        } else {
            self.failed += 1;
            self.failures.extend(failures);
        }
    }
}

/// One case before all ways.
struct Trial<'a> {
    case: &'a Case,
    data: &'a DataSet,
    ways: &'a [Way],
}

/// The case is over: it has failed.
struct Over(Vec<Failure>);

impl Trial<'_> {
    fn run(&self) -> Vec<Failure> {
        let done = match self.case.time {
            Time::Instant { at } => self.instants(at),
            Time::Range { .. } => self.whole(&self.case.text, self.case.time).map(drop),
        };
        done.err().map_or_else(Vec::new, |Over(failures)| failures)
    }

    /// The instant query itself, then with `@` at other times.
    fn instants(&self, at: i64) -> Result<(), Over> {
        self.instant(&self.case.text, at)?;
        let Some(text) = pinned(&self.case.expr, at) else { return Ok(()) };
        other_times(at).into_iter().try_for_each(|time| self.instant(&text, time))
    }

    /// One instant query, alone and as the middle of a range query.
    fn instant(&self, text: &str, at: i64) -> Result<(), Over> {
        let answer = self.whole(text, Time::Instant { at })?;
        let expect = &self.case.expect;
        let has_no_range = expect.window.is_some() || matches!(expect.values, Expected::String(_));
        let Some(data) = answer else { return Ok(()) };
        if has_no_range || asks_for_query(text) {
            return Ok(());
        }
        let time = Time::Range { start: at - MINUTE, end: at + MINUTE, step: MINUTE };
        let query = self.query(text, time);
        let answer = match self.ask(&query)? {
            Ok(answer) => answer,
            Err(error) => {
                let expected = String::from("the answer at the middle of the range");
                return Err(self.wrong(&query, Mismatch { expected, got: error }));
            }
        };
        // The series of a range query are sorted, whatever their order at an instant.
        if expect.ordered {
            return Ok(());
        }
        self.middle(at, &answer.data, &data)
            .and_then(|data| check_values(self.case, Time::Instant { at }, &data))
            .map_err(|mismatch| self.wrong(&query, mismatch))
    }

    /// What a range query says about one instant, in the type the instant query had.
    fn middle(&self, at: i64, range: &Data, instant: &Data) -> Result<Data, Mismatch> {
        let Data::Matrix(series) = range else {
            let got = format!("a {}", range.value_type());
            return Err(Mismatch { expected: String::from("a matrix"), got });
        };
        if !series.is_sorted_by(|one, other| one.labels <= other.labels) {
            let expected = String::from("series sorted by labels");
            return Err(Mismatch { expected, got: String::from("another order") });
        }
        let series: Vec<_> = series
            .iter()
            .filter_map(|points| {
                let index = points.ts.binary_search(&at).ok()?;
                Some((points.labels.clone(), points.values[index]))
            })
            .collect();
        match (instant, series.as_slice()) {
            (Data::Scalar { .. }, [(_, value)]) => Ok(Data::Scalar { t: at, value: *value }),
            (Data::Scalar { .. }, _) => {
                let got = format!("{} series", series.len());
                Err(Mismatch { expected: String::from("one series, of a scalar"), got })
            }
            _ => Ok(Data::Vector { t: at, series }),
        }
    }

    /// Asks and judges all of the answer. Gives the values, or none where an error was expected.
    fn whole(&self, text: &str, time: Time) -> Result<Option<Data>, Over> {
        let query = self.query(text, time);
        let outcome = self.ask(&query)?;
        let judged = match outcome {
            Ok(answer) if self.case.expect.fails => {
                let got = format!("an answer, a {}", answer.data.value_type());
                Err(Mismatch { expected: String::from("an error"), got })
            }
            Ok(answer) => check_annotations(self.case, text, &answer)
                .and_then(|()| check_values(self.case, time, &answer.data))
                .map(|()| Some(answer.data)),
            Err(error) if self.case.expect.fails => check_error(self.case, &error).map(|()| None),
            Err(error) => Err(Mismatch {
                expected: String::from("an answer"),
                got: format!("error: {error}"),
            }),
        };
        judged.map_err(|mismatch| self.wrong(&query, mismatch))
    }

    fn query(&self, text: &str, time: Time) -> Query {
        Query { text: text.to_owned(), time, settings: Settings::default() }
    }

    /// Asks all ways. They agree, or the case is over.
    fn ask(&self, query: &Query) -> Result<Outcome, Over> {
        let mut outcomes = Vec::with_capacity(self.ways.len());
        let mut failures = Vec::new();
        for (way, engine) in self.ways {
            match catch_unwind(AssertUnwindSafe(|| engine.answer(self.data, query))) {
                Ok(outcome) => outcomes.push((way, outcome)),
                Err(panic) => {
                    let expected = String::from("an answer or an error");
                    let mismatch = Mismatch { expected, got: told(&*panic) };
                    failures.push(self.failure(query, way, mismatch));
                }
            }
        }
        let mut outcomes = outcomes.into_iter();
        let Some((_, first)) = outcomes.next() else { return Err(Over(failures)) };
        for (way, other) in outcomes {
            let mismatch = difference(&first, &other, &query.text);
            failures.extend(mismatch.map(|mismatch| self.failure(query, way, mismatch)));
        }
        if failures.is_empty() { Ok(first) } else { Err(Over(failures)) }
    }

    /// The first way, and so all of them, gave a wrong answer.
    fn wrong(&self, query: &Query, mismatch: Mismatch) -> Over {
        Over(vec![self.failure(query, &self.ways[0].0, mismatch)])
    }

    fn failure(&self, query: &Query, way: &str, mismatch: Mismatch) -> Failure {
        Failure {
            line: self.case.line,
            query: format!("{} {}", query.time, query.text),
            way: way.to_owned(),
            expected: mismatch.expected,
            got: mismatch.got,
        }
    }
}

fn told(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("a panic: {}", text.unwrap_or_else(|| String::from("of an unknown kind")))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let indented = |text: &str| text.replace('\n', "\n      ");
        if !self.query.is_empty() {
            writeln!(f, "  {}", indented(&self.query))?;
        }
        if !self.way.is_empty() {
            writeln!(f, "    way       {}", self.way)?;
        }
        writeln!(f, "    expected  {}", indented(&self.expected))?;
        write!(f, "    got       {}", indented(&self.got))
    }
}
