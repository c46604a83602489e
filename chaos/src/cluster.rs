//! A cluster of real processes: API nodes, workers, the store they read, and between them roads that can
//! fall ill. What is done to it is in `fault`.

mod api;
mod cache;
mod road;
mod worker;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use reqwest::Client;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::bucket::Bucket;
use crate::client::client;
use crate::data;
use crate::error::ChaosError;
use crate::network::{Network, Wire};
use crate::process::Process;
use crate::scrape::Metrics;

pub use api::ApiNode;
pub use cache::CacheDir;
pub use road::Road;
pub use worker::WorkerNode;

/// How a cluster is.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The binary that all processes run.
    pub binary: PathBuf,
    /// API nodes.
    pub apis: usize,
    /// Workers that run from the start.
    pub workers: usize,
    /// Workers that API nodes know of; those beyond run only when somebody starts them.
    pub places: usize,
    /// The seed of the data.
    pub seed: u64,
    /// The address of a real S3 server that has the segments; none for our own.
    pub s3: Option<String>,
    /// The deliberate bug that all processes have, where the binary has any.
    pub bug: Option<String>,
    /// What is between them.
    pub network: Network,
    /// Settings of API nodes and of workers beyond the usual ones.
    pub api_settings: Vec<String>,
    /// See `api_settings`.
    pub worker_settings: Vec<String>,
}

impl Layout {
    /// One API node and three workers of five.
    pub fn of(binary: &Path, seed: u64) -> Self {
        Self {
            binary: binary.to_owned(),
            apis: 1,
            workers: 3,
            places: 5,
            seed,
            s3: None,
            bug: None,
            network: Network::here(),
            api_settings: Vec::new(),
            worker_settings: Vec::new(),
        }
    }
}

/// What processes are started from.
#[derive(Clone, Debug)]
struct Program {
    binary: PathBuf,
    bug: Option<String>,
}

impl Program {
    fn of(layout: &Layout) -> Self {
        Self { binary: layout.binary.clone(), bug: layout.bug.clone() }
    }

    fn command(&self) -> Command {
        self.with_bug(Command::new(&self.binary))
    }

    /// At the far end of a wire, where there is one.
    fn command_at(&self, wire: Option<&Wire>) -> Command {
        wire.map_or_else(|| self.command(), |wire| self.with_bug(wire.command(&self.binary)))
    }

    fn with_bug(&self, mut command: Command) -> Command {
        command.envs(self.bug.as_ref().map(|bug| (crate::bite::VARIABLE, bug)));
        command
    }
}

/// A running cluster. Gone, its processes are killed and its files removed.
#[derive(Debug)]
pub struct Cluster {
    /// API nodes.
    pub apis: Vec<ApiNode>,
    /// Workers, running or not.
    pub workers: Vec<WorkerNode>,
    /// The object store.
    pub bucket: Bucket,
    /// For whoever asks processes how they are.
    pub client: Client,
    layout: Layout,
    data: PathBuf,
    // Last, so that it goes when nobody uses it any more.
    folder: TempDir,
}

impl Cluster {
    /// Makes the data and starts everything.
    pub async fn start(layout: Layout) -> Result<Self, ChaosError> {
        let folder = tempfile::Builder::new().prefix("tributary-chaos-").tempdir();
        let folder = folder.map_err(ChaosError::file(std::env::temp_dir()))?;
        let data = folder.path().join("data");
        {
            let (binary, data, scratch) =
                (layout.binary.clone(), data.clone(), folder.path().to_owned());
            let seed = layout.seed;
            let made = move || data::import(&binary, &data, &scratch, seed);
            tokio::task::spawn_blocking(made)
                .await
                .map_err(|_| ChaosError::Import { output: "the import broke off".to_owned() })??;
        }
        let bucket = Bucket::of(&data, layout.s3.as_deref(), &layout.network).await?;
        let mut this = Self {
            apis: Vec::new(),
            workers: Vec::new(),
            bucket,
            client: client()?,
            layout,
            data,
            folder,
        };
        for number in 0..this.layout.places {
            let settings = this.layout.worker_settings.clone();
            let folder = this.folder.path();
            let store = this.bucket.access();
            let program = Program::of(&this.layout);
            let wire = match (&this.layout.network, u8::try_from(number)) {
                (Network::Namespaces, Ok(number)) => Some(Wire::new(number, folder)?),
                _ => None,
            };
            let road = Road::new(wire).await?;
            let worker = WorkerNode::new(program, number, folder, road, store, settings);
            this.workers.push(worker.await?);
        }
        for number in 0..this.layout.apis {
            let settings = this.layout.api_settings.clone();
            let roads = this.workers.iter().map(|worker| worker.road.control()).collect();
            let api = ApiNode::new(Program::of(&this.layout), number, this.folder.path(), roads);
            this.apis.push(api.with_settings(settings));
        }
        for number in 0..this.layout.workers {
            this.start_worker(number).await?;
        }
        for number in 0..this.layout.apis {
            this.start_api(number).await?;
        }
        Ok(this)
    }

    /// The folder of everything.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// How many workers run when all is well.
    pub fn usual_workers(&self) -> usize {
        self.layout.workers
    }

    /// What is between its processes.
    pub fn network(&self) -> &Network {
        &self.layout.network
    }

    /// Starts a worker, under the name and with the cache it always has, and leads its road to it.
    pub async fn start_worker(&mut self, number: usize) -> Result<(), ChaosError> {
        self.workers[number].start().await
    }

    /// Starts an API node at the address it always has.
    pub async fn start_api(&mut self, number: usize) -> Result<(), ChaosError> {
        let data = self.data.clone();
        self.apis[number].start(&data).await
    }

    /// Where API nodes are asked that run.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.apis.iter().map(ApiNode::http).collect()
    }

    /// Workers that run, by number.
    pub fn running(&mut self) -> Vec<usize> {
        let numbers = 0..self.workers.len();
        numbers.filter(|number| self.workers[*number].is_running()).collect()
    }

    /// Waits until every worker that runs has a stream of every API node that runs. Gives how long
    /// that took; none where they do not find each other.
    pub async fn until_connected(&mut self, patience: Duration) -> Option<Duration> {
        let begun = Instant::now();
        loop {
            let mut apis = 0.0;
            for api in &mut self.apis {
                apis += f64::from(u8::from(api.process.as_mut().is_some_and(Process::is_running)));
            }
            let mut all = true;
            for number in self.running() {
                let Some(address) = self.workers[number].http() else { continue };
                let metrics = Metrics::of(&self.client, address).await.unwrap_or_default();
                all &= metrics.get("tributary_worker_streams") == Some(apis);
            }
            if all {
                return Some(begun.elapsed());
            }
            if begun.elapsed() > patience {
                return None;
            }
            sleep(Duration::from_millis(20)).await;
        }
    }
}
