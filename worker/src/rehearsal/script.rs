//! Runs the words of a spec.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use core_workcoord::message::{Failure, FailureCode};

use super::Shelf;
use crate::config::Span;
use crate::execute::{Assignment, Cancel, Execute, Finished};

/// How often something that waits looks whether it is still wanted.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The longest artifact that is made up.
const SIZE_MAX: usize = 64 << 20;

/// Runs specs that are lines of words.
#[derive(Debug)]
pub struct Script {
    shelf: Arc<Shelf>,
}

impl Script {
    /// One that puts its artifacts on this shelf.
    pub fn new(shelf: Arc<Shelf>) -> Self {
        Self { shelf }
    }
}

impl Execute for Script {
    fn run(&self, work: &Assignment, cancel: &Cancel) -> Result<Finished, Failure> {
        let bad =
            |message: String| Failure { code: FailureCode::BadSpec, retryable: false, message };
        let spec = std::str::from_utf8(&work.work.spec)
            .map_err(|_| bad("a rehearsal's spec is text".into()))?;
        let mut size = 100;
        for word in spec.split_whitespace() {
            let (verb, object) = word.split_once(':').unwrap_or((word, ""));
            let span = || object.parse::<Span>().map(Span::get).map_err(|e| bad(e.to_string()));
            match (verb, object) {
                ("spin", _) => spin(span()?, cancel)?,
                ("sleep", _) => sleep(span()?, cancel)?,
                ("stubborn", _) => thread::sleep(span()?),
                ("size", _) => {
                    size = object.parse().map_err(|_| bad(format!("{object:?} is no size")))?;
                }
                ("fail", "retryable") => return Err(failure(FailureCode::StoreUnavailable, true)),
                ("fail", "final") => return Err(failure(FailureCode::SegmentMissing, false)),
                ("panic", _) => panic!("as rehearsed"),
                _ => return Err(bad(format!("there is no word {word:?} in rehearsals"))),
            }
        }
        Ok(self.shelf.put(make_up(spec, size.min(SIZE_MAX))))
    }
}

fn failure(code: FailureCode, retryable: bool) -> Failure {
    Failure { code, retryable, message: "as rehearsed".into() }
}

fn stopped() -> Failure {
    Failure { code: FailureCode::Internal, retryable: true, message: "told to stop".into() }
}

fn spin(span: Duration, cancel: &Cancel) -> Result<(), Failure> {
    let begun = Instant::now();
    let mut busy = 0_u64;
    while begun.elapsed() < span {
        if cancel.is_set() {
            return Err(stopped());
        }
        for turn in 0..1_000 {
            busy = std::hint::black_box(busy.wrapping_mul(31).wrapping_add(turn));
        }
    }
    Ok(())
}

fn sleep(span: Duration, cancel: &Cancel) -> Result<(), Failure> {
    let begun = Instant::now();
    while begun.elapsed() < span {
        if cancel.is_set() {
            return Err(stopped());
        }
        thread::sleep(LOOK_EVERY.min(span));
    }
    Ok(())
}

/// Equal specs give equal bytes.
fn make_up(spec: &str, size: usize) -> Vec<u8> {
    let pattern = if spec.is_empty() { "rehearsed" } else { spec };
    pattern.bytes().cycle().take(size).collect()
}
