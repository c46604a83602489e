//! What wants to be woken when. One ordered set for all timers of a state machine; the owner keeps
//! the moment it armed, so that a timer can be taken back.

use std::collections::BTreeSet;

use crate::moment::Moment;

/// Armed timers in the order they are due.
#[derive(Clone, Debug)]
pub struct Timers<K> {
    due: BTreeSet<(Moment, K)>,
}

impl<K: Ord + Clone> Default for Timers<K> {
    fn default() -> Self {
        Self { due: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Timers<K> {
    /// Arms a timer.
    pub fn arm(&mut self, at: Moment, key: K) {
        self.due.insert((at, key));
    }

    /// Takes a timer back. One that was never armed, or has fired, is no harm.
    pub fn disarm(&mut self, at: Moment, key: K) {
        self.due.remove(&(at, key));
    }

    /// When the first one is due.
    pub fn next(&self) -> Option<Moment> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes the first one that is due by `now`.
    pub fn pop_due(&mut self, now: Moment) -> Option<(Moment, K)> {
        if self.next()? > now {
            return None;
        }
        self.due.pop_first()
    }

    /// Whether this very timer is armed.
    pub fn is_armed(&self, at: Moment, key: K) -> bool {
        self.due.contains(&(at, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_in_order_and_only_when_due() {
        let mut timers = Timers::default();
        timers.arm(Moment(30), "c");
        timers.arm(Moment(10), "a");
        timers.arm(Moment(20), "b");
        timers.disarm(Moment(20), "b");
        timers.disarm(Moment(99), "never armed");
        assert_eq!(timers.next(), Some(Moment(10)));
        assert!(timers.is_armed(Moment(30), "c"));
        assert_eq!(timers.pop_due(Moment(5)), None);
        assert_eq!(timers.pop_due(Moment(40)), Some((Moment(10), "a")));
        assert_eq!(timers.pop_due(Moment(40)), Some((Moment(30), "c")));
        assert_eq!(timers.pop_due(Moment(40)), None);
        assert_eq!(timers.next(), None);
    }
}
