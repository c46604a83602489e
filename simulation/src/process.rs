//! What an API process and a worker process have in common: its lives, its own clock, its timer,
//! and standing still.

use core_workcoord::moment::Moment;

use crate::agenda::Event;
use crate::network::FOREVER;
use crate::rng::{Lane, Purpose, draw, within};
use crate::story::{MS, SECOND};

/// One process, whatever it runs.
#[derive(Debug, Default)]
pub(crate) struct Process {
    /// Grows with every start; events of an earlier life are nobody's.
    pub(crate) life: u32,
    /// What its clock is ahead of simulated time.
    offset: u64,
    /// When its noted timer event is due; another one is stale.
    pub(crate) tick_at: Option<u64>,
    /// When it last ticked, and how often at that very time.
    ticked: (u64, u32),
    /// How many faults make it stand still.
    hangs: u16,
    /// Events that came while it stood still.
    pub(crate) deferred: Vec<Event>,
    /// Until when it was disturbed; far in the future while it is.
    disturbed_until: u64,
    steps: u64,
}

impl Process {
    /// A process whose clock starts at some time of its own.
    pub(crate) fn new(seed: u64, place: usize) -> Self {
        let luck = draw(seed, Lane::new(Purpose::Clock, place), 0);
        Self { offset: within(luck, SECOND, 1_000 * SECOND), ..Self::default() }
    }

    /// A new life. The clock is the machine's and goes on.
    pub(crate) fn begin(&mut self, now: u64) {
        self.life += 1;
        self.tick_at = None;
        self.hangs = 0;
        if self.disturbed_until == FOREVER {
            self.disturbed_until = now;
        }
        self.deferred.clear();
    }

    /// What its clock shows for a step. Now and then a step is handed a time read a little earlier,
    /// as it happens when two threads race for a lock.
    pub(crate) fn read_clock(&mut self, seed: u64, place: usize, now: u64) -> Moment {
        self.steps += 1;
        let luck = draw(seed, Lane::new(Purpose::Clock, place), self.steps);
        let behind = if luck & 63 == 0 { within(luck, 0, 2 * MS) } else { 0 };
        Moment((now + self.offset).saturating_sub(behind))
    }

    /// What its clock shows.
    pub(crate) fn clock(&self, now: u64) -> Moment {
        Moment(now + self.offset)
    }

    /// When a moment of its clock comes, in simulated time.
    pub(crate) fn time_of(&self, moment: Moment) -> u64 {
        moment.0.saturating_sub(self.offset)
    }

    pub(crate) fn step_clock(&mut self, by: u64, now: u64) {
        self.offset += by;
        self.disturb(now);
    }

    /// Notes that something happened to it.
    pub(crate) fn disturb(&mut self, now: u64) {
        if self.disturbed_until != FOREVER {
            self.disturbed_until = now;
        }
    }

    /// Counts a tick. Says how many there were at this very time.
    pub(crate) fn ticks(&mut self, now: u64) -> u32 {
        let (at, count) = self.ticked;
        self.ticked = if at == now { (at, count + 1) } else { (now, 1) };
        self.ticked.1
    }

    /// Whether it stood still, or its clock jumped, at any time since `since`.
    pub(crate) fn was_disturbed(&self, since: u64) -> bool {
        self.disturbed_until >= since
    }

    pub(crate) fn is_hung(&self) -> bool {
        self.hangs > 0
    }

    pub(crate) fn hang(&mut self) {
        self.hangs += 1;
        self.disturbed_until = FOREVER;
    }

    /// Takes one hang back. Says whether the process goes on.
    pub(crate) fn wake(&mut self, now: u64) -> bool {
        let was_hung = self.is_hung();
        self.hangs = self.hangs.saturating_sub(1);
        if was_hung && self.hangs == 0 {
            self.disturbed_until = now;
        }
        was_hung && self.hangs == 0
    }

    /// Parcels that came while it stood still and that it will never take: its machine answers.
    pub(crate) fn take_parcels(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.deferred);
        events.retain(|event| matches!(event, Event::Pipe { .. }));
        events
    }

    /// What came while it stood still, to be noted again. A timer is due now.
    pub(crate) fn take_deferred(&mut self, now: u64) -> Vec<Event> {
        let events = std::mem::take(&mut self.deferred);
        if events
            .iter()
            .any(|event| matches!(event, Event::ApiTick { .. } | Event::WorkerTick { .. }))
        {
            self.tick_at = Some(now);
        }
        events
    }

    /// Takes every hang back. Says whether the process goes on.
    pub(crate) fn wake_for_good(&mut self, now: u64) -> bool {
        self.hangs = self.hangs.min(1);
        self.wake(now)
    }
}
