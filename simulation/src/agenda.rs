//! What happens when: one heap of events, ordered by time and then by the order they were noted.
//! Events are small; messages wait in their pipes and events only say that one is due.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::network::Way;

/// Something that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A fault of the story begins.
    Fault { fault: u32 },
    /// A fault of the story ends.
    FaultOver { fault: u32 },
    /// Every fault is over.
    Heal,
    /// Every table of every node is checked.
    Audit,
    /// An API's timer is due.
    ApiTick { api: u32 },
    /// A worker's timer is due.
    WorkerTick { worker: u32 },
    /// The first parcel of a pipe may have arrived.
    Pipe { stream: u32, way: Way },
    /// A pipe has been stuck for as long as a sender waits for an acknowledgement.
    Stuck { stream: u32, way: Way, since: u64 },
    /// A driver ended an API's stream by itself and now says so.
    ApiStreamEnded { api: u32, life: u32, session: u64 },
    /// A driver ended a worker's stream by itself and now says so.
    WorkerStreamEnded { worker: u32, life: u32, session: u64 },
    /// A client asks.
    Submit { query: u32 },
    /// A client goes away.
    Leave { query: u32 },
    /// A reader is done with an item.
    Consume { query: u32, life: u32 },
    /// A fetch reaches the worker.
    FetchArrives { api: u32, fetch: u32 },
    /// A fetch ends.
    FetchEnds { api: u32, fetch: u32 },
    /// A run is done, or stops.
    RunEnds { worker: u32, life: u32, run: u64 },
    /// A run kills its worker.
    RunKills { worker: u32, life: u32, run: u64 },
    /// An API looks at what discovery says of an address.
    Discover { api: u32, endpoint: u32 },
    /// A worker process starts.
    WorkerUp { worker: u32 },
    /// A worker process is asked to leave.
    WorkerDrains { worker: u32, life: u32 },
    /// An API process starts.
    ApiUp { api: u32 },
    /// A disk manager looks for something to remove.
    Evict { worker: u32, fault: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    at: u64,
    number: u64,
    event: Event,
}

impl Ord for Entry {
    /// The earliest is the greatest: the heap gives out its greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// All that is due.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    heap: BinaryHeap<Entry>,
    noted: u64,
}

impl Agenda {
    /// Notes an event for a time.
    pub(crate) fn note(&mut self, at: u64, event: Event) {
        self.noted += 1;
        self.heap.push(Entry { at, number: self.noted, event });
    }

    /// The next event and its time.
    pub(crate) fn next(&mut self) -> Option<(u64, Event)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_in_the_order_they_were_noted() {
        let mut agenda = Agenda::default();
        agenda.note(5, Event::Heal);
        agenda.note(3, Event::Submit { query: 1 });
        agenda.note(3, Event::Submit { query: 2 });
        agenda.note(4, Event::Audit);
        let order: Vec<_> = std::iter::from_fn(|| agenda.next()).map(|(at, _)| at).collect();
        assert_eq!(order, [3, 3, 4, 5]);
        agenda.note(1, Event::Submit { query: 1 });
        agenda.note(1, Event::Submit { query: 2 });
        assert_eq!(agenda.next(), Some((1, Event::Submit { query: 1 })));
    }
}
