//! `tributary up`: a whole cluster in one process, an API node and some workers that speak over real
//! gRPC and HTTP on loopback. Puts them together and takes them apart, in that order and the other
//! way round; the work is done by `tributary_api` and `tributary_worker`.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::runtime::Builder;
use tracing::warn;
use tributary_api::Api;
use tributary_api::config::ApiConfig;
use tributary_catalog::DataDir;
use tributary_process::config::{Span, load};
use tributary_process::logs::{self, LogConfig};
use tributary_process::signals::Signals;
use tributary_worker::Worker;
use tributary_worker::config::WorkerConfig;

use crate::cli::{Problem, Verdict};
use crate::{leaving, output, settings, worker};

/// How it is used and how it leaves, for the help.
pub(crate) const PROMISE: &str = "\
When everything is up, one line on standard output says so: `ready http=ADDR`. Segments that others
import into the data directory meanwhile are seen within a second. What can be set of the API node is
told by `tributary api --print-config`. Log lines go to standard error.

SIGTERM or SIGINT: queries that run come to their end, then workers and node leave, and what they kept
among the system's temporary files is removed. A second signal ends the process at once.

Exit codes: 0 left in good order, 2 the arguments make no sense or something can't start, 130 and 143
ended by a second signal";

/// How long workers and node have to find each other.
const PATIENCE: Duration = Duration::from_secs(15);

/// Between two looks at whether they have.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What `up` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The data directory to serve
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,

    #[command(flatten)]
    cluster: ClusterArgs,
}

/// What can be said about any cluster in one process.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    /// Where clients ask; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9480")]
    http: String,

    /// How many workers
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=64))]
    workers: u16,

    /// Set anything that can be configured of the API node, as in query.features=all
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Which log lines are written: error, warn, info, debug or trace, also by module
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,
}

/// A cluster in this process.
pub(crate) struct Cluster {
    api: Api,
    workers: Vec<Worker>,
    /// Where the workers keep what they make. Goes last, and with everything in it.
    caches: TempDir,
}

/// Serves the data directory until a signal comes.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    DataDir::open(&args.data_dir).map_err(Problem::failed)?;
    args.cluster.start_logs()?;
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(Problem::failed)?;
    let verdict = runtime.block_on(async {
        let signals = Signals::catch().map_err(Problem::failed)?;
        let cluster = Cluster::start(&args.data_dir, &args.cluster).await?;
        let mut out = output::standard();
        writeln!(out, "ready http={}", cluster.http())?;
        out.flush()?;
        drop(out);
        Ok(leaving::at_a_signal(signals, async || cluster.leave().await).await)
    });
    runtime.shutdown_background();
    verdict
}

impl ClusterArgs {
    /// How many workers there are to be.
    pub(crate) fn workers(&self) -> u16 {
        self.workers
    }

    /// Writes log lines from here on.
    pub(crate) fn start_logs(&self) -> Result<(), Problem> {
        let config = LogConfig { filter: self.log.clone(), ..LogConfig::default() };
        logs::start(&config).map_err(Problem::failed)
    }
}

impl Cluster {
    /// Starts the workers, then the node, and waits until they have found each other.
    pub(crate) async fn start(data_dir: &Path, args: &ClusterArgs) -> Result<Self, Problem> {
        let caches = tempfile::Builder::new().prefix("tributary-").tempdir();
        let caches = caches.map_err(Problem::failed)?;
        let mut workers = Vec::new();
        for number in 0..args.workers {
            let config = worker_config(data_dir, caches.path(), number, args.workers);
            let parts = worker::parts(&config)?;
            workers.push(Worker::start(&config, parts).await.map_err(Problem::failed)?);
        }
        let addresses: Vec<String> = workers.iter().map(|w| w.grpc().to_string()).collect();
        let data_dir = Some(data_dir.display().to_string());
        let (http, addresses) = (Some(args.http.clone()), Some(addresses.join(",")));
        let flags = [
            ("data_dir", "--data-dir", &data_dir),
            ("http", "--http", &http),
            ("workers", "--workers", &addresses),
        ];
        let settings = settings::gather::<ApiConfig>(None, &args.set, &flags)?;
        let config: ApiConfig = load(&settings).map_err(Problem::failed)?;
        let api = Api::start(&config, env!("CARGO_PKG_VERSION")).await.map_err(Problem::failed)?;
        let cluster = Self { api, workers, caches };
        cluster.wait_until_joined().await;
        Ok(cluster)
    }

    /// Where clients ask.
    pub(crate) fn http(&self) -> SocketAddr {
        self.api.http()
    }

    /// Leaves: the node first, which lets its queries end, then the workers, which have nothing left
    /// to do, then what they kept.
    pub(crate) async fn leave(self) {
        self.api.close().await;
        for worker in &self.workers {
            worker.handle().drain().await;
        }
        for worker in self.workers {
            worker.ended().await;
        }
        let caches = self.caches.path().to_owned();
        if let Err(error) = self.caches.close() {
            warn!(folder = %caches.display(), %error, "a temporary folder stays");
        }
    }

    /// All workers are in rotation. They are on this very machine: where it takes long, the node serves
    /// with those it has, and goes on looking.
    async fn wait_until_joined(&self) {
        let begun = Instant::now();
        let coordination = self.api.coordination();
        while begun.elapsed() < PATIENCE {
            match coordination.look().await {
                Ok(view) if view.snapshot.in_rotation as usize == self.workers.len() => return,
                Ok(_) => tokio::time::sleep(LOOK_EVERY).await,
                Err(_) => break,
            }
        }
        warn!("some worker was not found in time");
    }
}

fn worker_config(data_dir: &Path, caches: &Path, number: u16, workers: u16) -> WorkerConfig {
    let name = format!("worker-{number}");
    let loopback = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut config = WorkerConfig {
        grpc: loopback,
        http: loopback,
        data_dir: Some(data_dir.to_owned()),
        cache_dir: Some(caches.join(&name)),
        worker_id: Some(name),
        ..WorkerConfig::default()
    };
    // Together they have the machine.
    let slots = cores.div_ceil(workers.into()).max(1);
    config.execution.slots = u32::try_from(slots).unwrap_or(1);
    config.drain.timeout = Span::seconds(5);
    config.drain.over_http = false;
    config
}
