//! Workers in this process, over real sockets: one that runs leaves, and one that only rehearses and
//! so shows what streams, desk and slots cost by themselves.

use std::path::Path;
use std::sync::Arc;

use tokio::runtime::Handle;
use tributary_artifact_store::{DiskConfig, WorkerDisk, serve};
use tributary_catalog::Store;
use tributary_integration::worker_suite::field::Field;
use tributary_promql::EvalLimits;
use tributary_worker::config::{Span, WorkerConfig};
use tributary_worker::disk::DiskArtifacts;
use tributary_worker::leaf_work::LeafWork;
use tributary_worker::rehearsal::{Script, Shelf};
use tributary_worker::{Parts, Worker};

/// A worker's own threads: HTTP and downloads, as in the binary.
pub(super) struct Stage {
    pub(super) worker: Option<Worker>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Stage {
    /// Runs leaves on the field, with its disk in a folder.
    pub(super) fn with_leaves(field: &Field, folder: &Path) -> Self {
        let store = Store::in_folder(&field.store()).expect("a folder");
        let config = DiskConfig { folder: folder.to_owned(), ..DiskConfig::default() };
        let (disk, lost) = WorkerDisk::open(&config, store).expect("the folder is ours");
        Self::of(|| {
            let routes = serve::routes(disk.spool().clone());
            let (artifacts, lost) = DiskArtifacts::start(disk, lost).expect("there are threads");
            let limits = EvalLimits::default();
            let executor = LeafWork::new(Arc::clone(&artifacts), Handle::current(), limits);
            let version = "bench".into();
            Parts { executor: Arc::new(executor), artifacts, lost, routes, version }
        })
    }

    /// Rehearses.
    pub(super) fn rehearsing() -> Self {
        Self::of(|| {
            let (shelf, lost) = Shelf::new();
            let executor = Arc::new(Script::new(Arc::clone(&shelf)));
            let (routes, version) = (shelf.routes(), "bench".into());
            Parts { executor, artifacts: shelf, lost, routes, version }
        })
    }

    fn of(parts: impl FnOnce() -> Parts) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime.expect("a runtime can be made");
        let mut config = WorkerConfig {
            worker_id: Some("worker-1".into()),
            grpc: ([127, 0, 0, 1], 0).into(),
            http: ([127, 0, 0, 1], 0).into(),
            ..WorkerConfig::default()
        };
        config.execution.queue_limit = 1_024;
        config.artifacts.ttl_after_ack = Span::millis(500);
        let entered = runtime.enter();
        let parts = parts();
        drop(entered);
        // Started from a thread of its own: the caller may be in a runtime already.
        let handle = runtime.handle().clone();
        let starting = std::thread::spawn(move || handle.block_on(Worker::start(&config, parts)));
        let worker = starting.join().expect("it does not panic").expect("the worker starts");
        Self { worker: Some(worker), runtime: Some(runtime) }
    }

    pub(super) fn worker(&self) -> &Worker {
        self.worker.as_ref().expect("it is there until the end")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        drop(self.worker.take());
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
