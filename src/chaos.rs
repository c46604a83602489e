//! `tributary chaos`: faults against a cluster of processes of this very binary. The suite is
//! `tributary_chaos`; here it is asked, and what it found is told.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::runtime::Builder;
use tributary_chaos::bite::bite;
use tributary_chaos::network::{self, Network, Wish};
use tributary_chaos::scenario::{self, Size, Story};
use tributary_chaos::{ChaosError, Kind, Report, Scenario, Terms};
use tributary_process::signals::Signals;

use crate::cli::{Problem, Verdict};
use crate::output;

/// What a run is and what the exit code says, for the help.
pub(crate) const PROMISE: &str = "\
Starts one API node and three workers, asks for fault-free answers, and then lets clients
ask while one fault after another is done to them: processes killed, drained, frozen and restarted,
links cut, slowed and reset, disks filled, files changed, the store erring, clocks set, a worker that
lies. Every answer must be the fault-free one, byte for byte; an error is forgiven only where the fault
makes an answer impossible; at the end nothing may be left. The seed decides what is done. Some faults
need root (a small disk to fill, a network of its own), libfaketime or strace; what can't be done here
is said in the report.

Exit codes: 0 every promise was kept, 1 one was broken, 2 the run could not be done";

/// What `chaos` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long faults are done
    #[arg(long, value_name = "M", default_value_t = 5.0)]
    minutes: f64,

    /// Decides data, queries and faults
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Write report.html and report.json into this folder
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,

    /// Only faults of this kind; may be given several times
    #[arg(long, value_name = "KIND")]
    fault: Vec<Kind>,

    /// API nodes over the same workers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=4))]
    apis: u8,

    /// Clients that ask at once
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..=512))]
    clients: u16,

    /// A real S3-compatible server that has the segments, as http://HOST:PORT, in a bucket that goes
    /// with the run. The keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or else test and test
    /// [default: a small server of its own]
    #[arg(long, value_name = "ENDPOINT", env = "TRIBUTARY_CHAOS_S3")]
    s3: Option<String>,

    /// Play a story with a number at its end instead: worker-killed, worker-frozen, client-gone,
    /// two-apis; may be given several times
    #[arg(long, value_name = "NAME", conflicts_with_all = ["minutes", "fault", "apis", "clients"])]
    scenario: Vec<Scenario>,

    /// Rounds of a story [default: as many as its figures need]
    #[arg(long, value_name = "N", requires = "scenario")]
    rounds: Option<u32>,

    /// Queries in each round of a story [default: as many as its figures need]
    #[arg(long, value_name = "N", requires = "scenario")]
    queries: Option<u32>,

    /// Show that the suite bites: with each of several deliberate bugs in the product it must
    /// report a violation. Needs a binary built with --features sabotage
    #[arg(long, conflicts_with_all = ["scenario", "fault", "apis", "clients"])]
    bite: bool,

    /// What is between API nodes and workers: namespaces (of the network, one for each worker; needs root,
    /// unshare, nsenter, ip, nft, tc and ss), proxy, or auto: namespaces where they can be had
    #[arg(long, value_name = "HOW", default_value = "auto")]
    network: Wish,

    /// Say whether a network of its own can be had, and do nothing else
    #[arg(long, hide = true)]
    rehearse_network: bool,

    /// The binary under test [default: this one]
    #[arg(long, value_name = "FILE", hide = true)]
    binary: Option<PathBuf>,
}

/// Runs, tells how it goes, and writes the report.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    if args.rehearse_network {
        network::rehearse().map_err(Problem::failed)?;
        return Ok(Verdict::Good);
    }
    let own = std::env::current_exe().map_err(Problem::failed)?;
    let network = network_of(args, &own).map_err(Problem::failed)?;
    let binary = args.binary.clone().unwrap_or(own);
    if args.bite || !args.scenario.is_empty() {
        eprintln!("links fall ill by {}", network.words());
    }
    if args.bite {
        return show_teeth(args, &binary);
    }
    if !args.scenario.is_empty() {
        return play(args, &binary);
    }
    let time = Duration::try_from_secs_f64(args.minutes * 60.0).map_err(Problem::failed)?;
    let terms = Terms {
        s3: args.s3.clone(),
        kinds: args.fault.clone(),
        network,
        apis: usize::from(args.apis),
        clients: usize::from(args.clients),
        ..Terms::of(binary, time, args.seed)
    };
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(Problem::failed)?;
    let report = match runtime.block_on(until_a_signal(terms))? {
        Ok(report) => report.map_err(Problem::failed)?,
        Err(code) => return Ok(Verdict::Signalled(code)),
    };
    tell(&report)?;
    if let Some(folder) = &args.report {
        report.write(folder).map_err(Problem::failed)?;
    }
    Ok(if report.is_good() { Verdict::Good } else { Verdict::Broken })
}

