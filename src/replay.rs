//! `tributary replay`: runs a recorded journal again and prints every decision beside the input that
//! led to it. What a journal is and how it is replayed belongs to `core_workcoord::journal`.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use core_workcoord::journal::{self, Header, Replayed, ReplayedStep};

use crate::cli::{Problem, Verdict};
use crate::output;

/// How to read what is printed, for the help.
pub(crate) const LEGEND: &str = "\
Each step is printed with its number, its time in seconds of the node's own clock, and what happened,
then `→` what was decided and, where it differs, `≠` what was decided when it was recorded.

Exit codes: 0 every decision is as recorded, 1 one differs, 2 the file can't be read as a journal";

/// What `replay` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The journal
    file: PathBuf,

    /// Print only the steps whose decisions differ from the recorded ones
    #[arg(long)]
    different: bool,
}

/// Replays the journal and tells it.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    let bytes =
        fs::read(&args.file).map_err(|error| Problem::File { path: args.file.clone(), error })?;
    let mut out = output::standard();
    let mut told = Ok(());
    let result = journal::replay(&bytes, |step| {
        if told.is_ok() && (step.recorded.is_some() || !args.different) {
            told = tell(&mut out, step);
        }
    });
    told?;
    // A journal that is damaged in the middle was told up to there; that much is worth seeing.
    out.flush()?;
    let (header, replayed) =
        result.map_err(|error| Problem::Journal { path: args.file.clone(), error })?;
    conclude(&mut out, &header, replayed)?;
    out.flush()?;
    Ok(if replayed.different == 0 { Verdict::Good } else { Verdict::Broken })
}

/// One step: its number, its time, what happened, → what was decided, ≠ what was decided when it
/// was recorded, if that differs.
fn tell(out: &mut impl Write, step: &ReplayedStep) -> io::Result<()> {
    writeln!(out, "{:>7}  {:>14}  {}", step.number, step.now.to_string(), step.input)?;
    for action in &step.actions {
        writeln!(out, "{:>25}  → {action}", "")?;
    }
    if let Some(recorded) = &step.recorded {
        for action in recorded {
            writeln!(out, "{:>25}  ≠ {action}", "")?;
        }
        if recorded.is_empty() {
            writeln!(out, "{:>25}  ≠ nothing", "")?;
        }
    }
    Ok(())
}

fn conclude(out: &mut impl Write, header: &Header, replayed: Replayed) -> io::Result<()> {
    match header {
        Header::Coordinator { api_id, seed, .. } => {
            write!(out, "coordinator of {api_id}, seed {seed}: ")?;
        }
        Header::Intake { identity, .. } => write!(out, "intake of {}: ", identity.worker_id)?,
    }
    let Replayed { steps, different, truncated } = replayed;
    match different {
        0 => writeln!(out, "{steps} steps, every decision as recorded")?,
        _ => writeln!(out, "{steps} steps, {different} decided differently")?,
    }
    if truncated {
        writeln!(out, "the last step was cut short in the file; everything before it counts")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use core_workcoord::moment::Moment;

    use super::*;

    #[test]
    fn a_step_shows_what_was_decided_then_and_now() {
        let step = ReplayedStep {
            number: 3,
            now: Moment::from_millis(1_500),
            input: "Tick".into(),
            actions: vec!["Close { s1 }".into()],
            recorded: Some(vec![]),
        };
        let mut out = Vec::new();
        tell(&mut out, &step).unwrap();
        let expected = "      3        1.500000  Tick
                           → Close { s1 }
                           ≠ nothing
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
