//! What happens in a story, drawn from its seed before it begins.

use std::time::Duration;

use super::fault::{Fault, Kind};
use crate::differential::dice::Dice;

/// Everything is well again from here on.
pub(super) const HEALED: Duration = Duration::from_secs(14);

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// Reads to the end.
    Reads,
    /// Reads, with a pause after every event.
    ReadsSlowly(Duration),
    /// Goes away after a while.
    Leaves(Duration),
}

/// A client with a question.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client {
    pub(super) at: Duration,
    pub(super) api: usize,
    /// The number of its question.
    pub(super) question: usize,
    pub(super) timeout: Duration,
    pub(super) manner: Manner,
}

/// A story.
#[derive(Clone, Debug)]
pub(super) struct Story {
    pub(super) seed: u64,
    pub(super) apis: usize,
    pub(super) workers: usize,
    pub(super) slots: u32,
    /// Results of a query that may wait to be merged.
    pub(super) window: u32,
    /// Messages take this long at most.
    pub(super) latency: Duration,
    pub(super) clients: Vec<Client>,
    /// In the order of their beginnings.
    pub(super) faults: Vec<Fault>,
}

impl Story {
    pub(super) fn of(seed: u64, questions: usize) -> Self {
        let mut dice = Dice::new(seed, 0x57_ac);
        let apis = dice.weighted(&[(2, 1), (1, 2)]);
        let workers = dice.weighted(&[(1, 1), (3, 2), (4, 3), (2, 4), (1, 5)]);
        let slots = dice.weighted(&[(1, 1), (2, 2), (1, 4)]);
        let window = dice.weighted(&[(1, 1), (2, 4), (2, 64)]);
        let latency = millis(dice.weighted(&[(3, 4), (2, 20), (1, 60)]));
        let count = dice.between(4, 14);
        let clients = (0..count)
            .map(|_| Client {
                at: millis(dice.between(300, 9_000)),
                api: dice.below(apis),
                question: dice.below(questions),
                timeout: millis(dice.between(12_000, 25_000)),
                manner: match dice.below(10) {
                    0 => Manner::Leaves(millis(dice.between(1, 400))),
                    1 => Manner::Leaves(millis(dice.between(400, 4_000))),
                    2 => Manner::ReadsSlowly(millis(dice.between(20, 400))),
                    _ => Manner::Reads,
                },
            })
            .collect();
        let mut faults: Vec<Fault> =
            (0..dice.below(9)).map(|_| fault(&mut dice, apis, workers)).collect();
        faults.sort_by_key(|fault| fault.at);
        Self { seed, apis, workers, slots, window, latency, clients, faults }
    }

    /// How often faults of each kind strike.
    pub(super) fn kinds(&self) -> impl Iterator<Item = Kind> {
        self.faults.iter().map(|fault| fault.kind)
    }
}

fn fault(dice: &mut Dice, apis: usize, workers: usize) -> Fault {
    let kind = dice.weighted(&Kind::ALL);
    let at = millis(dice.between(100, 9_500));
    let lasts = match kind {
        Kind::Evicted | Kind::Deleted | Kind::Flipped | Kind::RunsFail => 0,
        // Shorter and longer than silence is borne.
        _ => dice.weighted(&[(2, 50), (4, 400), (4, 1_500), (2, 3_500), (2, 5_000), (1, 20_000)]),
    };
    let lasts = if lasts == 0 { Duration::ZERO } else { millis(dice.between(lasts / 2, lasts)) };
    let times = u32::try_from(dice.between(1, 2)).expect("it is small");
    // Nothing begins so late that it would not be over by the end.
    let lasts = lasts.min(HEALED.saturating_sub(at + Duration::from_millis(100)));
    Fault { kind, at, lasts, api: dice.below(apis), worker: dice.below(workers), times }
}

fn millis(count: i64) -> Duration {
    Duration::from_millis(count.unsigned_abs())
}