/// The network of the run. A real S3 server is on the machine's own, which no other one reaches.
fn network_of(args: &Args, own: &Path) -> Result<Network, ChaosError> {
    let why = "the S3 server is on the machine's own network".to_owned();
    match args.network {
        Wish::Auto if args.s3.is_some() => Ok(Network::Proxy { why }),
        Wish::Namespaces if args.s3.is_some() => Err(ChaosError::NoNetwork { why }),
        wish => network::enter(wish, own, "chaos"),
    }
}

/// Runs with each deliberate bug, for as many minutes each.
fn show_teeth(args: &Args, binary: &Path) -> Result<Verdict, Problem> {
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(Problem::failed)?;
    let time = Duration::try_from_secs_f64(args.minutes * 60.0).map_err(Problem::failed)?;
    let mut out = output::standard();
    let bitten = runtime.block_on(async {
        let mut signals = Signals::catch().map_err(Problem::failed)?;
        let mut progress = |line: &str| eprintln!("{line}");
        tokio::select! {
            bitten = bite(binary, args.s3.as_deref(), args.seed, time, &mut progress) => Ok(Ok(bitten)),
            signal = signals.next() => Ok::<_, Problem>(Err(128 + signal)),
        }
    })?;
    let bitten = match bitten {
        Ok(bitten) => bitten.map_err(Problem::failed)?,
        Err(code) => return Ok(Verdict::Signalled(code)),
    };
    let good = bitten.iter().filter(|it| it.is_good()).count();
    writeln!(out, "{good} of {} as they should be", bitten.len())?;
    out.flush()?;
    Ok(if good == bitten.len() { Verdict::Good } else { Verdict::Broken })
}

/// Plays stories, one after the other.
fn play(args: &Args, binary: &Path) -> Result<Verdict, Problem> {
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(Problem::failed)?;
    let mut stories = Vec::new();
    for scenario in &args.scenario {
        let usual = scenario.usual_size();
        let or = |asked: Option<u32>, usual| asked.map_or(usual, |asked| asked as usize);
        let s3 = args.s3.as_deref();
        let size = Size {
            rounds: or(args.rounds, usual.rounds),
            queries: or(args.queries, usual.queries),
        };
        let played = async {
            let mut signals = Signals::catch().map_err(Problem::failed)?;
            let mut progress = |line: &str| eprintln!("{line}");
            tokio::select! {
                story = scenario.play(binary, s3, args.seed, size, &mut progress) => Ok(Ok(story)),
                signal = signals.next() => Ok::<_, Problem>(Err(128 + signal)),
            }
        };
        match runtime.block_on(played)? {
            Ok(story) => stories.push(story.map_err(Problem::failed)?),
            Err(code) => return Ok(Verdict::Signalled(code)),
        }
    }
    let mut out = output::standard();
    for line in stories.iter().flat_map(Story::lines) {
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    if let Some(folder) = &args.report {
        scenario::write(&stories, folder).map_err(Problem::failed)?;
    }
    Ok(if stories.iter().all(Story::is_good) { Verdict::Good } else { Verdict::Broken })
}

/// The run, or a signal's exit code: then its processes go with it.
async fn until_a_signal(terms: Terms) -> Result<Result<Result<Report, ChaosError>, u8>, Problem> {
    let mut signals = Signals::catch().map_err(Problem::failed)?;
    let mut progress = |line: &str| eprintln!("{line}");
    let running = tributary_chaos::run(&terms, &mut progress);
    tokio::select! {
        report = running => Ok(Ok(report)),
        signal = signals.next() => Ok(Err(128 + signal)),
    }
}

fn tell(report: &Report) -> Result<(), Problem> {
    let mut out = output::standard();
    for violation in report.violations.iter().take(20) {
        let (seconds, words) = (violation.at_ms as f64 / 1e3, violation.promise.words());
        writeln!(out, "at {seconds:.1} s, not kept: {words}\n    {}", violation.what)?;
    }
    writeln!(out, "{}", report.verdict())?;
    out.flush()?;
    Ok(())
}
