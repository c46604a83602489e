//! Writes the queries of a story, and their items.

use super::generate::millis;
use super::{Ending, ItemStory, MS, QueryStory, SECOND, Shape, TENANTS};
use crate::rng::Dice;

/// No query comes later: the longest deadline then ends well before the end.
const LAST_QUERY_AT: u64 = 30 * SECOND;
/// The largest artifact.
pub(super) const MAX_ARTIFACT_BYTES: u64 = 1 << 20;

/// Which queries meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Crowd {
    /// All kinds, from everywhere.
    Usual,
    /// A long query of one tenant, and a stream of small ones of the same tenant that come later.
    Newcomers,
    /// A few large ones whose runs fail often.
    Large,
}

/// How long the items of a story take.
#[derive(Clone, Copy)]
enum Effort {
    Light,
    Mixed,
    Heavy,
}

/// What the queries of a story have in common.
struct Habit {
    crowd: Crowd,
    effort: Effort,
    /// The queries of all tenants come in this many bursts and wait for the same workers; zero if
    /// they come one by one.
    bursts: u32,
    /// Keys are drawn from so many.
    keys: u64,
    /// No item kills its worker.
    harmless: bool,
}

/// The queries of a story.
pub(super) fn write(dice: &mut Dice, shape: &Shape, crowd: Crowd) -> Vec<QueryStory> {
    let usual = if dice.chance(600) { 40 } else { dice.small(3, 60) };
    let effort = match (dice.index(4), shape.quiet) {
        (0, _) => Effort::Light,
        (2 | 3, false) => Effort::Heavy,
        _ => Effort::Mixed,
    };
    let habit = Habit {
        crowd,
        effort: if crowd == Crowd::Usual { effort } else { Effort::Mixed },
        bursts: if dice.chance(500) { dice.small(1, 5) } else { 0 },
        keys: if dice.chance(300) { dice.within(1, 5) } else { 1 << 40 },
        harmless: shape.quiet || crowd != Crowd::Usual || dice.chance(600),
    };
    let count = match crowd {
        Crowd::Usual => usual,
        Crowd::Newcomers => 150,
        Crowd::Large => 6,
    };
    let mut queries: Vec<QueryStory> =
        (0..count).map(|number| query(dice, shape, &habit, number)).collect();
    if crowd == Crowd::Newcomers {
        crowd_together(dice, &mut queries);
    }
    queries.sort_by_key(|query| query.at);
    queries
}

fn query(dice: &mut Dice, shape: &Shape, habit: &Habit, number: u32) -> QueryStory {
    let at = match habit.bursts {
        0 => dice.within(200 * MS, LAST_QUERY_AT),
        bursts => {
            let burst = u64::from(dice.small(1, bursts)) * LAST_QUERY_AT / u64::from(bursts + 1);
            burst + dice.within(0, 20 * MS)
        }
    };
    let shortest_deadline = if shape.quiet { 18_000 } else { 2_000 };
    let slow_reader = dice.chance(150);
    let lag = if slow_reader { 20 * MS..=300 * MS } else { MS / 20..=MS };
    let most_items = if habit.crowd == Crowd::Large { 80 } else { 24 };
    QueryStory {
        number,
        at,
        api: dice.small(0, shape.apis - 1),
        tenant: dice.small(0, TENANTS - 1),
        deadline: millis(dice, shortest_deadline, 20_000),
        window: if dice.chance(400) { dice.small(1, 6) } else { dice.small(7, 64) },
        leaves_after: dice.chance(150).then(|| dice.within(0, 3 * SECOND)),
        reader_lag: dice.within(*lag.start(), *lag.end()),
        items: items(dice, habit, most_items),
    }
}

fn items(dice: &mut Dice, habit: &Habit, most: u32) -> Vec<ItemStory> {
    let count = if dice.chance(30) { 0 } else { dice.small(1, most) };
    (0..count)
        .map(|_| {
            let straggles = dice.chance(100);
            let run_time = match (habit.effort, straggles) {
                (Effort::Light, false) => dice.within(MS, 40 * MS),
                (Effort::Mixed, false) => dice.within(MS, 80 * MS),
                (Effort::Light | Effort::Mixed, true) => dice.within(100 * MS, 800 * MS),
                (Effort::Heavy, _) => dice.within(100 * MS, 1_500 * MS),
            };
            let ending = match dice.within(0, 999) {
                0..=3 => Ending::FailsForGood,
                4 => Ending::TooLarge,
                5..=7 if !habit.harmless => Ending::KillsWorker,
                _ => Ending::Works,
            };
            let size_bytes = match ending {
                Ending::TooLarge => MAX_ARTIFACT_BYTES + dice.within(1, 1_000),
                _ => dice.within(400, 60_000),
            };
            ItemStory { run_time, affinity: dice.within(0, habit.keys), size_bytes, ending }
        })
        .collect()
}

/// One long query first, and then the others, of one item each and of the same tenant, about as fast
/// as one worker can do them.
fn crowd_together(dice: &mut Dice, queries: &mut [QueryStory]) {
    let begin = dice.within(SECOND, 10 * SECOND);
    let pause = dice.within(15 * MS, 40 * MS);
    for (at, query) in (0..).zip(queries) {
        (query.api, query.tenant, query.leaves_after) = (0, 0, None);
        query.at = begin + at * pause + dice.within(0, pause);
        if at == 0 {
            query.at = begin;
            query.window = 64;
        } else {
            query.items.truncate(1);
        }
        for item in &mut query.items {
            item.run_time = dice.within(10 * MS, 30 * MS);
        }
    }
}
