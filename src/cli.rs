//! What can be asked for on the command line, and what the exit code says. The answers are given
//! by the subcommands' own files.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use core_workcoord::journal::JournalError;

use crate::{completions, replay, simulate};

/// The exit code where a promise was broken or a decision differs. clap itself exits with 2 where
/// the arguments make no sense.
const EXIT_BROKEN: u8 = 1;

/// The exit code where the command could not do its work.
pub(crate) const EXIT_UNUSABLE: u8 = 2;

const EXIT_CODES: &str = "\
Exit codes:
  0  all is well
  1  a promise was broken (simulate) or a decision differs (replay)
  2  the arguments make no sense, or a file can't be read or written";

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
    /// Run the coordinator and the workers' intake through seeded chaos and check every promise
    #[command(after_help = simulate::PROMISE)]
    Simulate(simulate::Args),

    /// Replay a journal and compare every decision with the recorded one
    #[command(after_help = replay::LEGEND)]
    Replay(replay::Args),

    /// Print a shell's completion script
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::Args),
}

/// What a command that did its work found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All is well.
    Good,
    /// A promise was broken, or a decision differs from the recorded one.
    Broken,
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
    /// A file is not a journal, or a damaged one.
    Journal {
        /// Which file.
        path: PathBuf,
        /// What is wrong with it.
        error: JournalError,
    },
}

impl From<Verdict> for ExitCode {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Good => Self::SUCCESS,
            Verdict::Broken => Self::from(EXIT_BROKEN),
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
        }
    }
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
