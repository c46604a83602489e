//! What can be configured of an API node. Every knob is said once, here: meaning, default, and what
//! raising it costs. How it is read from file, environment and flags is left to `process`.

mod parts;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use core_workcoord::config::BadConfig;
use core_workcoord::id::{ApiId, BadId};
use tributary_process::config::{Configured, OutOfRange, Span, within};
use tributary_process::http::HttpConfig;
use tributary_process::knobs;
use tributary_process::logs::LogConfig;
use tributary_process::tls::{BadTls, ClientTlsConfig, TlsConfig};
use tributary_process::traces::{BadTraces, TracesConfig};
use tributary_promql::EvalLimits;

use crate::cells::CellSize;
use crate::discovery::BadPlace;

knobs! {
    /// Everything that can be configured of an API node.
    ApiConfig {
        /// The node's name in logs and towards workers; each start adds something that makes it
        /// unique (default: the name of the host).
        api_id: Option<String> = None,
        /// Where clients ask (default 0.0.0.0:9480; port 0 takes a free one).
        http: SocketAddr = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 9480),
        /// Where KEDA's external scaler is served, over gRPC (default: nowhere).
        scaler: Option<SocketAddr> = None,
        /// A data directory with catalog and segments (default: none).
        data_dir: Option<PathBuf> = None,
        /// The catalog, in place of data_dir: sqlite:///path/catalog.db or postgres://host/name
        /// (default: none).
        catalog: Option<String> = None,
        /// The object store with the segments. API nodes never read it, for workers do; it may be
        /// named so that one configuration fits both (default: none).
        store: Option<String> = None,
        /// Workers by their control ports, as host:port (default: none).
        workers: Vec<String> = Vec::new(),
        /// Further places that name workers: dns:host:port, kubernetes:namespace/service:port,
        /// ecs:cluster/service:port (default: none).
        discovery: Vec<String> = Vec::new(),
        /// A folder where everything the coordinator is told and decides is written down, for
        /// tributary replay (default: nowhere). It grows without bound.
        journal: Option<PathBuf> = None,
    }
    sections {
        /// Queries.
        query: QueryConfig,
        /// What a query may take.
        limits: LimitConfig,
        /// Work items.
        work: WorkConfig,
        /// Control streams.
        control: ControlConfig,
        /// Who gets what, and what happens to work that fails.
        schedule: ScheduleConfig,
        /// Fetching artifacts.
        fetch: FetchConfig,
        /// Reading the catalog.
        catalog_reads: CatalogConfig,
        /// Finding workers.
        discover: DiscoverConfig,
        /// Who may ask, and how much.
        access: AccessConfig,
        /// The HTTP port.
        serving: HttpConfig,
        /// TLS of the ports.
        tls: TlsConfig,
        /// TLS of connections to workers, of control streams and artifacts alike.
        worker_tls: ClientTlsConfig,
        /// Leaving.
        shutdown: ShutdownConfig,
        /// Log lines.
        log: LogConfig,
        /// Traces.
        traces: TracesConfig,
    }
}

knobs! {
    /// Queries.
    QueryConfig {
        /// A query may run this long; a client may ask for less (default 2m). Longer: a query that
        /// nobody needs any more holds workers for longer.
        timeout: Span = Span::seconds(120),
        /// A question about series and labels may run this long (default 30s).
        inquiry_timeout: Span = Span::seconds(30),
        /// How far an instant selector looks back for a sample (default 5m).
        lookback: Span = Span::seconds(300),
        /// The step of subqueries that name none (default 1m).
        subquery_step: Span = Span::seconds(60),
        /// Experimental parts of the language: promql-experimental-functions, promql-duration-expr,
        /// promql-extended-range-selectors, promql-binop-fill-modifiers, promql-delayed-name-removal,
        /// type-and-unit-labels, or all (default: none).
        features: Vec<String> = Vec::new(),
        /// Results are read and evaluated on so many threads at once (default 0: as many as cores).
        cores: u32 = 0,
        /// A stream of events says that it is alive after so long a silence (default 5s).
        heartbeat: Span = Span::seconds(5),
    }
}

