//! The whole stack in a simulated network, one seed after the other. Everything that is random in a
//! process, and every clock, follows from the seed, and every story has a process of its own, so that
//! one that goes wrong can be told again:
//!
//! ```text
//! cargo test --workspace --test stack                                the suite, as CI runs it
//! cargo test --workspace --test stack -- --seeds 1000 --from 0       more stories
//! cargo test --workspace --test stack -- --seeds 5 --twice           whether they repeat
//! cargo test --workspace --test stack -- --seeds 50 --bug trusts-bytes
//!                                                                    with a deliberate fault
//! cargo test --workspace --test stack -- --story 7 --aloud           one, with all that is said;
//!                                                                    --everything: each message
//! ```
//!
//! `TRIBUTARY_STACK_SEEDS` says how many stories the suite tells (default 24).
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

use std::collections::BTreeMap;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use core_workcoord::sabotage::Bug;
use mad_turmoil::rand::{get_rng, set_rng};
use mad_turmoil::time::SimClocksGuard;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rustix::time::{ClockId, clock_gettime};
use tributary_integration::stack::{Listen, Material, Tampering, run};

/// Deliberate faults that must be found, with the seed from which on they are looked for.
const BITES: &[(&str, u64)] = &[
    ("trusts-bytes", 35),
    ("hoards-artifacts", 0),
    ("mixes-artifacts", 0),
    ("LoseLostWork", 1),
    ("TrustSilence", 10),
    ("LeakQuery", 0),
    ("ForgetClientGone", 9),
    ("ForgetRedial", 1),
    ("LeakSlot", 2),
    ("IgnoreTtl", 0),
    ("UnconfirmedCancel", 0),
];

/// They must be found in so many stories.
const SEEDS_TO_BITE: u64 = 30;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        Some(arguments.get(at + 1)?.as_str())
    };
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let number = |name: &str| value(name).map(|text| text.parse::<u64>().unwrap());
    let bug = value("--bug");
    let clean = if has("--list") {
        // For those who run tests one by one: this is one.
        if !has("--ignored") {
            println!("the_whole_stack_in_a_simulated_network: test");
        }
        true
    } else if let Some(seed) = number("--story") {
        let listen = match (has("--aloud"), has("--everything")) {
            (true, true) => Listen::EverythingAloud,
            (true, false) => Listen::Aloud,
            (false, true) => Listen::Everything,
            (false, false) => Listen::Errors,
        };
        one(seed, bug, listen)
    } else if let Some(seeds) = number("--seeds") {
        let from = number("--from").unwrap_or_default();
        if has("--twice") { repeat(from, seeds) } else { tell(from, seeds, bug) }
    } else {
        let seeds = std::env::var("TRIBUTARY_STACK_SEEDS").map_or(24, |text| text.parse().unwrap());
        tell(0, seeds, None) && repeat(0, 3) && BITES.iter().all(|(bug, from)| bites(bug, *from))
    };
    if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What is wrong on purpose, by name.
fn tampering(name: &str) -> Tampering {
    let mut tampering = Tampering::default();
    match name {
        "trusts-bytes" => tampering.trusts_bytes = true,
        "hoards-artifacts" => tampering.hoards_artifacts = true,
        "mixes-artifacts" => tampering.mixes_artifacts = true,
        name => {
            let bug = Bug::ALL.into_iter().find(|bug| format!("{bug:?}") == name);
            let bug = bug.unwrap_or_else(|| panic!("there is no deliberate fault {name}"));
            tampering.in_coordinator = Arc::new(move |machine| machine.sabotage(bug));
            tampering.in_intake = Arc::new(move |machine| machine.sabotage(bug));
        }
    }
    tampering
}

/// Tells a story in this process, which tells no other, and says what it came to.
fn one(seed: u64, bug: Option<&str>, listen: Listen) -> bool {
    set_rng(StdRng::seed_from_u64(0));
    let material = Arc::new(Material::make());
    let tampering = bug.map_or_else(Tampering::default, tampering);
    // A new thread's hash maps begin anew, whatever was made before.
    let told = thread::spawn(move || {
        *get_rng() = StdRng::seed_from_u64(seed);
        let _clocks = SimClocksGuard::init();
        run(seed, &material, &tampering, listen)
    });
    let verdict = told.join().unwrap();
    println!("seed {seed}\n{}", verdict.log.join("\n"));
    println!("hash\t{:016x}\ntime\t{}", verdict.hash, verdict.time.as_millis());
    for (kind, count) in &verdict.faults {
        println!("fault\t{kind}\t{count}");
    }
    for (end, count) in &verdict.ends {
        println!("end\t{end}\t{count}");
    }
    for violation in &verdict.violations {
        println!("violation\t{}", violation.replace('\n', " "));
    }
    verdict.violations.is_empty()
}

