//! Thousands of questions put to both sides, and what came of them: how many were the same, which
//! differed for a known reason, and every other difference made small enough to read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tributary_promql::Expr;
use tributary_promqltest::DataSet;

use super::arena::{Arena, Asker, FIRST_DAY, Pair, Subject};
use super::compare::{Difference, Order, Verdict, compare};
use super::coverage::{Part, parts};
use super::culprit::{self, Blame};
use super::data::World;
use super::dice::Dice;
use super::explained::{CHANCE, DIGITS, ROUNDING, Seen, reason};
use super::grammar::{Question, When};
use super::outcome::Outcome;
use super::peer::PeerError;
use super::{digits, rewrite, script, shrink};

/// Questions about one data set.
const PER_WORLD: usize = 250;

/// Differences that are made small; of further ones only the question is told.
const MAX_SHRUNK: usize = 12;

/// How often a question with an unexplained difference is asked again.
const ASKED_AGAIN: usize = 8;

/// How much to ask.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The first seed; every data set has the next one.
    pub seed: u64,
    /// How many questions.
    pub pairs: usize,
    /// How many threads ask.
    pub threads: usize,
}

/// What came of all questions.
#[derive(Debug, Default)]
pub struct Report {
    /// Questions that both sides were asked.
    pub pairs: usize,
    /// Of these, with answers that are the same to the last bit.
    pub same_bits: usize,
    /// With the same values within the tolerance.
    pub close: usize,
    /// With the same error on both sides; these count among the same, too.
    pub errors: usize,
    /// With no values in the answer; these count among the same, too.
    pub empty: usize,
    /// With a difference that has a known reason.
    pub explained: BTreeMap<&'static str, usize>,
    /// Differences without one.
    pub differences: Vec<Found>,
    /// How often each part of the language was asked for, and with which result.
    pub parts: BTreeMap<Part, Tally>,
}

/// How often something was asked for.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// In well-formed questions.
    pub pairs: usize,
    /// With values in the answer.
    pub answered: usize,
    /// Reasons of differences that began there.
    pub reasons: BTreeSet<&'static str>,
}

/// A difference without a known reason.
#[derive(Clone, Debug)]
pub struct Found {
    /// The seed of its data set, and its number among the questions about it.
    pub origin: (u64, usize),
    /// The question that showed it.
    pub question: Question,
    /// How the outcomes differ.
    pub difference: String,
    /// The smallest form of it that was found, as a script; not for all of many.
    pub script: Option<String>,
}

impl Plan {
    /// The data sets that are asked about.
    pub fn worlds(&self) -> Vec<World> {
        (self.seed..)
            .zip(FIRST_DAY..)
            .take(self.pairs.div_ceil(PER_WORLD))
            .map(|(seed, day)| World::new(seed, day))
            .collect()
    }
}

/// Asks everything in a plan, in an arena that holds its data sets.
pub fn run(
    arena: &Arena,
    worlds: &[World],
    subject: &dyn Subject,
    plan: Plan,
) -> Result<Report, PeerError> {
    let (next, report, shrunk) =
        (AtomicUsize::new(0), Mutex::new(Report::default()), AtomicUsize::new(0));
    let work = || -> Result<(), PeerError> {
        let mut asker = arena.asker(subject);
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= plan.pairs {
                return Ok(());
            }
            let (at, nth) = (number / PER_WORLD, number % PER_WORLD);
            let world = &worlds[at];
            let seed = plan.seed + at as u64;
            let question = Question::new(&mut Dice::new(seed, 2 + nth as u64), world);
            let mut one = Judged::new(&mut asker, &world.data, question)?;
            if let Some(found) = &mut one.found {
                found.origin = (seed, nth);
                if shrunk.fetch_add(1, Ordering::Relaxed) < MAX_SHRUNK {
                    found.script = Some(smallest(&mut asker, &world.data, &found.question)?);
                }
            }
            report.lock().expect("no thread panics while it counts").add(one);
        }
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("a thread that asks ends well"))
    })?;
    let mut report = report.into_inner().expect("no thread panics while it counts");
    report.differences.sort_by_key(|found| found.origin);
    Ok(report)
}

/// One question with what is made of it.
struct Judged {
    pair: Pair,
    expr: Option<Expr>,
    reason: Option<Reason>,
    found: Option<Found>,
}

/// Why outcomes differ, and the part of the language to which that belongs, if it does to one.
#[derive(Clone, Copy)]
struct Reason {
    text: &'static str,
    part: Option<Part>,
}

impl Reason {
    const fn everywhere(text: &'static str) -> Self {
        Self { text, part: None }
    }
}

impl Judged {
    fn new(asker: &mut Asker<'_>, data: &DataSet, question: Question) -> Result<Self, PeerError> {
        let pair = asker.ask(data, &question)?;
        let expr = rewrite::tree(&question);
        let reason = why(asker, data, &question, &pair)?;
        let found = match (&pair.verdict, reason) {
            (Verdict::Differ(difference), None) => Some(Found {
                origin: (0, 0),
                difference: difference.to_string(),
                question,
                script: None,
            }),
            _ => None,
        };
        Ok(Self { pair, expr, reason, found })
    }
}