knobs! {
    /// What a query may take.
    LimitConfig {
        /// Memory for results of all queries together, in bytes (default 2147483648). A query that
        /// would need more ends with an error. More: memory.
        memory_bytes: u64 = 2 << 30,
        /// Series that one selector may read (default 1000000).
        series: u64 = EvalLimits::default().max_series,
        /// Samples that one selector may read (default 2000000000). More: time in proportion.
        samples: u64 = EvalLimits::default().max_samples,
        /// Steps of a query (default 11000). More: memory in proportion.
        steps: u64 = EvalLimits::default().max_steps,
        /// Steps of a subquery (default 500000). More: memory and time in proportion.
        subquery_steps: u64 = EvalLimits::default().max_subquery_steps,
        /// Values that one query holds at once (default 50000000). More: memory, 8 to 100 bytes each.
        values: u64 = EvalLimits::default().max_values,
        /// Samples that overlapping windows of one function look at (default 5000000000). More: time.
        window_samples: u64 = EvalLimits::default().max_window_samples,
        /// Bytes of a request's body, decompressed (default 2097152). More: memory for each request.
        body_bytes: u64 = 2 << 20,
    }
}

knobs! {
    /// Work items.
    WorkConfig {
        /// Neighbouring cells are one work item up to so many samples (default 2000000). More: fewer
        /// and longer items, later first results.
        max_samples: u64 = CellSize::default().max_samples,
        /// And up to so many segments (default 64).
        max_segments: u32 = 64,
        /// And only within spans that begin at multiples of this (default 12h), so that repeated
        /// queries come to the same items.
        align: Span = Span::seconds(12 * 60 * 60),
    }
}

knobs! {
    /// Control streams.
    ControlConfig {
        /// Heartbeats are sent this often (default 1s). Longer: dead links are noticed later.
        heartbeat_interval: Span = Span::seconds(1),
        /// A worker that was silent for this long is lost (default 3s). Longer: work on a dead link
        /// waits longer.
        heartbeat_timeout: Span = Span::seconds(3),
        /// A stream must be open this soon after a dial (default 2s).
        dial_timeout: Span = Span::seconds(2),
        /// A worker must introduce itself this soon (default 2s).
        welcome_timeout: Span = Span::seconds(2),
        /// An assignment or a cancellation must be answered this soon (default 10s).
        answer_timeout: Span = Span::seconds(10),
        /// First pause before a redial; it doubles with every failure, with jitter (default 100ms).
        backoff_base: Span = Span::millis(100),
        /// Longest pause before a redial (default 5s). Longer: a returning worker is found later.
        backoff_max: Span = Span::seconds(5),
        /// Messages that may wait for a worker that reads slowly; when there are more, its stream is
        /// closed (default 4096). More: memory.
        send_queue: u32 = 4096,
    }
}

knobs! {
    /// Who gets what, and what happens to work that fails.
    ScheduleConfig {
        /// Work items on one worker beyond its slots (default 2). More: fewer gaps between items,
        /// and more to hand elsewhere when it dies.
        worker_queue_ahead: u32 = 2,
        /// Items of one query on their way at once (default 64). More: memory for early results.
        query_window: u32 = 64,
        /// Queries at once (default 500). More: memory.
        max_queries: u32 = 500,
        /// Queries of one tenant at once (default 100).
        max_tenant_queries: u32 = 100,
        /// Items that wait, of all queries (default 200000). More: memory.
        max_queued_items: u32 = 200_000,
        /// Items of one query (default 100000).
        max_query_items: u32 = 100_000,
        /// Attempts at one item (default 6). More: work that always fails ends its query later.
        max_attempts: u32 = 6,
        /// An item that was running on so many workers when they died fails its query (default 3).
        poison_workers: u32 = 3,
        /// A straggler is tried elsewhere too when it takes so many times as long as its siblings
        /// did (default 3.0). Less: more double work.
        hedge_factor: f64 = 3.0,
        /// But not before this (default 50ms).
        hedge_floor: Span = Span::millis(50),
        /// Second attempts as a share of finished items, in thousandths (default 50).
        hedge_budget_per_mille: u32 = 50,
    }
}

