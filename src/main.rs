//! The one binary. Wiring only: `cli` says what can be asked for, each subcommand has its file, and
//! the work is done by the libraries.

mod api;
mod chaos;
mod cli;
mod clock;
mod completions;
mod demo;
mod figures;
mod import;
mod leaving;
mod output;
mod promqltest;
mod query;
mod replay;
mod segments;
mod settings;
mod simulate;
mod up;
mod upload;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Demo(args) => demo::run(&args),
        Command::Up(args) => up::run(&args),
        Command::Api(args) => api::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Segments(args) => segments::run(&args),
        Command::Worker(args) => worker::run(&args),
        Command::Query(args) => query::run(&args),
        Command::Promqltest(args) => promqltest::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Chaos(args) => chaos::run(&args),
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
