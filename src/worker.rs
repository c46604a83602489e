//! `tributary worker`: one worker until it is asked to leave. Settings, streams and leaves belong to
//! `tributary_worker`, the disk to `tributary_artifact_store`; here they are put together.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle as Runtime};
use tributary_artifact_store::{DiskConfig, WorkerDisk, serve};
use tributary_catalog::{DataDir, Store, StoreOptions};
use tributary_promql::EvalLimits;
use tributary_worker::config::{Settings, WorkerConfig, load};
use tributary_worker::disk::DiskArtifacts;
use tributary_worker::leaf_work::LeafWork;
use tributary_worker::signals::Signals;
use tributary_worker::{Parts, Worker, logs};

use crate::cli::{Problem, Verdict};
use crate::output;

/// Threads that fetch segments and serve artifacts.
const IO_THREADS: usize = 2;

/// What is promised of a worker, for the help.
pub(crate) const PROMISE: &str = "\
Settings come from --config, over it the environment (TRIBUTARY_WORKER_GRPC and so on), over it the
flags; --print-config shows every one of them, with its meaning and its default. When both ports are
open, one line `ready grpc=ADDR http=ADDR` is printed.

SIGTERM, SIGINT or POST /drain: no new work, running work is finished, artifacts are served until they
are fetched, exit code 0. A second signal ends the worker at once.";

/// What `worker` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Settings in TOML
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Print the settings that would be used, and do nothing else
    #[arg(long)]
    print_config: bool,

    /// The worker's name, stable over restarts [default: the host's]
    #[arg(long, value_name = "ID")]
    worker_id: Option<String>,

    /// Where API nodes open control streams [default: 0.0.0.0:9470]
    #[arg(long, value_name = "ADDR")]
    grpc: Option<String>,

    /// Where artifacts, metrics and probes are served [default: 0.0.0.0:9471]
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,

    /// The object store with the segments
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// A data directory with the segments, in place of a store
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,

    /// Where artifacts and cached segments are kept
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<String>,

    /// Leaves that run at once [default: as many as cores]
    #[arg(long, value_name = "N")]
    slots: Option<String>,

    /// Any other setting, as in `--set drain.timeout=1m`
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Runs a worker until it has left.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    let config = load(&settings(args)?).map_err(Problem::failed)?;
    if args.print_config {
        let mut out = output::standard();
        out.write_all(config.to_toml().as_bytes())?;
        out.flush()?;
        return Ok(Verdict::Good);
    }
    logs::start(&config.log).map_err(Problem::failed)?;
    // Few threads: they move bytes. Streams and leaves have threads of their own.
    let runtime = Builder::new_multi_thread().worker_threads(IO_THREADS).enable_all().build();
    runtime.map_err(Problem::failed)?.block_on(serve_until_drained(&config))
}

fn settings(args: &Args) -> Result<Settings, Problem> {
    let file = match &args.config {
        Some(path) => {
            let text = fs::read_to_string(path)
                .map_err(|error| Problem::File { path: path.clone(), error })?;
            Some((path.display().to_string(), text))
        }
        None => None,
    };
    let named = [
        ("worker_id", "--worker-id", &args.worker_id),
        ("grpc", "--grpc", &args.grpc),
        ("http", "--http", &args.http),
        ("store", "--store", &args.store),
        ("data_dir", "--data-dir", &args.data_dir),
        ("cache_dir", "--cache-dir", &args.cache_dir),
        ("execution.slots", "--slots", &args.slots),
    ];
    let named = named
        .into_iter()
        .filter_map(|(key, flag, value)| Some((key.to_owned(), flag.to_owned(), value.clone()?)));
    let mut flags: Vec<_> = named.collect();
    for setting in &args.set {
        let reason = "it has the form KEY=VALUE";
        let (key, value) =
            setting.split_once('=').ok_or(Problem::SenselessOption { option: "--set", reason })?;
        flags.push((key.to_owned(), format!("--set {key}"), value.to_owned()));
    }
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Ok(Settings { file, variables: variables.collect(), flags })
}

async fn serve_until_drained(config: &WorkerConfig) -> Result<Verdict, Problem> {
    let signals = Signals::catch().map_err(Problem::failed)?;
    let worker_id = config.worker_id().map_err(Problem::failed)?;
    let disk = DiskConfig {
        folder: config.cache_dir(&worker_id),
        artifact_ttl: config.artifacts.ttl.get(),
        artifact_ttl_after_ack: config.artifacts.ttl_after_ack.get(),
        ..DiskConfig::default()
    };
    let (disk, lost) = WorkerDisk::open(&disk, store(config)?).map_err(Problem::failed)?;
    let routes = serve::routes(disk.spool().clone());
    let (artifacts, lost) = DiskArtifacts::start(disk, lost).map_err(Problem::failed)?;
    let limits = EvalLimits::default();
    let executor = LeafWork::new(Arc::clone(&artifacts), Runtime::current(), limits);
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let executor = Arc::new(executor);
    let parts = Parts { executor, artifacts, lost, routes, version };
    let worker = Worker::start(config, parts).await.map_err(Problem::failed)?;
    let mut out = output::standard();
    writeln!(out, "ready grpc={} http={}", worker.grpc(), worker.http())?;
    out.flush()?;
    drop(out);
    let handle = worker.handle();
    tokio::select! {
        _clean = worker.ended() => Ok(Verdict::Good),
        code = signals.drain_then_give_up(handle) => Ok(Verdict::Signalled(code)),
    }
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
