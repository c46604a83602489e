//! A worker without threads of its own: streams, leaves, disk and HTTP are tasks of one runtime, over
//! whatever ports it is given. For simulated networks, where nothing takes time unless it is said to;
//! everything between the ports and the disk is the worker's own.

use std::sync::Arc;

use core_workcoord::intake::{Identity, Intake};
use tokio::sync::mpsc;
use tributary_process::config::Configured as _;
use tributary_process::http::{Closing, Server};
use tributary_process::port::Port;

use crate::config::WorkerConfig;
use crate::custodian::Custodian;
use crate::desk::Desk;
use crate::handle::Handle;
pub use crate::slots::Pause;
use crate::slots::Slots;
use crate::worker::{Assembled, EVENTS, Made, Parts, StartError};

/// Where a worker is and how fast.
pub struct Stage<P> {
    /// Where control streams are opened.
    pub grpc: P,
    /// Where artifacts, metrics and probes are served.
    pub http: P,
    /// How API nodes find artifacts there: a URL that ends with `/artifacts/`.
    pub artifact_base_url: String,
    /// How long each run takes.
    pub pause: Pause,
}

/// Makes a worker, to be called in the runtime that it runs in. It serves while the future is polled,
/// until it has drained, and gives whether nothing was cut short. `look` may change the intake before
/// anything happens.
pub fn worker<P: Port>(
    config: &WorkerConfig,
    parts: Parts,
    stage: Stage<P>,
    look: &dyn Fn(&mut Intake),
) -> Result<(Handle, impl Future<Output = bool> + Send + use<P>), StartError> {
    config.check()?;
    let Stage { grpc, http, artifact_base_url, pause } = stage;
    let identity = Identity {
        worker_id: config.worker_id().map_err(StartError::Name)?,
        version: parts.version.clone(),
        artifact_base_url: artifact_base_url.clone(),
    };
    let mut intake = Intake::new(config.intake(), identity)?;
    look(&mut intake);
    let (tell, events) = mpsc::channel(EVENTS);
    let (executor, artifacts) = (Arc::clone(&parts.executor), Arc::clone(&parts.artifacts));
    let custodian = Custodian::on_this_runtime(Arc::clone(&artifacts));
    let slots = Slots::on_this_runtime(pause, executor, artifacts, tell.clone());
    let desk = Desk::new(intake, artifact_base_url, slots, custodian);
    let made = Made { desk, tell, events, tls: Vec::new(), disk_is_slow: false };
    let Assembled { control, routes, handle, mut tasks } = made.assemble(config, parts);
    let server = Server::at(http, routes, config.serving.clone());
    let serving = async move {
        tasks.spawn(async move { _ = server.serve(Closing::default()).await });
        let clean = control.serve(grpc).await;
        tasks.shutdown().await;
        clean
    };
    Ok((handle, serving))
}
