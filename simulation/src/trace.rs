//! The lines of a world that is being told: what each node was told and what it decided. Costs
//! nothing when nobody listens.

use std::fmt;

use crate::story::At;
use crate::violation::About;

/// One line: when, where, what, and what it is about.
#[derive(Clone, Debug)]
pub struct Line {
    /// When, in nanoseconds of simulated time.
    pub at: u64,
    /// What happened.
    pub text: String,
    /// What it is about.
    pub about: About,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}  {}", At(self.at), self.text)
    }
}

/// The lines so far, if anybody listens.
#[derive(Debug)]
pub(crate) struct Trace {
    lines: Option<Vec<Line>>,
}

impl Trace {
    pub(crate) fn new(on: bool) -> Self {
        Self { lines: on.then(Vec::new) }
    }

    /// Adds a line; the text is made only when somebody listens.
    pub(crate) fn say(&mut self, at: u64, about: About, text: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(Line { at, text: text(), about });
        }
    }

    pub(crate) fn into_lines(self) -> Vec<Line> {
        self.lines.unwrap_or_default()
    }
}