/// What a story came to, as its process told it.
#[derive(Default)]
struct Told {
    text: String,
    hash: String,
    time: Duration,
    faults: BTreeMap<String, u32>,
    ends: BTreeMap<String, u32>,
    violations: Vec<String>,
}

/// Has a story told by a process of its own.
fn told(seed: u64, bug: Option<&str>, listen: Listen) -> Told {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--story", &seed.to_string()]);
    if let Some(bug) = bug {
        command.args(["--bug", bug]);
    }
    if listen == Listen::Everything {
        command.arg("--everything");
    }
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().unwrap();
    let mut told = Told { text: String::from_utf8(output.stdout).unwrap(), ..Told::default() };
    for line in told.text.lines() {
        let mut parts = line.split('\t');
        let (what, first) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let mut count = || parts.next().unwrap().parse().unwrap();
        match what {
            "hash" => told.hash = first.to_owned(),
            "time" => told.time = Duration::from_millis(first.parse().unwrap()),
            "fault" => _ = told.faults.insert(first.to_owned(), count()),
            "end" => _ = told.ends.insert(first.to_owned(), count()),
            "violation" => told.violations.push(first.to_owned()),
            _ => {}
        }
    }
    if told.hash.is_empty() || (told.violations.is_empty() && !output.status.success()) {
        told.violations.push(format!("the process of the story ended with {}", output.status));
    }
    told
}

/// Tells some, as many at once as there are cores, and says what they came to. Whether nothing was
/// wrong.
fn tell(from: u64, count: u64, bug: Option<&str>) -> bool {
    let begun = now();
    let next = AtomicU64::new(from);
    let tellers = thread::available_parallelism().map_or(1, usize::from);
    let stories = thread::scope(|scope| {
        let teller = || {
            let mut stories = Vec::new();
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= from + count {
                    return stories;
                }
                let told = told(seed, bug, Listen::Errors);
                if !told.violations.is_empty() {
                    println!("{}", told.text);
                }
                stories.push((seed, told));
            }
        };
        let tellers: Vec<_> = (0..tellers).map(|_| scope.spawn(teller)).collect();
        tellers.into_iter().flat_map(|teller| teller.join().unwrap()).collect::<Vec<_>>()
    });
    let took = (now() - begun).as_secs_f64();
    let (mut faults, mut ends) = (BTreeMap::new(), BTreeMap::new());
    for (_, told) in &stories {
        for (all, own) in [(&mut faults, &told.faults), (&mut ends, &told.ends)] {
            for (name, count) in own {
                *all.entry(name.clone()).or_insert(0) += count;
            }
        }
    }
    let hours = stories.iter().map(|(_, told)| told.time).sum::<Duration>().as_secs_f64() / 3_600.0;
    #[expect(clippy::cast_precision_loss, reason = "a figure to look at")]
    let pace = count as f64 / took;
    println!(
        "{count} stories from seed {from}: {hours:.1} h told in {took:.0} s, {pace:.1} a second"
    );
    let listed = |all: &BTreeMap<String, u32>| {
        all.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
    };
    println!("faults: {}", listed(&faults));
    println!("queries: {}", listed(&ends));
    let mut bad: Vec<_> =
        stories.iter().filter(|(_, told)| !told.violations.is_empty()).map(|it| it.0).collect();
    bad.sort_unstable();
    println!("stories with a violation: {} {bad:?}", bad.len());
    bad.is_empty()
}

/// The same seed gives the same story, to the last message on the network.
fn repeat(from: u64, count: u64) -> bool {
    (from..from + count).all(|seed| {
        let (one, other) =
            (told(seed, None, Listen::Everything), told(seed, None, Listen::Everything));
        let same = one.hash == other.hash && !one.hash.is_empty();
        println!("seed {seed} told twice: {} {}", one.hash, other.hash);
        if !same {
            let differs = one.text.lines().zip(other.text.lines()).find(|(one, two)| one != two);
            println!("it is not the same story; first difference: {differs:?}");
        }
        same
    })
}

/// A deliberate fault is found.
fn bites(bug: &str, from: u64) -> bool {
    let found = (from..from + SEEDS_TO_BITE).find_map(|seed| {
        let told = told(seed, Some(bug), Listen::Errors);
        told.violations.into_iter().next().map(|violation| (seed, violation))
    });
    match &found {
        Some((seed, violation)) => {
            let short: String = violation.chars().take(100).collect();
            println!("{bug}: found with seed {seed}: {short}");
        }
        None => println!("{bug}: NOT FOUND with {SEEDS_TO_BITE} seeds"),
    }
    found.is_some()
}

/// The machine's own clock: those of the process belong to the stories.
fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}
