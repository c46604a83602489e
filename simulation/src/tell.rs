//! Tells a story to a person: the world, what goes wrong in it, and the time line of what the broken
//! promise is about.

use std::fmt::Write as _;

use crate::checker::Promise;
use crate::report::Report;
use crate::story::Story;
use crate::trace::Line;
use crate::violation::{About, Check};
use crate::{Options, run};

/// Lines of the time line that are told.
const LINES_AT_MOST: usize = 80;
/// The last lines, told whatever they are about.
const LAST_LINES: usize = 12;
/// Queries and faults that are listed.
const LISTED_AT_MOST: usize = 30;

/// Runs a story again and tells it.
pub fn tell(story: &Story) -> String {
    tell_with(story, &Options::default())
}

/// As [`tell`], with options.
pub fn tell_with(story: &Story, options: &Options<'_>) -> String {
    let report = run(story, &Options { trace: true, ..*options });
    let mut text = String::new();
    write_story(&mut text, story, &report).expect("a string takes everything");
    text
}

fn write_story(text: &mut String, story: &Story, report: &Report) -> std::fmt::Result {
    match &report.violation {
        Some(violation) => writeln!(text, "{violation}")?,
        None => writeln!(text, "seed {}: every promise was kept", story.seed)?,
    }
    if let Some(Check::Simulation(number)) = report.violation.as_ref().map(|it| it.number)
        && let Some(promise) = Promise::numbered(number)
    {
        writeln!(text, "the promise: {}", promise.sentence())?;
    }
    writeln!(text, "the world: {}", story.shape)?;
    writeln!(text, "{} queries", story.queries.len())?;
    for query in story.queries.iter().take(LISTED_AT_MOST) {
        writeln!(text, "  {query}")?;
    }
    writeln!(text, "{} faults", story.faults.len())?;
    for fault in story.faults.iter().take(LISTED_AT_MOST) {
        writeln!(text, "  {fault}")?;
    }
    let about = report.violation.as_ref().map(|it| it.about).unwrap_or_default();
    let last = report.trace.len().saturating_sub(LAST_LINES);
    let related: Vec<&Line> =
        report.trace[..last].iter().filter(|line| is_related(line, about)).collect();
    let skipped = related.len().saturating_sub(LINES_AT_MOST - LAST_LINES);
    writeln!(text, "time line ({skipped} lines before it)")?;
    for line in &related[skipped..] {
        writeln!(text, "  {line}")?;
    }
    writeln!(text, "  …")?;
    for line in &report.trace[last..] {
        writeln!(text, "  {line}")?;
    }
    Ok(())
}

/// Whether a line belongs to what a broken promise is about.
fn is_related(line: &Line, about: About) -> bool {
    let it = line.about;
    if it == About::default() {
        return true;
    }
    if line.text.contains("Heartbeat") {
        return false;
    }
    let same = |mine: Option<u32>, other: Option<u32>| mine.is_some() && mine == other;
    let births_and_faults = it.session.is_none()
        && it.query.is_none()
        && !line.text.contains('←')
        && !line.text.contains('→');
    if births_and_faults {
        return same(it.api, about.api) || same(it.worker, about.worker);
    }
    let work = about.query.is_some()
        && it.query == about.query
        && (about.item.is_none() || it.item.is_none() || it.item == about.item);
    let session = about.session.is_some() && it.session == about.session && same(it.api, about.api);
    let nothing_closer = about.query.is_none() && about.session.is_none();
    let node = nothing_closer && (same(it.api, about.api) || same(it.worker, about.worker));
    let its_worker = about.query.is_none() && same(it.worker, about.worker);
    work || session || node || its_worker
}
