//! A whole cluster in this process, over real sockets: one API node, some workers, a data directory
//! that goes with it. For clusters of real processes, see the suites that need them.

use std::sync::Arc;

use core_workcoord::id::TenantId;
use tempfile::TempDir;
use tributary_api::Api;
use tributary_api::config::ApiConfig;
use tributary_artifact_store::{DiskConfig, WorkerDisk, serve};
use tributary_catalog::{Catalog, CatalogConfig, DataDir, Store};
use tributary_process::config::Span;
use tributary_promql::EvalLimits;
use tributary_worker::config::WorkerConfig;
use tributary_worker::disk::DiskArtifacts;
use tributary_worker::leaf_work::LeafWork;
use tributary_worker::{Parts, Worker};

use crate::segments::{Cut, Failure, Series, add};

/// One API node and its workers.
pub struct Cluster {
    /// The API node.
    pub api: Api,
    /// The workers.
    pub workers: Vec<Worker>,
    catalog: Catalog,
    store: Store,
    _folder: TempDir,
}

impl Cluster {
    /// Starts a cluster without data.
    pub async fn start(workers: usize, tune: impl FnOnce(&mut ApiConfig)) -> Result<Self, Failure> {
        let folder = tempfile::tempdir()?;
        let data_dir = DataDir::open_or_create(&folder.path().join("data"))?;
        let catalog = data_dir.catalog(CatalogConfig::default()).await?;
        let store = data_dir.store()?;
        let mut running = Vec::with_capacity(workers);
        for number in 0..workers {
            let cache = folder.path().join(format!("worker-{number}"));
            running.push(worker(number, &cache, store.clone()).await?);
        }
        let mut config = ApiConfig {
            http: ([127, 0, 0, 1], 0).into(),
            data_dir: Some(folder.path().join("data")),
            workers: running.iter().map(|worker| worker.grpc().to_string()).collect(),
            ..ApiConfig::default()
        };
        config.catalog_reads.poll_interval = Span::millis(5);
        tune(&mut config);
        let api = Api::start(&config, "test").await?;
        Ok(Self { api, workers: running, catalog, store, _folder: folder })
    }

    /// Adds series, and comes back when the API node knows of them.
    pub async fn add(&self, tenant: &TenantId, series: &Series, cut: Cut) -> Result<(), Failure> {
        let changed = add(&self.catalog, &self.store, tenant, series, cut).await?;
        let mut reader = self.api.universe();
        reader.seen(changed).await.ok_or("the API node reads the catalog no more")?;
        Ok(())
    }
}

async fn worker(number: usize, cache: &std::path::Path, store: Store) -> Result<Worker, Failure> {
    let mut config = WorkerConfig {
        worker_id: Some(format!("worker-{number}")),
        grpc: ([127, 0, 0, 1], 0).into(),
        http: ([127, 0, 0, 1], 0).into(),
        ..WorkerConfig::default()
    };
    config.execution.slots = 2;
    let disk = DiskConfig { folder: cache.to_owned(), ..DiskConfig::default() };
    let (disk, lost) = WorkerDisk::open(&disk, store)?;
    let routes = serve::routes(disk.spool().clone());
    let (artifacts, lost) = DiskArtifacts::start(disk, lost)?;
    let runtime = tokio::runtime::Handle::current();
    let executor = Arc::new(LeafWork::new(Arc::clone(&artifacts), runtime, EvalLimits::default()));
    let parts = Parts { executor, artifacts, lost, routes, version: "test".into() };
    Ok(Worker::start(&config, parts).await?)
}
