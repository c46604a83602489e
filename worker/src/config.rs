//! What can be configured of a worker. Every knob is said once, here: meaning, default, and what
//! raising it costs. `load` reads file, environment and flags; `print` writes the result down.

mod knob;
mod load;
mod print;
mod span;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use core_workcoord::config::{BadConfig, IntakeConfig};
use core_workcoord::id::{BadId, WorkerId};
use knob::knobs;
pub use knob::{Kind, Knob, Typed};
pub use load::{ConfigError, Settings, load};
use serde::{Deserialize, Serialize};
pub use span::{BadSpan, Span};

/// What the names of environment variables begin with.
pub const VARIABLE_PREFIX: &str = "TRIBUTARY_WORKER_";

/// The most threads that are started for leaves.
const SLOTS_MAX: u32 = 4_096;

/// The lowest priority Linux knows.
const NICE_MAX: u8 = 19;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for programs.
    Json,
}

knobs! {
    /// Everything that can be configured of a worker.
    WorkerConfig in "" {
        /// The worker's name, stable over restarts, so that affinity and cache survive (default: the
        /// name of the host).
        worker_id: Option<String> = None,
        /// Where API nodes open control streams (default 0.0.0.0:9470; port 0 takes a free one).
        grpc: SocketAddr = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 9470),
        /// Where artifacts, /metrics and the probes are served (default 0.0.0.0:9471).
        http: SocketAddr = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 9471),
        /// How API nodes reach the HTTP port, as http://host:port (default: the address it listens
        /// at, with the name of the host where that is every address).
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
        /// Finished artifacts.
        artifacts: ArtifactConfig,
        /// Leaving.
        drain: DrainConfig,
        /// Log lines.
        log: LogConfig,
    }
}

knobs! {
    /// Running leaves.
    ExecutionConfig in "execution" {
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
    ControlConfig in "control" {
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
        /// A connection whose ping is not answered this soon is closed (default 5s).
        keepalive_timeout: Span = Span::seconds(5),
    }
}

knobs! {
    /// The HTTP port.
    HttpConfig in "serving" {
        /// Connections at once; further ones wait (default 1024). More: file descriptors, and memory
        /// for what is being sent.
        max_connections: u32 = 1024,
        /// A request's head must be there this soon (default 10s). Longer: connections that say
        /// nothing are held for longer.
        request_timeout: Span = Span::seconds(10),
        /// A peer must take something of what is sent to it this soon (default 30s). Longer: peers
        /// that stopped reading hold a connection and a file for longer.
        write_timeout: Span = Span::seconds(30),
    }
}

knobs! {
    /// Finished artifacts.
    ArtifactConfig in "artifacts" {
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
    DrainConfig in "drain" {
        /// A drain ends after this long, done or not (default 5m). Longer: a stuck API node keeps
        /// the worker from leaving for longer. Keep it below the time the platform gives.
        timeout: Span = Span::seconds(300),
        /// Whether POST /drain on the HTTP port drains, as SIGTERM does (default true).
        over_http: bool = true,
    }
}

knobs! {
    /// Log lines.
    LogConfig in "log" {
        /// How they look: text or json (default text).
        format: LogFormat = LogFormat::Text,
        /// Which are written: error, warn, info, debug or trace, also by module, as in
        /// info,tributary_worker=debug (default info). More: at debug some lines for each work item.
        filter: String = "info".into(),
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
    #[error("{knob} must be from {from} to {to}")]
    Range {
        /// Which knob.
        knob: &'static str,
        /// The least it may be.
        from: u64,
        /// The most it may be.
        to: u64,
    },
    /// The advertised URL is none.
    #[error("advertise must be http://host:port or https://host:port without a path, not {0:?}")]
    Advertise(String),
}

impl WorkerConfig {
    /// Every knob there is, in the order they are printed.
    pub fn knobs() -> impl Iterator<Item = &'static Knob> {
        [
            Self::KNOBS,
            ExecutionConfig::KNOBS,
            ControlConfig::KNOBS,
            HttpConfig::KNOBS,
            ArtifactConfig::KNOBS,
            DrainConfig::KNOBS,
            LogConfig::KNOBS,
        ]
        .into_iter()
        .flatten()
    }

    /// Checks everything that can be checked without looking at the machine.
    pub fn check(&self) -> Result<(), BadWorkerConfig> {
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
        let control = &self.control;
        let hour = 3_600_000;
        for (knob, value, from, to) in [
            ("execution.slots", self.execution.slots.into(), 0, SLOTS_MAX.into()),
            ("execution.nice", self.execution.nice.into(), 0, NICE_MAX.into()),
            ("control.max_connections", control.max_connections.into(), 1, 1 << 20),
            ("serving.max_connections", self.serving.max_connections.into(), 1, 1 << 20),
            ("serving.request_timeout (ms)", millis(self.serving.request_timeout), 100, hour),
            ("serving.write_timeout (ms)", millis(self.serving.write_timeout), 100, hour),
            ("control.send_queue", control.send_queue.into(), 16, 65_536),
            ("control.keepalive_interval (ms)", millis(control.keepalive_interval), 100, hour),
            ("control.keepalive_timeout (ms)", millis(control.keepalive_timeout), 100, hour),
            (
                "artifacts.disk_report_interval (ms)",
                millis(self.artifacts.disk_report_interval),
                10,
                60_000,
            ),
        ] {
            if !(from..=to).contains(&value) {
                return Err(BadWorkerConfig::Range { knob, from, to });
            }
        }
        self.intake().check()?;
        Ok(())
    }

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
        let base = match &self.advertise {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None if http.ip().is_unspecified() => format!("http://{}:{}", host_name(), http.port()),
            None => format!("http://{http}"),
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

fn millis(span: Span) -> u64 {
    u64::try_from(span.get().as_millis()).unwrap_or(u64::MAX)
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

fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_make_sense_and_every_knob_says_what_it_is() {
        WorkerConfig::default().check().unwrap();
        for knob in WorkerConfig::knobs() {
            let about = knob.about.join(" ");
            assert!(about.contains("(default"), "{} does not name its default", knob.key());
            assert!(about.ends_with('.'), "{}", knob.key());
        }
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
        config.advertise = Some("https://worker-3.pool:443/".into());
        let url = config.artifact_base_url("0.0.0.0:81".parse().unwrap());
        assert_eq!(url, "https://worker-3.pool:443/artifacts/");
    }
}
