//! Puts an API node together: catalog, coordinator, streams, discovery, queries, HTTP. What each of
//! them does is in its own file.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use core_workcoord::id::{ApiId, BadId, Endpoint};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tonic::transport::{Channel, Endpoint as Address};
use tracing::{info, warn};
use tributary_artifact_store::{FetchError, Fetcher};
use tributary_catalog::{
    Catalog, CatalogError, DataDir, DataDirError, UniverseFeed, UniverseReader,
};
use tributary_process::config::Configured as _;
use tributary_process::connect::Connector;
use tributary_process::http::{Closing, Server};
use tributary_process::tls::{ClientTls, Protocol, ServerTls, TlsError};

use crate::access::{Access, KeyFileError};
use crate::config::{ApiConfig, BadApiConfig};
use crate::coordination::{
    Coordination, CoordinationError, Desk, DeskTerms, Journal, JournalFailure,
};
use crate::cores::Cores;
use crate::discovery::{Change, Discovery, SourceError};
use crate::fetch::{Fetching, HttpGet};
use crate::figures::Figures;
use crate::http;
use crate::memory::Memory;
use crate::metrics::{self, Sights};
use crate::monitor::{self, Monitor as _, QueueWatch};
use crate::query::{Kit, Queries};
use crate::question::Ask;
use crate::scaler;
use crate::stream::{Dial, DialError};

