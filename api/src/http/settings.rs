//! What whoever runs an API node may choose about how clients are spoken with.

use std::time::Duration;

use tributary_promql::{EvalOptions, Options};

/// How clients are spoken with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long a query may run (2 min, as Prometheus has it). A client may ask for less, never for
    /// more. Longer: a query nobody reads any more holds its work longer.
    pub query_timeout: Duration,
    /// How long a look at series and labels may take (30 s).
    pub inquiry_timeout: Duration,
    /// Intervals of a range query (11,000, as Prometheus has it), beside the limit of the
    /// evaluation. More: memory and time in proportion.
    pub max_points: u64,
    /// How texts are read: experimental parts of the language, and limits.
    pub parsing: Options,
    /// How queries are evaluated, where the client does not say.
    pub evaluation: EvalOptions,
    /// Bytes of a request's body, after decompression (2 MiB). More: memory for each request.
    pub max_body_bytes: usize,
    /// A request's body must be here this soon (30 s). Longer: slow senders hold connections longer.
    pub body_timeout: Duration,
    /// A stream of events says that it is alive after so long a silence (5 s). Shorter: more frames.
    pub heartbeat: Duration,
    /// Pages of which origins may read answers (any, as Prometheus has it).
    pub cors: Origins,
    /// Answers are compressed for clients that take it (yes). Streams of events never are.
    pub compression: bool,
    /// The version of Prometheus that clients take this for when they ask what they may use (3.5.0).
    pub prometheus_version: String,
}

/// Pages of which origins may read answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origins {
    /// All of them.
    Any,
    /// Those of these origins, such as `https://grafana.example.org`.
    Only(Vec<String>),
}

impl Default for Settings {
    fn default() -> Self {
        let mut evaluation = EvalOptions::default();
        // Prometheus counts intervals, of which there is one less than points.
        evaluation.limits.max_steps += 1;
        Self {
            query_timeout: Duration::from_secs(120),
            inquiry_timeout: Duration::from_secs(30),
            max_points: 11_000,
            parsing: Options::default(),
            evaluation,
            max_body_bytes: 2 << 20,
            body_timeout: Duration::from_secs(30),
            heartbeat: Duration::from_secs(5),
            cors: Origins::Any,
            compression: true,
            prometheus_version: "3.5.0".to_owned(),
        }
    }
}