knobs! {
    /// Fetching artifacts.
    FetchConfig {
        /// Fetches at once (default 64). More: memory and sockets.
        max_fetches: u32 = 64,
        /// Bytes of fetches at once (default 268435456); one is always allowed. More: memory.
        max_bytes: u64 = 256 << 20,
        /// Bytes of one artifact (default 1073741824). A larger one fails its query.
        max_artifact_bytes: u64 = 1 << 30,
        /// Artifacts up to so many bytes are held in memory until they are read, larger ones in a file
        /// among the temporary ones (default 8388608). More: memory.
        in_memory_bytes: u64 = 8 << 20,
        /// A connection must be made this soon (default 2s).
        connect_timeout: Span = Span::seconds(2),
        /// The next bytes must come this soon (default 3s). Longer: a worker that hangs, or a
        /// connection that died without a word, is given up later.
        read_timeout: Span = Span::seconds(3),
        /// Tries before the work is done elsewhere (default 3).
        attempts: u32 = 3,
        /// Artifacts are fetched from the host a worker advertises, instead of the one where it was
        /// dialled (default false). Only for networks where the two differ: it lets a worker send
        /// this node to any address.
        trust_advertised_host: bool = false,
    }
}

knobs! {
    /// Reading the catalog.
    CatalogConfig {
        /// It is asked this often whether anything changed (default 250ms). Longer: new segments are
        /// seen later.
        poll_interval: Span = Span::millis(250),
        /// Longest pause between two tries while it is away (default 2s).
        backoff_max: Span = Span::seconds(2),
    }
}

knobs! {
    /// Finding workers.
    DiscoverConfig {
        /// Names are looked up this often (default 5s). Longer: a new worker is found later.
        dns_interval: Span = Span::seconds(5),
        /// ECS is asked this often (default 10s). Shorter: its limit on requests is reached sooner.
        ecs_interval: Span = Span::seconds(10),
    }
}

knobs! {
    /// Who may ask, and how much.
    AccessConfig {
        /// A file with API keys, hashed; it is read again when it changes (default: none, and
        /// requests name their tenant in X-Scope-OrgID).
        keys: Option<PathBuf> = None,
        /// Requests of one tenant a second, over time (default 0: any number).
        requests_per_second: f64 = 0.0,
        /// Requests of one tenant at once beyond that rate (default 200).
        burst: u32 = 200,
        /// Requests of one tenant that run at once (default 100).
        concurrency: u32 = 100,
        /// Pages of these origins may read answers (default *, as Prometheus has it).
        cors_origins: Vec<String> = vec!["*".into()],
    }
}

knobs! {
    /// Leaving.
    ShutdownConfig {
        /// Queries that run have this long to end (default 30s). Longer: a rollout takes longer.
        timeout: Span = Span::seconds(30),
    }
}

