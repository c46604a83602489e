//! Prometheus 3.5 and ours, asked the same thousands of random questions about the same random
//! data. Needs a Prometheus: `integration/with-prometheus.sh` finds or fetches one.
//!
//!     TRIBUTARY_PAIRS        questions to ask (2000)
//!     TRIBUTARY_SEED         the first seed (1)
//!     TRIBUTARY_WRITE_DOCS   set to write `docs/promql.md` from what was found

use std::collections::BTreeSet;
use std::env;
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Mutex;

use tributary_integration::differential::arena::{Arena, Subject};
use tributary_integration::differential::coverage::{NOT_IN_3_5, Part, all_parts};
use tributary_integration::differential::grammar::Question;
use tributary_integration::differential::ours::Ours;
use tributary_integration::differential::outcome::Outcome;
use tributary_integration::differential::page::{Counts, is_native};
use tributary_integration::differential::peer::{BINARY, Binary, Client};
use tributary_integration::differential::run::{Plan, run};
use tributary_promql::Data;
use tributary_promqltest::DataSet;

/// The binary, or a loud word that nothing is tested.
fn prometheus() -> Option<Binary> {
    let found = Binary::find();
    if found.is_none() {
        // Past the test harness, which would keep it from those who need to know.
        use std::io::Write as _;
        let _ = writeln!(
            std::io::stderr(),
            "\n*** SKIPPED: no Prometheus 3 found, so nothing is compared with it. Set {BINARY}, or \
             run integration/with-prometheus.sh cargo test …\n"
        );
    }
    found
}

fn setting<T: FromStr<Err: Debug>>(name: &str, default: T) -> T {
    match env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{name}: {error:?}")),
        Err(_) => default,
    }
}

#[test]
fn the_same_answers_as_prometheus() {
    let Some(binary) = prometheus() else { return };
    let plan = Plan {
        seed: setting("TRIBUTARY_SEED", 1),
        pairs: setting("TRIBUTARY_PAIRS", 2000),
        threads: 2,
    };
    let worlds = plan.worlds();
    let arena = Arena::new(&binary, &worlds).unwrap();
    let report = run(&arena, &worlds, &Ours, plan).unwrap();
    println!("Prometheus {}\n{report}", binary.version);
    assert!(report.differences.is_empty(), "differences without a known reason, see above");
    if env::var_os("TRIBUTARY_WRITE_DOCS").is_some() {
        fs::write(page_path(), Counts::of(&report, &binary.version).page()).unwrap();
    }
}

fn page_path() -> PathBuf {
    // Asked for now, not when this was compiled: clones may share a target directory.
    let here = env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    Path::new(&here).join("../docs/promql.md")
}

#[test]
fn the_page_names_every_part_of_the_language_and_was_not_written_by_hand() {
    let page = fs::read_to_string(page_path()).unwrap();
    let counts = Counts::read(&page).expect("the page has a row for every part and every reason");
    assert_eq!(counts.page(), page, "write it anew, see its first lines");
    for part in all_parts() {
        let (pairs, answered) =
            counts.parts.get(&part).map_or((0, 0), |(pairs, answered, _)| (*pairs, *answered));
        assert_eq!(pairs > 0, is_in_3_5(part), "{part:?}");
        let has_values = !matches!(part, Part::Function(name) if is_native(name));
        assert!(answered > 0 || !has_values || !is_in_3_5(part), "{part:?} never had any values");
    }
}

/// Prometheus 3.5 has it.
fn is_in_3_5(part: Part) -> bool {
    match part {
        Part::Function(name) => !NOT_IN_3_5.contains(&name),
        Part::Aggregation(_) => true,
        Part::Operator(text) => !matches!(text, "</" | ">/"),
        Part::Syntax(syntax) => !syntax.support().0.contains("new since 3.5"),
    }
}

/// Makes an outcome wrong.
type Spoil = fn(&Question, &mut Outcome);

/// Prometheus itself, through other connections, with something wrong in it.
struct Twin {
    clients: [Mutex<Client>; 2],
    spoil: Spoil,
}

impl Twin {
    fn new(arena: &Arena, spoil: Spoil) -> Self {
        Self { clients: [false, true].map(|delayed| Mutex::new(arena.connect(delayed))), spoil }
    }
}

impl Subject for Twin {
    fn answer(&self, _: &DataSet, question: &Question) -> Outcome {
        let client = &self.clients[usize::from(question.delayed_name_removal)];
        let mut client = client.lock().expect("nobody panics while asking");
        let mut outcome = client.ask(question).expect("Prometheus answers");
        (self.spoil)(question, &mut outcome);
        outcome
    }
}

#[test]
fn prometheus_agrees_with_itself_and_every_kind_of_mistake_is_found() {
    let Some(binary) = prometheus() else { return };
    let plan = Plan { seed: 100, pairs: 250, threads: 1 };
    let worlds = plan.worlds();
    let arena = Arena::new(&binary, &worlds).unwrap();
    let report = run(&arena, &worlds, &Twin::new(&arena, |_, _| {}), plan).unwrap();
    assert!(report.differences.is_empty(), "{report}");
    // Neither to the last bit nor always: Prometheus walks through maps at random.
    assert!(report.same_bits + report.close >= 240, "{report}");
    assert!(report.errors < 60 && report.empty < 120, "{report}");

    let spoils: [(&str, Spoil); 4] = [
        ("deriv(", |question, outcome| {
            // A value that is a little off.
            if let (true, Outcome::Answered(told)) = (question.text.contains("deriv("), outcome) {
                match &mut told.data {
                    Data::Vector { series, .. } => series.iter_mut().for_each(|one| one.1 *= 1.001),
                    Data::Matrix(series) => {
                        series.iter_mut().flat_map(|one| &mut one.values).for_each(|v| *v *= 1.001);
                    }
                    Data::Scalar { .. } | Data::String { .. } => {}
                }
            }
        }),
        ("group", |question, outcome| {
            // A series that is lost.
            if let (true, Outcome::Answered(told)) = (question.text.contains("group"), outcome) {
                match &mut told.data {
                    Data::Vector { series, .. } => drop(series.pop()),
                    Data::Matrix(series) => drop(series.pop()),
                    Data::Scalar { .. } | Data::String { .. } => {}
                }
            }
        }),
        ("", |_, outcome| {
            if let Outcome::Failed(text) = outcome {
                text.push('!');
            }
        }),
        ("", |_, outcome| {
            if let Outcome::Answered(told) = outcome {
                told.infos = BTreeSet::new();
            }
        }),
    ];
    for (part, spoil) in spoils {
        let report = run(&arena, &worlds, &Twin::new(&arena, spoil), plan).unwrap();
        assert!(!report.differences.is_empty(), "{part} was spoilt and nobody saw it");
        let scripts = report.differences.iter().filter_map(|found| found.script.as_ref());
        for script in scripts {
            assert!(script.contains(part) && script.contains("eval "), "{script}");
        }
    }
}
