//! `tributary worker`: one worker. Reads the configuration, puts the parts together, says when it is
//! ready, and leaves when asked. The work is done by `tributary_worker`.

use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle};
use tributary_artifact_store::{DiskConfig, WorkerDisk, serve as serve_artifacts};
use tributary_catalog::{DataDir, Store, StoreOptions};
use tributary_promql::EvalLimits;
use tributary_worker::config::{Settings, VARIABLE_PREFIX, WorkerConfig, load};
use tributary_worker::disk::DiskArtifacts;
use tributary_worker::leaf_work::LeafWork;
use tributary_worker::rehearsal::{Script, Shelf};
use tributary_worker::signals::Signals;
use tributary_worker::{Parts, Worker, logs};

use crate::cli::{Problem, Verdict};
use crate::output;

/// How a worker is configured and how it leaves, for the help.
pub(crate) const PROMISE: &str = "\
Everything can be configured in a TOML file (--config), over it by environment variables
(TRIBUTARY_WORKER_…), over it by flags; --print-config prints all of it, explained. When both ports are
open, one line on standard output says so: `ready http=ADDR grpc=ADDR`. Log lines go to standard error.

SIGTERM, SIGINT or POST /drain on the HTTP port: no new work, what runs is finished, artifacts are
served until acknowledged or the drain's time is up. A second signal ends the process at once.

Exit codes: 0 drained, 2 the configuration makes no sense or the worker can't start, 130 and 143 ended
by a second signal";

/// What `worker` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The worker's name, stable over restarts [default: the host's name]
    #[arg(long, value_name = "ID")]
    worker_id: Option<String>,

    /// Where API nodes open control streams [default: 0.0.0.0:9470]
    #[arg(long, value_name = "ADDR")]
    grpc: Option<String>,

    /// Where artifacts, metrics and probes are served [default: 0.0.0.0:9471]
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,

    /// How API nodes reach the HTTP port [default: http://ADDR]
    #[arg(long, value_name = "URL")]
    advertise: Option<String>,

    /// The object store with the segments
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// A data directory with the segments, in place of --store
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,

    /// Where artifacts and cached segments are kept
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<String>,

    /// How many leaves run at once [default: the number of cores]
    #[arg(long, value_name = "N")]
    slots: Option<String>,

    /// Read the configuration from this file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Set anything that can be configured, as in control.heartbeat_interval=2s
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Print the configuration, explained, and exit
    #[arg(long)]
    print_config: bool,

    /// Rehearse: work only pretends, and artifacts are kept in memory
    #[arg(long, hide = true)]
    rehearse: bool,
}

/// Runs a worker until it has drained.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    let config = load(&settings(args)?).map_err(Problem::failed)?;
    if args.print_config {
        let mut out = output::standard();
        out.write_all(config.to_toml().as_bytes())?;
        out.flush()?;
        return Ok(Verdict::Good);
    }
    logs::start(&config.log).map_err(Problem::failed)?;
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(Problem::failed)?;
    let verdict = runtime.block_on(serve(&config, args.rehearse));
    // Nobody waits for a leaf that does not hear: its slot ends with the process.
    runtime.shutdown_background();
    verdict
}

async fn serve(config: &WorkerConfig, rehearse: bool) -> Result<Verdict, Problem> {
    // Caught before anybody can know that the worker is there.
    let signals = Signals::catch().map_err(Problem::failed)?;
    let parts = if rehearse { rehearsal() } else { parts(config)? };
    let worker = Worker::start(config, parts).await.map_err(Problem::failed)?;
    let mut out = output::standard();
    writeln!(out, "ready http={} grpc={}", worker.http(), worker.grpc())?;
    out.flush()?;
    drop(out);
    let handle = worker.handle();
    tokio::select! {
        _clean = worker.ended() => Ok(Verdict::Good),
        code = signals.drain_then_give_up(handle) => Ok(Verdict::Signalled(code)),
    }
}

fn rehearsal() -> Parts {
    let (shelf, lost) = Shelf::new();
    Parts {
        executor: Arc::new(Script::new(Arc::clone(&shelf))),
        routes: shelf.routes(),
        artifacts: shelf,
        lost,
        version: env!("CARGO_PKG_VERSION").into(),
    }
}

fn settings(args: &Args) -> Result<Settings, Problem> {
    let file = match &args.config {
        Some(path) => match fs::read_to_string(path) {
            Ok(text) => Some((path.display().to_string(), text)),
            Err(error) => return Err(Problem::File { path: path.clone(), error }),
        },
        None => None,
    };
    let text = |text: &std::ffi::OsString| text.to_string_lossy().into_owned();
    let ours = |(name, _): &(String, String)| name.starts_with(VARIABLE_PREFIX);
    let variables = env::vars_os().map(|(name, value)| (text(&name), text(&value)));
    let mut flags = Vec::new();
    for assignment in &args.set {
        let Some((key, value)) = assignment.split_once('=') else {
            return Err(Problem::SenselessOption {
                option: "--set",
                reason: "write KEY=VALUE, as in control.heartbeat_interval=2s",
            });
        };
        flags.push((key.into(), format!("--set {key}"), value.into()));
    }
    // After --set, so that a flag of its own wins.
    for (key, flag, value) in [
        ("worker_id", "--worker-id", &args.worker_id),
        ("grpc", "--grpc", &args.grpc),
        ("http", "--http", &args.http),
        ("advertise", "--advertise", &args.advertise),
        ("store", "--store", &args.store),
        ("data_dir", "--data-dir", &args.data_dir),
        ("cache_dir", "--cache-dir", &args.cache_dir),
        ("execution.slots", "--slots", &args.slots),
    ] {
        if let Some(value) = value {
            flags.push((key.into(), flag.into(), value.clone()));
        }
    }
    Ok(Settings { file, variables: variables.filter(ours).collect(), flags })
}

/// A worker that runs leaves over the segments of a store.
fn parts(config: &WorkerConfig) -> Result<Parts, Problem> {
    let worker_id = config.worker_id().map_err(Problem::failed)?;
    let disk = DiskConfig {
        folder: config.cache_dir(&worker_id),
        artifact_ttl: config.artifacts.ttl.get(),
        artifact_ttl_after_ack: config.artifacts.ttl_after_ack.get(),
        ..DiskConfig::default()
    };
    let (disk, lost) = WorkerDisk::open(&disk, store(config)?).map_err(Problem::failed)?;
    let routes = serve_artifacts::routes(disk.spool().clone());
    let (artifacts, lost) = DiskArtifacts::start(disk, lost).map_err(Problem::failed)?;
    let executor = LeafWork::new(Arc::clone(&artifacts), Handle::current(), EvalLimits::default());
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(Parts { executor: Arc::new(executor), artifacts, lost, routes, version })
}

/// Where the segments are.
fn store(config: &WorkerConfig) -> Result<Store, Problem> {
    match (&config.data_dir, &config.store) {
        (Some(dir), _) => {
            DataDir::open(dir).map_err(Problem::failed)?.store().map_err(Problem::failed)
        }
        (None, Some(url)) => Store::open(url, &StoreOptions::default()).map_err(Problem::failed),
        (None, None) => Err(Problem::NeedsOption("--data-dir or --store")),
    }
}