/// A configuration that makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadApiConfig {
    /// The name can't be an API node's.
    #[error("api_id: {0}")]
    ApiId(BadId),
    /// An address is no worker's.
    #[error("workers: {text:?}: {source}")]
    Worker {
        /// What stands there.
        text: String,
        /// What is wrong with it.
        source: BadId,
    },
    /// A worker without a port.
    #[error("workers: {0:?} is not of the form host:port")]
    WorkerPort(String),
    /// A place to find workers is none.
    #[error("discovery: {0}")]
    Place(#[from] BadPlace),
    /// Knobs that contradict each other, or a senseless one.
    #[error(transparent)]
    Coordinator(#[from] BadConfig),
    /// A value outside its range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// Knobs of TLS that make no sense.
    #[error(transparent)]
    Tls(#[from] BadTls),
    /// Traces can't be sent like this.
    #[error(transparent)]
    Traces(#[from] BadTraces),
    /// Two places for the catalog.
    #[error("data_dir and catalog are both given; one of them is needed")]
    TwoCatalogs,
    /// A feature that this build does not know.
    #[error("query.features: there is no {0:?}; known are {known}", known = FEATURES.join(", "))]
    Feature(String),
}

/// Experimental parts of the language, by the names of Prometheus' flags.
const FEATURES: [&str; 7] = [
    "all",
    "promql-experimental-functions",
    "promql-duration-expr",
    "promql-extended-range-selectors",
    "promql-binop-fill-modifiers",
    "promql-delayed-name-removal",
    "type-and-unit-labels",
];

impl Configured for ApiConfig {
    const WHAT: &'static str = "an API node";
    const VARIABLE_PREFIX: &'static str = "TRIBUTARY_API_";
    type Bad = BadApiConfig;

    fn check(&self) -> Result<(), BadApiConfig> {
        if let Some(name) = &self.api_id {
            ApiId::new(name).map_err(BadApiConfig::ApiId)?;
        }
        if self.data_dir.is_some() && self.catalog.is_some() {
            return Err(BadApiConfig::TwoCatalogs);
        }
        if let Some(unknown) =
            self.query.features.iter().find(|name| !FEATURES.contains(&name.as_str()))
        {
            return Err(BadApiConfig::Feature(unknown.clone()));
        }
        let day = 86_400_000;
        within("query.timeout (ms)", self.query.timeout.as_millis(), 1, day)?;
        within("query.inquiry_timeout (ms)", self.query.inquiry_timeout.as_millis(), 1, day)?;
        within("query.subquery_step (ms)", self.query.subquery_step.as_millis(), 1, day)?;
        within("query.lookback (ms)", self.query.lookback.as_millis(), 1, 366 * day)?;
        within("query.heartbeat (ms)", self.query.heartbeat.as_millis(), 100, day)?;
        within("query.cores", self.query.cores.into(), 0, 4_096)?;
        within("limits.memory_bytes", self.limits.memory_bytes, 1 << 20, 1 << 50)?;
        within("limits.body_bytes", self.limits.body_bytes, 1 << 10, 1 << 30)?;
        within("work.max_segments", self.work.max_segments.into(), 1, 1_000)?;
        within("work.align (ms)", self.work.align.as_millis(), 1_000, 366 * day)?;
        within("control.send_queue", self.control.send_queue.into(), 16, 65_536)?;
        within("schedule.query_window", self.schedule.query_window.into(), 1, 4_096)?;
        within("fetch.attempts", self.fetch.attempts.into(), 1, 100)?;
        within("access.concurrency", self.access.concurrency.into(), 1, 1 << 20)?;
        within("shutdown.timeout (ms)", self.shutdown.timeout.as_millis(), 0, day)?;
        self.serving.check()?;
        self.tls.check()?;
        self.traces.check()?;
        self.places()?;
        self.coordinator().check()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tributary_process::config::Section;

    use super::*;

    #[test]
    fn the_defaults_make_sense_and_every_knob_says_what_it_is() {
        ApiConfig::default().check().unwrap();
        for setting in <ApiConfig as Section>::settings() {
            let about = setting.knob.about.join(" ");
            assert!(about.contains("(default"), "{} does not name its default", setting.key());
            assert!(about.trim_end().ends_with(['.', ')']), "{}", setting.key());
        }
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        let refused = |change: fn(&mut ApiConfig)| {
            let mut config = ApiConfig::default();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        let two = refused(|config| {
            config.catalog = Some("postgres://db/x".into());
            config.data_dir = Some("data".into());
        });
        assert!(two.contains("both given"), "{two}");
        let port = refused(|config| config.workers = vec!["worker-1".into()]);
        assert!(port.contains("host:port"), "{port}");
        let feature = refused(|config| config.query.features = vec!["promql-magic".into()]);
        assert!(feature.contains("promql-magic") && feature.contains("known are"), "{feature}");
        assert_eq!(
            refused(|config| config.control.heartbeat_timeout = Span::millis(900)),
            "heartbeat_timeout must exceed heartbeat_interval"
        );
    }
}
