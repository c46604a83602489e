//! Which artifacts are fetched now and which wait: bounded in number and bytes, first ready first.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::message::WorkRef;
use crate::moment::Moment;

/// Fetches under way and artifacts that wait for one.
#[derive(Clone, Debug)]
pub struct FetchQueue {
    max_fetches: u32,
    max_bytes: u64,
    waiting: BTreeMap<u64, Entry>,
    places: BTreeMap<WorkRef, u64>,
    came: u64,
    active: BTreeMap<WorkRef, Entry>,
    active_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    work: WorkRef,
    size_bytes: u64,
    /// When it began to wait, then when its fetch began.
    since: Moment,
}

impl FetchQueue {
    /// An empty one with these limits.
    pub fn new(max_fetches: u32, max_bytes: u64) -> Self {
        Self {
            max_fetches,
            max_bytes,
            waiting: BTreeMap::new(),
            places: BTreeMap::new(),
            came: 0,
            active: BTreeMap::new(),
            active_bytes: 0,
        }
    }

    /// An artifact can be fetched.
    pub fn push(&mut self, work: WorkRef, size_bytes: u64, now: Moment) {
        self.came += 1;
        self.waiting.insert(self.came, Entry { work, size_bytes, since: now });
        self.places.insert(work, self.came);
    }

    /// The next artifact to fetch and how long it waited, if the limits allow one. A single one is
    /// always allowed.
    pub fn start_next(&mut self, now: Moment) -> Option<(WorkRef, Duration)> {
        let entry = *self.waiting.first_key_value()?.1;
        let fits = self.active.len() < self.max_fetches as usize
            && self.active_bytes.saturating_add(entry.size_bytes) <= self.max_bytes;
        if !(fits || self.active.is_empty()) {
            return None;
        }
        self.waiting.pop_first();
        self.places.remove(&entry.work);
        self.active.insert(entry.work, Entry { since: now, ..entry });
        self.active_bytes += entry.size_bytes;
        Some((entry.work, now.since(entry.since)))
    }

    /// A fetch ended, or the artifact is not wanted: wherever it was, it is gone. Gives how long
    /// the fetch took, if there was one.
    pub fn remove(&mut self, work: WorkRef, now: Moment) -> Option<Duration> {
        if let Some(place) = self.places.remove(&work) {
            self.waiting.remove(&place);
        }
        let entry = self.active.remove(&work)?;
        self.active_bytes -= entry.size_bytes;
        Some(now.since(entry.since))
    }

    /// Whether this artifact waits for a fetch.
    pub fn is_waiting(&self, work: WorkRef) -> bool {
        self.places.contains_key(&work)
    }

    /// Whether this artifact is being fetched.
    pub fn is_active(&self, work: WorkRef) -> bool {
        self.active.contains_key(&work)
    }

    /// Artifacts that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Fetches under way.
    pub fn active(&self) -> usize {
        self.active.len()
    }

    /// Bytes of the fetches under way.
    pub fn active_bytes(&self) -> u64 {
        self.active_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Attempt, QueryId, WorkId};

    fn work(item: u32) -> WorkRef {
        WorkRef { work_id: WorkId { query: QueryId(1), item }, attempt: Attempt::FIRST }
    }

    #[test]
    fn number_and_bytes_are_bounded_but_one_may_always_go() {
        let t = Moment::from_millis;
        let mut fetches = FetchQueue::new(2, 100);
        for (item, size) in [(3, 500), (1, 60), (2, 60), (0, 10)] {
            fetches.push(work(item), size, t(1));
        }
        let waited = Duration::from_millis(1);
        assert_eq!(fetches.start_next(t(2)), Some((work(3), waited)), "however large");
        assert_eq!(fetches.start_next(t(2)), None, "its bytes are over the limit already");
        assert_eq!(fetches.remove(work(3), t(4)), Some(Duration::from_millis(2)));
        assert_eq!(fetches.start_next(t(2)), Some((work(1), waited)));
        assert_eq!(fetches.start_next(t(2)), None, "120 bytes are over the limit");
        assert_eq!(fetches.remove(work(2), t(2)), None, "it only waited");
        assert_eq!(fetches.start_next(t(2)), Some((work(0), waited)));
        assert!(fetches.is_active(work(0)) && !fetches.is_waiting(work(2)));
        fetches.push(work(7), 1, t(2));
        assert_eq!(fetches.start_next(t(2)), None, "two at once");
        assert!(fetches.is_waiting(work(7)));
        assert_eq!((fetches.active(), fetches.active_bytes(), fetches.waiting()), (2, 70, 1));
        assert_eq!(fetches.remove(work(9), t(2)), None);
    }
}
