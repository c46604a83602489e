//! What can be configured of a worker. Every knob is said once, here: meaning, default, and what
//! raising it costs. How it is read from file, environment and flags is left to `process`.

mod disk;
mod limits;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use core_workcoord::config::{BadConfig, IntakeConfig};
use core_workcoord::id::{BadId, WorkerId};
pub use disk::{DiskKnobs, DownloadKnobs};
pub use limits::LimitKnobs;
use tributary_artifact_store::DiskConfig;
pub use tributary_process::config::Span;
use tributary_process::config::{Configured, OutOfRange, within};
use tributary_process::host::host_name;
pub use tributary_process::http::HttpConfig;
use tributary_process::knobs;
pub use tributary_process::logs::LogConfig;
pub use tributary_process::tls::{BadTls, TlsConfig};
pub use tributary_process::traces::{BadTraces, TracesConfig};

/// The most threads that are started for leaves.
const SLOTS_MAX: u32 = 4_096;

/// The lowest priority Linux knows.
const NICE_MAX: u8 = 19;

knobs! {
    /// Everything that can be configured of a worker.
    WorkerConfig {
        /// The worker's name, stable over restarts, so that affinity and cache survive (default: the
        /// name of the host).
        worker_id: Option<String> = None,
        /// Where API nodes open control streams (default 0.0.0.0:9470; port 0 takes a free one).
        grpc: SocketAddr = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 9470),
        /// Where artifacts, /metrics and the probes are served (default 0.0.0.0:9471).
        http: SocketAddr = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 9471),
        /// How API nodes reach the HTTP port, as http://host:port, or https:// with TLS, which needs
        /// a name that the certificate has (default: the address it listens at, with the name of the
        /// host where that is every address).
        advertise: Option<String> = None,
        /// The object store with the segments: s3://bucket/prefix or file:///path (default: none).
        store: Option<String> = None,
        /// A data directory with the segments, in place of store (default: none).
        data_dir: Option<PathBuf> = None,
        /// Where artifacts and cached segments are kept; of one worker alone (default: a folder
        /// named after the worker among the system's temporary files).
        cache_dir: Option<PathBuf> = None,
    }
    sections {
        /// Running leaves.
        execution: ExecutionConfig,
        /// Control streams.
        control: ControlConfig,
        /// The HTTP port.
        serving: HttpConfig,
        /// TLS of both ports.
        tls: TlsConfig,
        /// Finished artifacts.
        artifacts: ArtifactConfig,
        /// The disk: one budget for artifacts and cached segments.
        disk: DiskKnobs,
        /// Downloads of segments.
        download: DownloadKnobs,
        /// Limits of one leaf, whatever an API node asks: the smaller one counts.
        limits: LimitKnobs,
        /// Leaving.
        drain: DrainConfig,
        /// Log lines.
        log: LogConfig,
        /// Traces.
        traces: TracesConfig,
    }
}

knobs! {
    /// Running leaves.
    ExecutionConfig {
        /// Leaves that run at once, each on a thread of its own (default 0: as many as cores). More:
        /// memory, and each leaf takes longer.
        slots: u32 = 0,
        /// Leaves accepted beyond the slots, of all API nodes (default 16). More: work waits here
        /// that a worker with room could do.
        queue_limit: u32 = 16,
        /// How much the threads of leaves step back behind control and HTTP, as in nice(1), 0 to 19
        /// (default 5). More: answers come even sooner on a busy machine, and leaves get less of a
        /// machine they share with others.
        nice: u8 = 5,
    }
}

knobs! {
    /// Control streams.
    ControlConfig {
        /// Heartbeats are sent at least this often (default 1s). Longer: dead links are noticed
        /// later.
        heartbeat_interval: Span = Span::seconds(1),
        /// An API node that was silent for this long is lost, and its work is cancelled (default
        /// 3s). Longer: work of a dead API node runs on for longer.
        heartbeat_timeout: Span = Span::seconds(3),
        /// A connection must open a stream, and a stream must introduce itself, this soon (default
        /// 2s). Longer: connections that say nothing are held for longer.
        hello_timeout: Span = Span::seconds(2),
        /// Control streams at once (default 64). More: memory, and heartbeats.
        max_sessions: u32 = 64,
        /// Connections at once to the control port (default 256). More: file descriptors.
        max_connections: u32 = 256,
        /// Messages that may wait for an API node that reads slowly; when there are more, its stream
        /// is closed (default 4096). More: memory, some hundred bytes a message.
        send_queue: u32 = 4096,
        /// HTTP/2 pings go out this often on a quiet connection (default 10s). Longer: connections
        /// that died without a word are held for longer.
        keepalive_interval: Span = Span::seconds(10),
        /// A connection whose ping is not answered this soon is closed (default 5s). Longer: as
        /// above.
        keepalive_timeout: Span = Span::seconds(5),
    }
}

