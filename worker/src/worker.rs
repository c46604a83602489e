//! Puts a worker together: ports, threads, desk. What each of them does is in its own file.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use axum::Router;
use core_workcoord::config::BadConfig;
use core_workcoord::id::BadId;
use core_workcoord::intake::{Identity, Intake};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tracing::warn;
use tributary_process::config::Configured;
use tributary_process::http::{Closing, Server};
use tributary_process::tls::{Protocol, ServerTls, TlsError};

use crate::artifacts::{ArtifactId, Artifacts};
use crate::config::{BadWorkerConfig, WorkerConfig};
use crate::connection::Connections;
use crate::control::Control;
use crate::custodian::Custodian;
use crate::desk::{Desk, Event};
use crate::execute::Execute;
use crate::handle::Handle;
use crate::http::{self, Desktop};
use crate::slots::Slots;

/// Events on their way to the desk. A full queue makes their tellers wait: peers by the flow control
/// of their streams, leaves with their slots taken.
pub(crate) const EVENTS: usize = 1_024;

/// What a worker is made of beside its configuration.
pub struct Parts {
    /// Runs leaves.
    pub executor: Arc<dyn Execute>,
    /// Keeps artifacts.
    pub artifacts: Arc<dyn Artifacts>,
    /// Artifacts that were evicted while somebody held them.
    pub lost: mpsc::Receiver<ArtifactId>,
    /// The routes that serve artifacts, under `/artifacts/`.
    pub routes: Router,
    /// The build, for API nodes to see.
    pub version: String,
}

