//! The one binary. Wiring only: `cli` says what can be asked for, each subcommand has its file, and
//! the work is done by the libraries.

mod cli;
mod clock;
mod completions;
mod figures;
mod import;
mod output;
mod promqltest;
mod replay;
mod segments;
mod simulate;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Import(args) => import::run(&args),
        Command::Segments(args) => segments::run(&args),
        Command::Worker(args) => worker::run(&args),
        Command::Promqltest(args) => promqltest::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Completions(args) => completions::run(&args),
    };
    match done {
        Ok(verdict) => verdict.into(),
        Err(problem) => {
            output::complain(&problem);
            problem.exit_code()
        }
    }
}
