//! What can be asked for on the command line, and what the exit code says. The answers are given
//! by the subcommands' own files.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use core_workcoord::id::TenantId;
use core_workcoord::journal::JournalError;
use tokio::runtime::{Builder, Runtime};

use crate::{
    api, chaos, completions, demo, import, promqltest, query, replay, segments, simulate, up,
    worker,
};

/// The exit code where a promise was broken, a decision differs or a line is wrong. clap itself
/// exits with 2 where the arguments make no sense.
const EXIT_BROKEN: u8 = 1;

/// The exit code where the command could not do its work.
const EXIT_UNUSABLE: u8 = 2;

/// The exit code where a server has no answer to a query.
const EXIT_UNANSWERED: u8 = 3;

/// The tenant where none is named.
pub(crate) const DEFAULT_TENANT: &str = "default";

const EXIT_CODES: &str = "\
Exit codes:
  0  all is well
  1  a promise was broken (simulate, chaos), a decision differs (replay), a line is wrong (import), a live
     segment lacks a file (segments gc), a case failed (promqltest), or there is nothing (query)
  2  the arguments make no sense, a file can't be read or written, or a server can't be reached
  3  a server has no answer to a query (query)
130, 143  ended by a signal";

/// PromQL over Parquet in object storage, answered by a pool of disposable workers.
#[derive(Debug, Parser)]
#[command(name = "tributary", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Try it: a cluster in one process, with sample data that grows
    #[command(after_help = demo::PROMISE)]
    Demo(demo::Args),

    /// Serve a data directory: an API node and workers in one process
    #[command(after_help = up::PROMISE)]
    Up(up::Args),

    /// Run one API node
    #[command(after_help = api::PROMISE)]
    Api(Box<api::Args>),

    /// Run one worker
    #[command(after_help = worker::PROMISE)]
    Worker(Box<worker::Args>),

    /// Import OpenMetrics or Prometheus text with timestamps into a data directory
    #[command(after_help = import::PROMISE)]
    Import(import::Args),

    /// List the segments of a data directory, show one, or clean up
    #[command(after_help = segments::EXIT_CODES)]
    Segments(segments::Args),

    /// Ask an API node and watch the answer come
    #[command(after_help = query::PROMISE)]
    Query(query::Args),

    /// Run PromQL test scripts and judge every answer
    #[command(after_help = promqltest::PROMISE)]
    Promqltest(promqltest::Args),

    /// Run the coordinator and the workers' intake through seeded chaos and check every promise
    #[command(after_help = simulate::PROMISE)]
    Simulate(simulate::Args),

    /// Replay a journal and compare every decision with the recorded one
    #[command(after_help = replay::LEGEND)]
    Replay(replay::Args),

    /// Do faults of all kinds to a cluster of real processes and judge every answer
    #[command(after_help = chaos::PROMISE)]
    Chaos(chaos::Args),

    /// Print a shell's completion script
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::Args),
}

/// What a command that did its work found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Good,
    /// A promise was broken, a decision differs from the recorded one, a segment is damaged, or a
    /// case failed.
    Broken,
    /// A query was answered, and there is nothing.
    Nothing,
    /// A signal ended it, with this exit code.
    Signalled(u8),
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum Problem {
    /// Standard output can't be written, for another reason than that its reader left.
    Output(io::Error),
    /// Seeds are numbers of 64 bits, and these would go beyond the last one.
    NoSuchSeeds {
        /// The first seed.
        from: u64,
        /// How many were asked for.
        seeds: u64,
    },
    /// A file can't be read or written.
    File {
        /// Which file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// A line of a text is wrong.
    BadLine {
        /// The text.
        input: String,
        /// Number of the line, from one.
        line: u64,
        /// What is wrong with it.
        reason: String,
        /// What may help.
        hint: Option<&'static str>,
    },
    /// Standard input is named more than once.
    StandardInputTwice,
    /// An option that the command needs is missing.
    NeedsOption(&'static str),
    /// An option makes no sense here.
    SenselessOption {
        /// Which one.
        option: &'static str,
        /// Why not.
        reason: &'static str,
    },
    /// There is no segment with this name, or beginning like this.
    NoSuchSegment {
        /// What was asked for.
        id: String,
    },
    /// Several segments begin like this.
    ManySegments {
        /// What was asked for.
        id: String,
        /// How many they are.
        count: usize,
    },
    /// One of the libraries could not do what was asked.
    Failed(Box<dyn Error + Send + Sync>),
    /// A server has no answer to a query.
    Unanswered {
        /// What kind of error it is.
        code: String,
        /// What the server says.
        message: String,
    },
    /// A process that was started is not ready, or says what makes no sense.
    NotReady {
        /// Which one.
        what: String,
        /// What became of it.
        status: String,
    },
    /// A file is not a journal, or a damaged one.
    Journal {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        error: JournalError,
    },
}

impl Problem {
    /// What a library said.
    pub(crate) fn failed(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Failed(Box::new(error))
    }

    /// What the command exits with.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::BadLine { .. } => ExitCode::from(EXIT_BROKEN),
            Self::Unanswered { .. } => ExitCode::from(EXIT_UNANSWERED),
            _ => ExitCode::from(EXIT_UNUSABLE),
        }
    }
}

/// What waits for the catalog and the store: a command does one thing at a time.
pub(crate) fn runtime() -> Result<Runtime, Problem> {
    Builder::new_current_thread().enable_all().build().map_err(Problem::failed)
}

/// Reads the name of a tenant.
pub(crate) fn tenant(text: &str) -> Result<TenantId, String> {
    TenantId::new(text).map_err(|error| error.to_string())
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Good => Self::SUCCESS,
            Verdict::Broken | Verdict::Nothing => Self::from(EXIT_BROKEN),
            Verdict::Signalled(code) => Self::from(code),
        }
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Output(error) => write!(f, "standard output can't be written: {error}"),
            Self::NoSuchSeeds { from, seeds } => {
                write!(f, "there are fewer than {seeds} seeds from {from} on")
            }
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Journal { path, error } => write!(f, "{}: {error}", path.display()),
            Self::BadLine { input, line, reason, hint } => {
                write!(f, "{input}:{line}: {reason}")?;
                hint.map_or(Ok(()), |hint| write!(f, " ({hint})"))
            }
            Self::StandardInputTwice => f.write_str("standard input can be read only once"),
            Self::NeedsOption(option) => write!(f, "{option} is missing"),
            Self::SenselessOption { option, reason } => write!(f, "{option}: {reason}"),
            Self::NoSuchSegment { id } => write!(f, "there is no segment {id}"),
            Self::ManySegments { id, count } => {
                write!(f, "{count} segments begin with {id}: more letters are needed")
            }
            Self::NotReady { what, status } => write!(f, "{what} is not ready: {status}"),
            Self::Unanswered { code, message } if message.is_empty() => f.write_str(code),
            Self::Unanswered { code, message } => write!(f, "{code}: {message}"),
            Self::Failed(error) => write_chain(f, &**error),
        }
    }
}

/// An error and what it comes from. Some say it themselves already; nothing is said twice.
fn write_chain(f: &mut fmt::Formatter<'_>, error: &(dyn Error + 'static)) -> fmt::Result {
    let mut said = error.to_string();
    f.write_str(&said)?;
    let mut next = error.source();
    while let Some(error) = next {
        let text = error.to_string();
        if !said.contains(&text) {
            write!(f, ": {text}")?;
            said.push_str(&text);
        }
        next = error.source();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }
}