knobs! {
    /// Finished artifacts.
    ArtifactConfig {
        /// An artifact that nobody acknowledged is kept this long (default 10m). Longer: disk.
        ttl: Span = Span::seconds(600),
        /// An acknowledged artifact is kept this long (default 30s). Longer: disk.
        ttl_after_ack: Span = Span::seconds(30),
        /// The disk is looked at this often, to tell API nodes of it and to stop and resume taking
        /// work (default 250ms). Longer: a full disk is noticed later.
        disk_report_interval: Span = Span::millis(250),
    }
}

knobs! {
    /// Leaving.
    DrainConfig {
        /// A drain ends after this long, done or not (default 5m). Longer: a stuck API node keeps
        /// the worker from leaving for longer. Keep it below the time the platform gives.
        timeout: Span = Span::seconds(300),
        /// Whether POST /drain on the HTTP port drains, as SIGTERM does (default true).
        over_http: bool = true,
    }
}

/// A configuration that makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadWorkerConfig {
    /// The name can't be a worker's.
    #[error("worker_id: {0}")]
    WorkerId(#[from] BadId),
    /// Knobs that contradict each other, or a senseless one.
    #[error(transparent)]
    Intake(#[from] BadConfig),
    /// Two places for the segments.
    #[error("store and data_dir are both given; one of them is needed")]
    TwoStores,
    /// A value outside its range.
    #[error(transparent)]
    Range(#[from] OutOfRange),
    /// TLS is given in part.
    #[error(transparent)]
    Tls(#[from] BadTls),
    /// Traces can't be sent like this.
    #[error(transparent)]
    Traces(#[from] BadTraces),
    /// Knobs of the disk that contradict each other, or a senseless one.
    #[error("disk, download or artifacts: {0}")]
    Disk(String),
    /// The advertised URL is none.
    #[error("advertise must be http://host:port or https://host:port without a path, not {0:?}")]
    Advertise(String),
}

impl Configured for WorkerConfig {
    const WHAT: &'static str = "a worker";
    const VARIABLE_PREFIX: &'static str = "TRIBUTARY_WORKER_";
    type Bad = BadWorkerConfig;

    fn check(&self) -> Result<(), BadWorkerConfig> {
        if let Some(name) = &self.worker_id {
            WorkerId::new(name)?;
        }
        if self.store.is_some() && self.data_dir.is_some() {
            return Err(BadWorkerConfig::TwoStores);
        }
        if let Some(url) = &self.advertise
            && !is_base_url(url)
        {
            return Err(BadWorkerConfig::Advertise(url.clone()));
        }
        let (control, hour) = (&self.control, 3_600_000);
        within("execution.slots", self.execution.slots.into(), 0, SLOTS_MAX.into())?;
        within("execution.nice", self.execution.nice.into(), 0, NICE_MAX.into())?;
        within("control.max_connections", control.max_connections.into(), 1, 1 << 20)?;
        within("control.send_queue", control.send_queue.into(), 16, 65_536)?;
        let interval = control.keepalive_interval.as_millis();
        within("control.keepalive_interval (ms)", interval, 100, hour)?;
        let timeout = control.keepalive_timeout.as_millis();
        within("control.keepalive_timeout (ms)", timeout, 100, hour)?;
        let interval = self.artifacts.disk_report_interval.as_millis();
        within("artifacts.disk_report_interval (ms)", interval, 10, 60_000)?;
        self.serving.check()?;
        self.tls.check()?;
        self.traces.check()?;
        let disk = self.disk_config(PathBuf::new());
        disk.check().map_err(|error| BadWorkerConfig::Disk(error.to_string()))?;
        self.intake().check()?;
        Ok(())
    }
}

impl WorkerConfig {
    /// How many leaves run at once: what is configured, or one for each core.
    pub fn slots(&self) -> u32 {
        match self.execution.slots {
            0 => std::thread::available_parallelism()
                .map_or(1, |cores| u32::try_from(cores.get()).unwrap_or(SLOTS_MAX).min(SLOTS_MAX)),
            slots => slots,
        }
    }

    /// The worker's name: the configured one, or the host's.
    pub fn worker_id(&self) -> Result<WorkerId, BadId> {
        match &self.worker_id {
            Some(name) => WorkerId::new(name),
            None => WorkerId::new(&host_name()),
        }
    }

    /// Where API nodes find artifacts, given where the HTTP port really is.
    pub fn artifact_base_url(&self, http: SocketAddr) -> String {
        let scheme = if self.tls.is_on() { "https" } else { "http" };
        let base = match &self.advertise {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None if http.ip().is_unspecified() => {
                format!("{scheme}://{}:{}", host_name(), http.port())
            }
            None => format!("{scheme}://{http}"),
        };
        format!("{base}/artifacts/")
    }

    /// Where artifacts and cached segments are kept.
    pub fn cache_dir(&self, worker_id: &WorkerId) -> PathBuf {
        let default = || {
            let name = worker_id.as_str().replace([':', '[', ']'], "_");
            std::env::temp_dir().join(format!("tributary-{name}"))
        };
        self.cache_dir.clone().unwrap_or_else(default)
    }

    /// The part that the disk is run by, in this folder.
    pub fn disk_config(&self, folder: PathBuf) -> DiskConfig {
        disk::disk_config(folder, &self.artifacts, &self.disk, &self.download)
    }

    /// The part that the intake decides by.
    pub fn intake(&self) -> IntakeConfig {
        IntakeConfig {
            slots: self.slots(),
            queue_limit: self.execution.queue_limit,
            max_sessions: self.control.max_sessions,
            heartbeat_interval: self.control.heartbeat_interval.get(),
            heartbeat_timeout: self.control.heartbeat_timeout.get(),
            hello_timeout: self.control.hello_timeout.get(),
            artifact_ttl: self.artifacts.ttl.get(),
            artifact_ttl_after_ack: self.artifacts.ttl_after_ack.get(),
            drain_timeout: self.drain.timeout.get(),
        }
    }
}

/// `http://host:port`, so that an artifact's URL can be put together by joining texts.
fn is_base_url(url: &str) -> bool {
    let url = url.strip_suffix('/').unwrap_or(url);
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(|host| {
        !host.is_empty()
            && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
    })
}

#[cfg(test)]
mod tests {
    use tributary_process::config::Section;

    use super::*;

    #[test]
    fn the_defaults_make_sense_and_every_knob_says_what_it_is() {
        WorkerConfig::default().check().unwrap();
        for setting in WorkerConfig::settings() {
            let about = setting.knob.about.join(" ");
            assert!(about.contains("(default"), "{} does not name its default", setting.key());
            assert!(about.ends_with('.'), "{}", setting.key());
        }
        let variables = WorkerConfig::settings().map(|setting| setting.variable(""));
        let mut variables: Vec<_> = variables.collect();
        let all = variables.len();
        variables.sort_unstable();
        variables.dedup();
        assert_eq!(variables.len(), all, "two knobs have the same variable");
    }

    #[test]
    fn contradictions_are_refused_by_name() {
        let refused = |change: fn(&mut WorkerConfig)| {
            let mut config = WorkerConfig::default();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert_eq!(
            refused(|config| config.control.heartbeat_timeout = Span::millis(900)),
            "heartbeat_timeout must exceed heartbeat_interval"
        );
        assert_eq!(
            refused(|config| config.execution.nice = 20),
            "execution.nice must be from 0 to 19"
        );
        assert_eq!(
            refused(|config| config.disk.low_percent = 95),
            "disk, download or artifacts: bad disk setting: low_percent must be less than \
             high_percent, and that 100 or less"
        );
        let two = refused(|config| {
            config.store = Some("s3://bucket".into());
            config.data_dir = Some("data".into());
        });
        assert!(two.contains("both given"), "{two}");
        assert!(refused(|config| config.worker_id = Some("a/b".into())).contains("worker_id"));
        for url in ["worker:9471", "http://", "http://worker/base", "ftp://worker"] {
            let advertise = Some(url.into());
            let config = WorkerConfig { advertise, ..WorkerConfig::default() };
            assert!(config.check().unwrap_err().to_string().contains("without a path"), "{url}");
        }
    }

    #[test]
    fn artifacts_are_announced_where_api_nodes_can_reach_them() {
        let mut config = WorkerConfig::default();
        let url = config.artifact_base_url("127.0.0.1:81".parse().unwrap());
        assert_eq!(url, "http://127.0.0.1:81/artifacts/");
        let url = config.artifact_base_url("0.0.0.0:81".parse().unwrap());
        assert_eq!(url, format!("http://{}:81/artifacts/", host_name()));
        config.tls.cert = Some("cert.pem".into());
        let url = config.artifact_base_url("127.0.0.1:81".parse().unwrap());
        assert_eq!(url, "https://127.0.0.1:81/artifacts/");
        config.advertise = Some("https://worker-3.pool:443/".into());
        let url = config.artifact_base_url("0.0.0.0:81".parse().unwrap());
        assert_eq!(url, "https://worker-3.pool:443/artifacts/");
    }
}