/// Why a worker could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] BadWorkerConfig),
    /// The part of it that the intake decides by makes no sense.
    #[error(transparent)]
    Intake(#[from] BadConfig),
    /// The host's name can't be a worker's.
    #[error("the name of this host can't be a worker's, so worker_id is needed")]
    Name(#[source] BadId),
    /// Certificates can't be used.
    #[error("tls: {0}")]
    Tls(#[from] TlsError),
    /// A port can't be listened at.
    #[error("{address} can't be listened at")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// The system gives no thread.
    #[error("the system gives no thread")]
    Thread(#[source] io::Error),
}

/// A running worker. Dropped, its HTTP port closes; its streams go on until the process ends, for
/// leaving is a drain.
#[derive(Debug)]
pub struct Worker {
    grpc: SocketAddr,
    http: SocketAddr,
    handle: Handle,
    ended: oneshot::Receiver<bool>,
    /// HTTP, certificates, the disk reports and the word of lost artifacts.
    tasks: JoinSet<()>,
}

impl Worker {
    /// Starts one; both ports are open when this returns. To be called in a tokio runtime, which
    /// serves HTTP.
    pub async fn start(config: &WorkerConfig, parts: Parts) -> Result<Self, StartError> {
        config.check()?;
        let worker_id = config.worker_id().map_err(StartError::Name)?;
        let (grpc_listener, grpc) = listen(config.grpc)?;
        let (http_listener, http) = listen(config.http)?;
        let artifact_base_url = config.artifact_base_url(http);
        let identity = Identity {
            worker_id,
            version: parts.version.clone(),
            artifact_base_url: artifact_base_url.clone(),
        };
        let intake = Intake::new(config.intake(), identity)?;
        #[cfg(feature = "sabotage")]
        let intake = sabotaged(intake);
        let grpc_tls = ServerTls::load(&config.tls, Protocol::Http2)?;
        let http_tls = ServerTls::load(&config.tls, Protocol::Http1)?;

        let (tell, events) = mpsc::channel(EVENTS);
        let custodian =
            Custodian::start(Arc::clone(&parts.artifacts)).map_err(StartError::Thread)?;
        let tell_run_ended = {
            let tell = tell.clone();
            // Where the desk is gone, nobody waits for the run.
            Box::new(move |run, outcome| drop(tell.blocking_send(Event::RunEnded { run, outcome })))
        };
        let (executor, artifacts) = (Arc::clone(&parts.executor), Arc::clone(&parts.artifacts));
        let nice = config.execution.nice;
        let slots = Slots::start(config.slots(), nice, executor, artifacts, tell_run_ended)
            .map_err(StartError::Thread)?;
        let desk = Desk::new(intake, artifact_base_url, slots, custodian);
        let named = |port, tls: &Option<ServerTls>| tls.clone().map(|tls| (port, tls));
        let tls: Vec<_> =
            [named("grpc", &grpc_tls), named("http", &http_tls)].into_iter().flatten().collect();
        let made = Made { desk, tell, events, tls, disk_is_slow: true };
        let Assembled { control, routes, handle, mut tasks } = made.assemble(config, parts);
        let http_listener = tokio::net::TcpListener::from_std(http_listener)
            .map_err(|source| StartError::Listen { address: http, source })?;
        let server = Server::new(http_listener, routes, config.serving.clone()).with_tls(http_tls);
        // Open until the worker is gone: a drain is over only when all is fetched.
        tasks.spawn(async move { _ = server.serve(Closing::default()).await });
        let ended = control.start(grpc_listener, grpc_tls).map_err(StartError::Thread)?;
        Ok(Self { grpc, http, handle, ended, tasks })
    }

    /// Where control streams are opened.
    pub fn grpc(&self) -> SocketAddr {
        self.grpc
    }

    /// Where artifacts, metrics and probes are served.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// A way to ask it to drain.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Waits until it has drained. Gives whether nothing was cut short.
    pub async fn ended(mut self) -> bool {
        // Without an answer the control thread has panicked, which is not clean.
        let clean = (&mut self.ended).await.unwrap_or(false);
        self.tasks.shutdown().await;
        clean
    }
}

/// What a worker is made of, once it is known where its leaves run.
pub(crate) struct Made {
    pub(crate) desk: Desk,
    pub(crate) tell: mpsc::Sender<Event>,
    pub(crate) events: mpsc::Receiver<Event>,
    /// TLS of its ports, by the names of these.
    pub(crate) tls: Vec<(&'static str, ServerTls)>,
    /// Looking at the disk may take its time, and is done where that holds up nobody.
    pub(crate) disk_is_slow: bool,
}

/// A worker without its ports.
pub(crate) struct Assembled {
    pub(crate) control: Control,
    pub(crate) routes: Router,
    pub(crate) handle: Handle,
    pub(crate) tasks: JoinSet<()>,
}

impl Made {
    pub(crate) fn assemble(self, config: &WorkerConfig, parts: Parts) -> Assembled {
        let Self { desk, tell, events, tls, disk_is_slow } = self;
        let limit = config.control.max_connections as usize;
        let connections = Connections::new(limit, config.control.hello_timeout.get());
        let handle = Handle { events: tell.clone(), connections: Arc::clone(&connections) };
        let mut tasks = JoinSet::new();
        let interval = config.artifacts.disk_report_interval.get();
        let disk = Arc::clone(&parts.artifacts);
        tasks.spawn(report_disk(disk, tell.clone(), interval, disk_is_slow));
        tasks.spawn(pass_on_losses(parts.lost, tell.clone()));
        for (_, tls) in &tls {
            tasks.spawn(tls.clone().keep_fresh());
        }
        let desktop = Desktop {
            handle: handle.clone(),
            artifacts: Arc::clone(&parts.artifacts),
            executor: parts.executor,
            drain_over_http: config.drain.over_http,
            tls,
        };
        let routes = http::routes(desktop, parts.routes);
        let control = Control {
            config: config.control.clone(),
            artifacts: parts.artifacts,
            connections,
            desk,
            tell,
            events,
        };
        Assembled { control, routes, handle, tasks }
    }
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|source| StartError::Listen { address, source })
}

/// Looks at the disk again and again, where looking may take its time.
async fn report_disk(
    artifacts: Arc<dyn Artifacts>,
    tell: mpsc::Sender<Event>,
    interval: std::time::Duration,
    is_slow: bool,
) {
    let mut every = tokio::time::interval(interval);
    every.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut told = None;
    loop {
        every.tick().await;
        let report = if is_slow {
            let artifacts = Arc::clone(&artifacts);
            match tokio::task::spawn_blocking(move || artifacts.disk()).await {
                Ok(report) => report,
                Err(error) => {
                    warn!(%error, "the disk could not be looked at");
                    continue;
                }
            }
        } else {
            artifacts.disk()
        };
        if told != Some(report) {
            told = Some(report);
            if tell.send(Event::Disk(report)).await.is_err() {
                return;
            }
        }
    }
}

async fn pass_on_losses(mut lost: mpsc::Receiver<ArtifactId>, tell: mpsc::Sender<Event>) {
    while let Some(artifact) = lost.recv().await {
        if tell.send(Event::Lost(artifact)).await.is_err() {
            return;
        }
    }
}

/// An intake with the deliberate bug that the environment names, if it is one of its own.
#[cfg(feature = "sabotage")]
fn sabotaged(mut intake: Intake) -> Intake {
    let name = std::env::var("TRIBUTARY_SABOTAGE").unwrap_or_default();
    tracing::warn!(bug = name, "built with deliberate bugs");
    if let Some(bug) = core_workcoord::sabotage::Bug::named(&name) {
        intake.sabotage(bug);
    }
    intake
}
