//! `tributary completions`: prints the completion script of a shell.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::{Cli, Problem, Verdict};
use crate::output;

/// Where the scripts go, for the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tributary completions bash > ~/.local/share/bash-completion/completions/tributary
  tributary completions zsh > \"${fpath[1]}/_tributary\"
  tributary completions fish > ~/.config/fish/completions/tributary.fish";

/// What `completions` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell to print them for
    shell: Shell,
}

/// Prints the script.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    // Generated into memory first: the generator panics where a write fails.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tributary", &mut script);
    let mut out = output::standard();
    out.write_all(&script)?;
    out.flush()?;
    Ok(Verdict::Good)
}
