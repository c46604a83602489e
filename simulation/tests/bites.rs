//! Shows that the checks bite: every deliberate bug, of the state machines and of the drivers, is
//! found within a stated number of seeds. Prints which check found it and after how many, with the
//! state machines' own audits and from outside alone.

use core_workcoord::coordinator::Coordinator;
use core_workcoord::intake::Intake;
use core_workcoord::sabotage::Bug;
use tributary_simulation::{Options, SimBug, Story, Violation, run};

/// Seeds within which every bug must be found.
const SEEDS_AT_MOST: u64 = 300;

/// The first broken promise, and after how many seeds.
fn first_bite(options: &Options<'_>) -> Option<(u64, Violation)> {
    (0..SEEDS_AT_MOST)
        .find_map(|seed| run(&Story::of(seed), options).violation.map(|found| (seed + 1, found)))
}

/// Prints a row of the table; gives the bug's name if it was missed.
fn row(name: &str, options: &Options<'_>) -> Option<String> {
    let audited = first_bite(options);
    let outside = first_bite(&Options { from_outside_only: true, ..*options });
    let cell = |bite: &Option<(u64, Violation)>| match bite {
        Some((seeds, found)) => format!("{seeds:>4} {:<5}", found.number.to_string()),
        None => String::from("   – missed"),
    };
    let what = outside.as_ref().map_or("", |(_, found)| found.what.as_str());
    let what: String = what.chars().take(110).collect();
    println!("{name:<24}{}   {}   {what}", cell(&audited), cell(&outside));
    (audited.is_none() || outside.is_none()).then(|| name.into())
}

fn heading(of: &str) {
    println!("{of:<24}audited      outside      as seen from outside");
}

#[test]
fn every_bug_of_the_state_machines_is_found() {
    heading("bug");
    let missed: Vec<String> = Bug::ALL
        .iter()
        .filter_map(|bug| {
            let in_api = |machine: &mut Coordinator| machine.sabotage(*bug);
            let in_worker = |machine: &mut Intake| machine.sabotage(*bug);
            let options = Options {
                prepare_coordinator: Some(&in_api),
                prepare_intake: Some(&in_worker),
                ..Options::default()
            };
            row(&format!("{bug:?}"), &options)
        })
        .collect();
    assert_eq!(missed, Vec::<String>::new(), "not found within {SEEDS_AT_MOST} seeds");
}

#[test]
fn every_bug_of_the_drivers_is_found() {
    heading("driver bug");
    let missed: Vec<String> = SimBug::ALL
        .iter()
        .filter_map(|bug| {
            row(&format!("{bug:?}"), &Options { sim_bug: Some(*bug), ..Options::default() })
        })
        .collect();
    assert_eq!(missed, Vec::<String>::new(), "not found within {SEEDS_AT_MOST} seeds");
}
