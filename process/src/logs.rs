//! Log lines, to standard error: for people, or as JSON for programs. Which ids stand on them is up
//! to whoever writes them.

use std::io;

use serde::{Deserialize, Serialize};
use tracing::Subscriber;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer};

use crate::config::{Kind, Typed};
use crate::knobs;
use crate::traces::Traces;

knobs! {
    /// Log lines.
    LogConfig {
        /// How they look: text or json (default text).
        format: LogFormat = LogFormat::Text,
        /// Which are written: error, warn, info, debug or trace, also by module, as in
        /// info,tributary_worker=debug (default info). More: at debug some lines for each work item.
        filter: String = "info".into(),
    }
}

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

impl Typed for LogFormat {
    const KIND: Kind = Kind::Text;
}

/// Why there are no log lines.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The filter can't be read.
    #[error("log.filter: {0:?} can't be read")]
    Filter(String, #[source] ParseError),
    /// Somebody else writes them already.
    #[error("log lines are written by somebody else already")]
    Taken(#[source] TryInitError),
}

/// Writes log lines from here on, of the whole process.
pub fn start(config: &LogConfig) -> Result<(), LogError> {
    start_with(config, None)
}

/// Writes log lines from here on, of the whole process, and makes traces where there is a way to
/// send them.
pub fn start_with(config: &LogConfig, traces: Option<&Traces>) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(&config.filter)
        .map_err(|error| LogError::Filter(config.filter.clone(), error))?;
    let registry = tracing_subscriber::registry();
    let started = match traces {
        // One filter in front of everything is the fastest, and there is nobody else to ask.
        None => registry.with(filter).with(lines(config.format)).try_init(),
        Some(traces) => {
            registry.with(lines(config.format).with_filter(filter)).with(traces.layer()).try_init()
        }
    };
    started.map_err(LogError::Taken)
}

fn lines<S>(format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    match format {
        LogFormat::Text => lines.with_ansi(false).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    }
}