/// The known reason of a difference.
fn why(
    asker: &mut Asker<'_>,
    data: &DataSet,
    question: &Question,
    pair: &Pair,
) -> Result<Option<Reason>, PeerError> {
    let Verdict::Differ(difference) = &pair.verdict else { return Ok(None) };
    let reason = known_reason(asker, data, question, pair, difference)?;
    if reason.is_none() {
        for _ in 0..ASKED_AGAIN {
            let again = asker.ask(data, question)?;
            let itself = compare(&pair.peer, &again.peer, Order::Any);
            let explained = match &again.verdict {
                _ if matches!(itself, Verdict::Differ(_)) => true,
                Verdict::Differ(other) if other.kind() == difference.kind() => false,
                Verdict::Differ(other) => {
                    known_reason(asker, data, question, &again, other)?.is_some()
                }
                Verdict::SameBits | Verdict::Close => true,
            };
            if explained {
                return Ok(Some(Reason::everywhere(CHANCE)));
            }
        }
    }
    Ok(reason)
}

fn known_reason(
    asker: &mut Asker<'_>,
    data: &DataSet,
    question: &Question,
    pair: &Pair,
    difference: &Difference,
) -> Result<Option<Reason>, PeerError> {
    Ok(match culprit::blame(asker, data, question, pair)? {
        // It is no expression for us, so it has no parts.
        Blame::None => {
            let Pair { peer, ours, .. } = pair;
            let instant = matches!(question.when, When::Instant(_));
            reason(Seen { part: None, instant, peer, ours, difference }).map(Reason::everywhere)
        }
        Blame::Rounding => Some(Reason::everywhere(ROUNDING)),
        Blame::Part(culprit) => match &culprit.pair.verdict {
            Verdict::Differ(difference) => {
                let Pair { peer, ours, .. } = &culprit.pair;
                let instant = matches!(culprit.question.when, When::Instant(_));
                let seen = Seen { part: Some(&culprit.expr), instant, peer, ours, difference };
                let known = match reason(seen) {
                    None if digits::are_lost(asker, data, &culprit)? => Some(DIGITS),
                    known => known,
                };
                known.map(|text| Reason { text, part: Part::of(&culprit.expr) })
            }
            Verdict::SameBits | Verdict::Close => None,
        },
    })
}

/// The smallest form of a difference, as a script.
fn smallest(
    asker: &mut Asker<'_>,
    data: &DataSet,
    question: &Question,
) -> Result<String, PeerError> {
    let differs = |asker: &mut Asker<'_>, data: &DataSet, question: &Question| {
        let pair = asker.ask(data, question)?;
        let apart = matches!(pair.verdict, Verdict::Differ(_));
        Ok::<_, PeerError>(apart && why(asker, data, question, &pair)?.is_none())
    };
    let question = shrink::shrink(question.clone(), |candidate| differs(asker, data, candidate))?;
    let (mut held, mut asked) = (data.clone(), question.clone());
    shrink::shrink_data(data.clone(), |candidate| {
        let (settled, moved) = asker.settle(candidate, &question)?;
        let shows = differs(asker, &settled, &moved)?;
        if shows {
            (held, asked) = (settled, moved);
        }
        Ok::<_, PeerError>(shows)
    })?;
    let pair = asker.ask(&held, &asked)?;
    let mut text = match &pair.verdict {
        Verdict::Differ(difference) => {
            format!("# {}\n", difference.to_string().replace('\n', "\n# "))
        }
        Verdict::SameBits | Verdict::Close => String::new(),
    };
    text.push_str(&script::script(&held, &asked, &pair.peer));
    Ok(text)
}

impl Report {
    fn add(&mut self, judged: Judged) {
        let Judged { pair, expr, reason, found } = judged;
        self.pairs += 1;
        match pair.verdict {
            Verdict::SameBits => self.same_bits += 1,
            Verdict::Close => self.close += 1,
            Verdict::Differ(_) => {}
        }
        let values = pair.peer.values();
        match pair.peer {
            Outcome::Failed(_) => self.errors += 1,
            Outcome::Answered(_) if values == 0 => self.empty += 1,
            Outcome::Answered(_) => {}
        }
        if let Some(reason) = reason {
            *self.explained.entry(reason.text).or_default() += 1;
            if let Some(part) = reason.part {
                self.parts.entry(part).or_default().reasons.insert(reason.text);
            }
        }
        self.differences.extend(found);
        for part in expr.iter().flat_map(parts) {
            let tally = self.parts.entry(part).or_default();
            tally.pairs += 1;
            tally.answered += usize::from(values > 0);
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for found in &self.differences {
            let (seed, nth) = found.origin;
            let delayed = if found.question.delayed_name_removal { ", delayed" } else { "" };
            writeln!(f, "--- seed {seed}, question {nth}: {:?}{delayed}", found.question.when)?;
            writeln!(f, "    {}", found.question.text)?;
            writeln!(f, "    {}", found.difference)?;
            if let Some(script) = &found.script {
                writeln!(f, "{script}")?;
            }
        }
        for (reason, count) in &self.explained {
            writeln!(f, "{count:>7}  {reason}")?;
        }
        let explained: usize = self.explained.values().sum();
        write!(
            f,
            "{} pairs: {} the same to the last bit, {} within the tolerance, {explained} explained, \
             {} different ({} of them all errors, {} empty)",
            self.pairs,
            self.same_bits,
            self.close,
            self.differences.len(),
            self.errors,
            self.empty
        )
    }
}
