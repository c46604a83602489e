//! The control port: a thread of its own with the gRPC server and the desk, so that streams are
//! served whatever the other threads do.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tonic::transport::Server;
use tracing::{error, warn};
use tributary_process::port::{Port, TcpPort};
use tributary_process::tls::ServerTls;
use tributary_proto::server::routes;

use crate::artifacts::Artifacts;
use crate::config::ControlConfig;
use crate::connection::Connections;
use crate::desk::{Desk, Event};
use crate::session::Reception;

/// How long streams have to take their end, and the store to put things away, after a drain.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Streams of one connection. An API node opens one; the others are for a moment of change.
const STREAMS_PER_CONNECTION: u32 = 8;

/// The largest frame that is read: a spec comes in a few.
const FRAME_MAX_BYTES: u32 = 1 << 20;

/// The most bytes of headers that are read.
const HEADERS_MAX_BYTES: u32 = 16 << 10;

/// What the control port needs.
pub(crate) struct Control {
    pub(crate) config: ControlConfig,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) desk: Desk,
    pub(crate) tell: mpsc::Sender<Event>,
    pub(crate) events: mpsc::Receiver<Event>,
}

impl Control {
    /// Starts the thread. The answer comes when the worker has drained: whether nothing was cut
    /// short.
    pub(crate) fn start(
        self,
        listener: TcpListener,
        tls: Option<ServerTls>,
    ) -> io::Result<oneshot::Receiver<bool>> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (tell_ended, ended) = oneshot::channel();
        thread::Builder::new().name("control".into()).spawn(move || {
            let clean = runtime.block_on(async {
                match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => self.serve(TcpPort::new(listener, tls)).await,
                    Err(error) => {
                        error!(%error, "the control port can't be served");
                        false
                    }
                }
            });
            // Whoever started the worker may have gone.
            let _ = tell_ended.send(clean);
        })?;
        Ok(ended)
    }

    /// Serves streams until the worker has drained. Gives whether nothing was cut short.
    pub(crate) async fn serve(self, port: impl Port) -> bool {
        let reception = Reception {
            events: self.tell,
            artifacts: self.artifacts,
            connections: Arc::clone(&self.connections),
            send_queue: self.config.send_queue as usize,
            sessions_begun: AtomicU64::new(0),
        };
        let (tell_drained, drained) = oneshot::channel::<()>();
        let server = Server::builder()
            .http2_keepalive_interval(Some(self.config.keepalive_interval.get()))
            .http2_keepalive_timeout(Some(self.config.keepalive_timeout.get()))
            .max_concurrent_streams(STREAMS_PER_CONNECTION)
            .max_frame_size(FRAME_MAX_BYTES)
            .http2_max_header_list_size(HEADERS_MAX_BYTES)
            .add_routes(routes(reception))
            .serve_with_incoming_shutdown(self.connections.accept(port), async {
                // A dropped sender means the same.
                drop(drained.await);
            });
        let server = tokio::spawn(server);
        let (clean, custodian) = self.desk.serve(self.events).await;
        drop(tell_drained);
        match tokio::time::timeout(LAST_PATIENCE, server).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => warn!(%error, "the control port ended with an error"),
            Ok(Err(error)) => warn!(%error, "the control port ended with a panic"),
            Err(_) => warn!("some connections did not take the end of their streams"),
        }
        custodian.finish(LAST_PATIENCE).await;
        clean
    }
}
