//! `tributary worker`: one worker. Reads the configuration, puts the parts together, says when it is
//! ready, and leaves when asked. The work is done by `tributary_worker`.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle};
use tributary_artifact_store::{WorkerDisk, serve as serve_artifacts};
use tributary_catalog::{DataDir, Store, StoreOptions};
use tributary_process::config::{Settings, load, to_toml};
use tributary_process::logs;
use tributary_process::signals::Signals;
use tributary_process::traces::{Origin, Traces};
use tributary_worker::config::WorkerConfig;
use tributary_worker::disk::DiskArtifacts;
use tributary_worker::leaf_work::LeafWork;
use tributary_worker::rehearsal::{Script, Shelf};
use tributary_worker::{Parts, Worker};

use crate::cli::{Problem, Verdict};
use crate::{output, settings};

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
    let config: WorkerConfig = load(&settings(args)?).map_err(Problem::failed)?;
    if args.print_config {
        let mut out = output::standard();
        out.write_all(to_toml(&config).as_bytes())?;
        out.flush()?;
        return Ok(Verdict::Good);
    }
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(Problem::failed)?;
    let verdict = runtime.block_on(serve(&config, args.rehearse));
    // Nobody waits for a leaf that does not hear: its slot ends with the process.
    runtime.shutdown_background();
    verdict
}

async fn serve(config: &WorkerConfig, rehearse: bool) -> Result<Verdict, Problem> {
    let worker_id = config.worker_id().map_err(Problem::failed)?;
    let origin = Origin {
        service: "tributary-worker",
        instance: worker_id.as_str(),
        version: env!("CARGO_PKG_VERSION"),
    };
    let traces = Traces::start(&config.traces, &origin).map_err(Problem::failed)?;
    logs::start_with(&config.log, traces.as_ref()).map_err(Problem::failed)?;
    let verdict = work(config, rehearse).await;
    // Whoever is told to leave at once does not stay for this.
    if let (Ok(Verdict::Good), Some(traces)) = (&verdict, traces) {
        traces.finish().await;
    }
    verdict
}

async fn work(config: &WorkerConfig, rehearse: bool) -> Result<Verdict, Problem> {
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
        code = signals.drain_then_give_up(async || handle.drain().await) => Ok(Verdict::Signalled(code)),
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
    let flags = [
        ("worker_id", "--worker-id", &args.worker_id),
        ("grpc", "--grpc", &args.grpc),
        ("http", "--http", &args.http),
        ("advertise", "--advertise", &args.advertise),
        ("store", "--store", &args.store),
        ("data_dir", "--data-dir", &args.data_dir),
        ("cache_dir", "--cache-dir", &args.cache_dir),
        ("execution.slots", "--slots", &args.slots),
    ];
    settings::gather::<WorkerConfig>(args.config.as_deref(), &args.set, &flags)
}

/// A worker that runs leaves over the segments of a store.
pub(crate) fn parts(config: &WorkerConfig) -> Result<Parts, Problem> {
    let worker_id = config.worker_id().map_err(Problem::failed)?;
    let disk = config.disk_config(config.cache_dir(&worker_id));
    let (disk, lost) = WorkerDisk::open(&disk, store(config)?).map_err(Problem::failed)?;
    let routes = serve_artifacts::routes(disk.spool().clone());
    let (artifacts, lost) = DiskArtifacts::start(disk, lost).map_err(Problem::failed)?;
    let limits = config.limits.limits();
    let executor = LeafWork::new(Arc::clone(&artifacts), Handle::current(), limits);
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
