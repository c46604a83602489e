//! An object store over HTTP that can fall ill. It is as much of S3 as a worker reads, over a folder, or
//! it stands before a real server and passes on what it is asked. It can be slow, answer with errors, or
//! break off in the middle of an object.

mod folder;
mod server;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{self, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::Response;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::error::ChaosError;
use crate::network::Network;
use folder::Folder;
use server::Server;

/// How the store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mood {
    /// Every answer waits this long.
    pub delay: Duration,
    /// So many of a hundred requests are answered with an error.
    pub errors_percent: u64,
    /// So many of a hundred answers break off half-way.
    pub breaks_percent: u64,
}

/// What a worker has to know to read the store.
#[derive(Clone, Debug)]
pub struct Access {
    /// Where it is served.
    pub address: SocketAddr,
    /// The bucket.
    pub bucket: String,
    /// Its region.
    pub region: &'static str,
    /// Who asks.
    pub key_id: String,
    /// And how that is shown.
    pub secret: String,
}

/// A store that is served until its handle goes. What was put on a real server goes with it.
#[derive(Debug)]
pub struct Bucket {
    address: SocketAddr,
    names: Vec<String>,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    keeper: Keeper,
    mood: Mutex<Mood>,
    requests: AtomicU64,
}

/// Who has the objects.
#[derive(Debug)]
enum Keeper {
    Folder(Folder),
    Server(Server),
}

/// An answer before anything is done to it.
#[derive(Debug)]
struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl Bucket {
    /// Serves the segments of a data directory. Where a real server is named they move there, into a
    /// bucket of their own.
    pub async fn of(data: &Path, s3: Option<&str>, network: &Network) -> Result<Self, ChaosError> {
        let names = folder::segments(data);
        // Workers in namespaces reach it over their wires, and nobody else does.
        let host = match network {
            Network::Namespaces => "0.0.0.0:0",
            Network::Proxy { .. } => "127.0.0.1:0",
        };
        let listener = TcpListener::bind(host).await.map_err(ChaosError::Listen)?;
        let address = listener.local_addr().map_err(ChaosError::Listen)?;
        let keeper = match s3 {
            Some(endpoint) => Keeper::Server(Server::with_new_bucket(endpoint).await?),
            None => Keeper::Folder(Folder::of(data)),
        };
        let requests = AtomicU64::new(0);
        let shared = Arc::new(Shared { keeper, mood: Mutex::default(), requests });
        let routes = Router::new().route("/{bucket}/{*path}", get(object));
        let routes = routes.with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            // It serves until it is aborted.
            drop(axum::serve(listener, routes).await);
        });
        // From here on an error takes with it what is on the server.
        let this = Self { address, names, shared, serving };
        if s3.is_some() {
            this.take_from(&Folder::of(data)).await?;
        }
        Ok(this)
    }

    async fn take_from(&self, folder: &Folder) -> Result<(), ChaosError> {
        for name in &self.names {
            self.write(name, folder.read(name)?).await?;
            folder.remove(name)?;
        }
        Ok(())
    }

    /// What a worker has to know to read it.
    pub fn access(&self) -> Access {
        match &self.shared.keeper {
            Keeper::Folder(_) => Folder::access(self.address),
            Keeper::Server(server) => server.access(self.address),
        }
    }

    /// What it is, in words.
    pub fn words(&self) -> String {
        match &self.shared.keeper {
            Keeper::Folder(_) => {
                "a small server of ours that speaks as much of S3 as is read".into()
            }
            Keeper::Server(server) => server.words(),
        }
    }

    /// The names of all its objects, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Changes how it is.
    pub fn feel(&self, mood: Mood) {
        *self.shared.mood.lock().unwrap_or_else(PoisonError::into_inner) = mood;
    }

    /// An object as it is, whatever the mood.
    pub async fn read(&self, name: &str) -> Result<Bytes, ChaosError> {
        match &self.shared.keeper {
            Keeper::Folder(folder) => folder.read(name),
            Keeper::Server(server) => server.read(name).await,
        }
    }

    /// Puts an object in the place of what is there.
    pub async fn write(&self, name: &str, bytes: Bytes) -> Result<(), ChaosError> {
        match &self.shared.keeper {
            Keeper::Folder(folder) => folder.write(name, &bytes),
            Keeper::Server(server) => server.write(name, bytes).await,
        }
    }

    /// Removes an object.
    pub async fn remove(&self, name: &str) -> Result<(), ChaosError> {
        match &self.shared.keeper {
            Keeper::Folder(folder) => folder.remove(name),
            Keeper::Server(server) => server.remove(name).await,
        }
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        self.serving.abort();
        if let Keeper::Server(server) = &self.shared.keeper {
            server.remove_bucket(&self.names);
        }
    }
}

async fn object(
    State(shared): State<Arc<Shared>>,
    extract::Path((_, path)): extract::Path<(String, PathBuf)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let mood = *shared.mood.lock().unwrap_or_else(PoisonError::into_inner);
    // Not chance but turns: so many of every hundred requests, spread evenly.
    let turn = shared.requests.fetch_add(1, Ordering::Relaxed).wrapping_mul(37) % 100;
    tokio::time::sleep(mood.delay).await;
    if turn < mood.errors_percent {
        return response(StatusCode::SERVICE_UNAVAILABLE, HeaderMap::new(), Body::empty());
    }
    let is_head = method == Method::HEAD;
    let Answer { status, headers, body } = match &shared.keeper {
        Keeper::Folder(folder) => folder.answer(path, &headers).await,
        Keeper::Server(server) => server.answer(method, &uri, headers).await,
    };
    if is_head {
        return response(status, headers, Body::empty());
    }
    if turn < mood.errors_percent + mood.breaks_percent {
        let half = body.slice(..body.len() / 2);
        return response(status, headers, broken_off(half));
    }
    response(status, headers, Body::from(body))
}

/// A body that ends before its length is there, with its connection.
fn broken_off(half: Bytes) -> Body {
    let pieces = [Ok::<_, std::io::Error>(half), Err(std::io::ErrorKind::BrokenPipe.into())];
    Body::from_stream(tokio_stream::iter(pieces))
}

fn response(status: StatusCode, headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
