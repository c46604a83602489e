//! Log lines, to standard error: for people, or as JSON for programs. Which ids stand on them is up
//! to whoever writes them.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

use crate::config::{LogConfig, LogFormat};

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
    let filter = EnvFilter::try_new(&config.filter)
        .map_err(|error| LogError::Filter(config.filter.clone(), error))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = match config.format {
        LogFormat::Text => lines.with_ansi(false).finish().try_init(),
        LogFormat::Json => lines.json().flatten_event(true).finish().try_init(),
    };
    started.map_err(LogError::Taken)
}
