//! How long artifacts stay. Pure: time comes in. One file may have been promised to several owners,
//! where work was answered from an artifact that was here already; it stays as long as any of them
//! may come.

use std::time::Duration;

use core_workcoord::moment::Moment;

use crate::disk_budget::Standing;

/// The two lifetimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// After the announcement, without an acknowledgement.
    pub ttl: Duration,
    /// After the acknowledgement.
    pub ttl_after_ack: Duration,
}

/// What one owner was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// It was announced and is to be fetched.
    Announced {
        /// When it was announced.
        since: Moment,
    },
    /// The owner has it.
    Acknowledged {
        /// When that was said.
        since: Moment,
    },
}

impl Promise {
    /// When the promise ends.
    pub fn until(self, retention: &Retention) -> Moment {
        match self {
            Self::Announced { since } => since + retention.ttl,
            Self::Acknowledged { since } => since + retention.ttl_after_ack,
        }
    }

    /// How dear it makes its file.
    pub fn rank(self) -> Rank {
        match self {
            Self::Announced { since } => Rank { waits: true, since },
            Self::Acknowledged { since } => Rank { waits: false, since },
        }
    }

    /// Whether it has ended.
    pub fn is_over(self, retention: &Retention, now: Moment) -> bool {
        self.until(retention) <= now
    }
}

/// How dear a promise makes its file. Somebody who still waits counts for more than everybody who
/// has it, and the latest for more than the others: of several the largest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    waits: bool,
    since: Moment,
}

impl Rank {
    /// What a file is worth whose dearest promise this is.
    pub fn standing(self, retention: &Retention) -> Standing {
        let Self { waits, since } = self;
        if waits {
            Standing::Unacknowledged { since, until: since + retention.ttl }
        } else {
            Standing::Acknowledged { since, until: since + retention.ttl_after_ack }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RETENTION: Retention =
        Retention { ttl: Duration::from_millis(600), ttl_after_ack: Duration::from_millis(30) };

    fn promise() -> impl Strategy<Value = Promise> {
        (any::<bool>(), 0_u64..1000).prop_map(|(acked, ms)| {
            let since = Moment::from_millis(ms);
            if acked { Promise::Acknowledged { since } } else { Promise::Announced { since } }
        })
    }

    proptest! {
        #[test]
        fn a_file_is_unacknowledged_exactly_while_somebody_waits_for_it(
            promises in prop::collection::vec(promise(), 0..6)
        ) {
            let waits = promises.iter().any(|p| matches!(p, Promise::Announced { .. }));
            let dearest = promises.iter().map(|p| p.rank()).max();
            match dearest.map(|rank| rank.standing(&RETENTION)) {
                None => prop_assert!(promises.is_empty()),
                Some(Standing::Unacknowledged { until, .. }) => {
                    prop_assert!(waits);
                    let waiting = promises.iter().filter(|p| matches!(p, Promise::Announced { .. }));
                    prop_assert_eq!(Some(until), waiting.map(|p| p.until(&RETENTION)).max());
                }
                Some(Standing::Acknowledged { until, .. }) => {
                    prop_assert!(!waits);
                    let last = promises.iter().map(|p| p.until(&RETENTION)).max();
                    prop_assert_eq!(Some(until), last);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }

        #[test]
        fn a_promise_holds_for_its_whole_time_and_not_longer(promise in promise(), ms in 0_u64..2000) {
            let now = Moment::from_millis(ms);
            let (since, ttl) = match promise {
                Promise::Announced { since } => (since, RETENTION.ttl),
                Promise::Acknowledged { since } => (since, RETENTION.ttl_after_ack),
            };
            prop_assert_eq!(promise.is_over(&RETENTION, now), now.since(since) >= ttl);
        }
    }
}