/// Why an API node could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] BadApiConfig),
    /// The host's name can't be an API node's.
    #[error("the name of this host can't be an API node's, so api_id is needed")]
    Name(#[source] BadId),
    /// Neither a data directory nor a catalog was named.
    #[error("data_dir or catalog is needed")]
    NoCatalog,
    /// The data directory is none.
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    /// The catalog can't be read.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Certificates can't be used.
    #[error("tls: {0}")]
    Tls(#[from] TlsError),
    /// The coordinator can't start.
    #[error(transparent)]
    Coordination(#[from] CoordinationError),
    /// The journal can't be written.
    #[error(transparent)]
    Journal(#[from] JournalFailure),
    /// The keys can't be read.
    #[error(transparent)]
    Keys(#[from] KeyFileError),
    /// There is no way to fetch artifacts.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A place to find workers can't be asked.
    #[error(transparent)]
    Discovery(#[from] SourceError),
    /// A port can't be listened at.
    #[error("{address} can't be listened at")]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

/// A running API node.
pub struct Api {
    http: SocketAddr,
    scaler: Option<SocketAddr>,
    queries: Arc<Queries>,
    coordination: Coordination,
    control: Option<thread::JoinHandle<()>>,
    closing: Closing,
    serving: JoinHandle<usize>,
    /// Discovery and what passes its word on.
    tasks: JoinSet<()>,
    _discovery: Discovery,
    feed: UniverseFeed,
}

impl Api {
    /// Starts one; its port is open when this returns. To be called in a tokio runtime, which serves
    /// HTTP and fetches artifacts; streams and coordinator have a thread of their own.
    pub async fn start(config: &ApiConfig, version: &str) -> Result<Self, StartError> {
        config.check()?;
        let api_id = api_id(config)?;
        let (listener, http) = listen(config.http)?;
        let catalog = open_catalog(config).await?;
        let feed = UniverseFeed::start(&catalog).await?;
        let seed = random();
        let tls = ServerTls::load(&config.tls, Protocol::Http1)?;
        let worker_tls = ClientTls::load(&config.worker_tls)?;

        let (coordination, inbox) = Coordination::new();
        let (cores, memory) =
            (Arc::new(Cores::new(config.cores())), Memory::new(config.limits.memory_bytes));
        let journal = match &config.journal {
            Some(folder) => Some(Journal::begin(folder, &config.coordinator(), &api_id, seed)?),
            None => None,
        };
        let fetcher = match &worker_tls {
            Some(tls) => Fetcher::with_tls(config.fetcher(), tls.config(None))?,
            None => Fetcher::new(config.fetcher())?,
        };
        let in_memory_max_bytes = config.fetch.in_memory_bytes;
        let patience = config.control.dial_timeout.get();
        let terms = DeskTerms {
            config: config.coordinator(),
            api_id: api_id.clone(),
            seed,
            dial: Arc::new(TcpDial(Connector::new(worker_tls.as_ref(), patience))),
            stream: config.stream(),
            fetching: Fetching {
                get: Arc::new(HttpGet { fetcher, in_memory_max_bytes }),
                cores: Arc::clone(&cores),
                memory: Arc::clone(&memory),
                in_memory_max_bytes,
                trust_advertised_host: config.fetch.trust_advertised_host,
            },
            runtime: tokio::runtime::Handle::current(),
            journal,
        };
        let desk = Desk::new(terms, &inbox)?;
        let control = on_a_thread_of_its_own(desk.serve(inbox))?;

        let mut tasks = JoinSet::new();
        if let Some(tls) = &tls {
            tasks.spawn(tls.clone().keep_fresh());
        }
        if let Some(tls) = &worker_tls {
            tasks.spawn(tls.clone().keep_fresh());
        }
        let (mut discovery, changes) = Discovery::new(config.pace(), seed);
        for place in config.places()? {
            discovery.ask_at(&place)?;
        }
        tasks.spawn(pass_on(changes, coordination.clone()));

        let queries = Arc::new(Queries::new(Kit {
            coordination: coordination.clone(),
            segments: Arc::new(feed.reader()),
            cores,
            memory,
            figures: Arc::new(Figures::default()),
            size: config.cells(),
            limits: config.evaluation().limits,
            window: config.schedule.query_window,
        }));
        let closing = Closing { grace: config.patience(), ..Closing::default() };
        let listener = tokio::net::TcpListener::from_std(listener)
            .map_err(|source| StartError::Listen { address: http, source })?;
        let watch = Arc::new(QueueWatch::start(coordination.clone()));
        let scaler = match config.scaler {
            Some(address) => Some(serve_scaler(address, &watch, &closing, &mut tasks)?),
            None => None,
        };
        let sights = Sights {
            monitor: Arc::clone(&watch) as _,
            figures: Arc::clone(&queries.kit().figures),
            memory: Arc::clone(&queries.kit().memory),
            catalog: feed.reader(),
            sources: discovery.figures(),
        };
        let access = access(config)?;
        let routes =
            http::routes(Arc::clone(&queries) as _, config.http_settings(), access.clone())
                .merge(monitor::probes(Arc::clone(&watch) as _, closing.told.clone()))
                .merge(monitor::routes(watch, access))
                .merge(metrics::routes(sights));
        let server = Server::new(listener, routes, config.serving.clone()).with_tls(tls);
        let serving = tokio::spawn(server.serve(closing.clone()));
        info!(%api_id, %http, version, "api node is ready");
        Ok(Self {
            http,
            scaler,
            queries,
            coordination,
            control: Some(control),
            closing,
            serving,
            tasks,
            _discovery: discovery,
            feed,
        })
    }

    /// Where clients ask.
    pub fn http(&self) -> SocketAddr {
        self.http
    }

    /// Where KEDA asks, if anywhere.
    pub fn scaler(&self) -> Option<SocketAddr> {
        self.scaler
    }

    /// What answers questions, without HTTP in between.
    pub fn queries(&self) -> Arc<dyn Ask> {
        Arc::clone(&self.queries) as _
    }

    /// The segments it knows of.
    pub fn universe(&self) -> UniverseReader {
        self.feed.reader()
    }

    /// A way to see what it does.
    pub fn coordination(&self) -> Coordination {
        self.coordination.clone()
    }

    /// Leaves: takes no more queries, lets those that run come to their end for as long as is
    /// configured, ends the rest with an error, cancels their work, and closes streams and port.
    /// Gives whether nothing was cut short.
    pub async fn close(mut self) -> bool {
        self.closing.told.cancel();
        self.queries.close(self.closing.grace).await;
        let cut = (&mut self.serving).await.unwrap_or(1);
        self.coordination.stop().await;
        if let Some(control) = self.control.take() {
            let ended = tokio::task::spawn_blocking(move || control.join()).await;
            if !matches!(ended, Ok(Ok(()))) {
                warn!("the coordinator broke off");
            }
        }
        self.tasks.shutdown().await;
        self.feed.stop().await;
        info!(cut, "api node has left");
        cut == 0
    }
}

fn access(config: &ApiConfig) -> Result<Access, StartError> {
    let limits = config.tenant_limits();
    Ok(match &config.access.keys {
        Some(path) => Access::with_key_file(path.clone(), limits)?,
        None => Access::without_keys(limits),
    })
}

/// Serves KEDA until the node leaves.
fn serve_scaler(
    address: SocketAddr,
    watch: &QueueWatch,
    closing: &Closing,
    tasks: &mut JoinSet<()>,
) -> Result<SocketAddr, StartError> {
    let (listener, address) = listen(address)?;
    let listener = tokio::net::TcpListener::from_std(listener)
        .map_err(|source| StartError::Listen { address, source })?;
    let serving = scaler::serve(listener, watch.queue(), closing.told.clone());
    tasks.spawn(async move {
        if let Err(error) = serving.await {
            warn!(%error, "the scaler is served no more");
        }
    });
    Ok(address)
}

async fn open_catalog(config: &ApiConfig) -> Result<Catalog, StartError> {
    let knobs = config.catalog_knobs();
    match (&config.data_dir, &config.catalog) {
        (Some(folder), _) => Ok(DataDir::open(folder)?.catalog(knobs).await?),
        (None, Some(url)) => Ok(Catalog::open(url.parse()?, knobs).await?),
        (None, None) => Err(StartError::NoCatalog),
    }
}

/// The configured name or the host's, and something that makes this life of it unique.
fn api_id(config: &ApiConfig) -> Result<ApiId, StartError> {
    let name = match &config.api_id {
        Some(name) => name.clone(),
        None => tributary_process::host::host_name(),
    };
    ApiId::new(&format!("{name}.{:08x}", random() >> 32)).map_err(StartError::Name)
}

fn random() -> u64 {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).expect("the system has random numbers");
    u64::from_le_bytes(bytes)
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    });
    bound.map_err(|source| StartError::Listen { address, source })
}

/// Control has a thread of its own, so that heartbeats wait for nobody.
fn on_a_thread_of_its_own(
    control: impl Future<Output = ()> + Send + 'static,
) -> Result<thread::JoinHandle<()>, CoordinationError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(CoordinationError::Thread)?;
    let spawned = thread::Builder::new().name("control".into());
    spawned.spawn(move || runtime.block_on(control)).map_err(CoordinationError::Thread)
}

async fn pass_on(mut changes: mpsc::Receiver<Change>, coordination: Coordination) {
    while let Some(change) = changes.recv().await {
        let told = match change {
            Change::Appeared(endpoint) => coordination.discovered(endpoint).await,
            Change::Gone(endpoint) => coordination.gone(endpoint).await,
        };
        if told.is_err() {
            return;
        }
    }
}

/// Dials over TCP, inside TLS where it is on.
#[derive(Debug)]
struct TcpDial(Connector);

impl Dial for TcpDial {
    fn dial(
        &self,
        endpoint: &Endpoint,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Channel, DialError>> + Send>> {
        let (endpoint, connector) = (endpoint.clone(), self.0.clone());
        Box::pin(async move {
            let address = Address::from_shared(format!("http://{endpoint}"))
                .map_err(|source| DialError::Address { endpoint: endpoint.clone(), source })?;
            let connected = address.connect_with_connector(connector).await;
            connected.map_err(|source| DialError::Connect { endpoint, source })
        })
    }
}
