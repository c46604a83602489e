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

    /// Whether it has ended.
    pub fn is_over(self, retention: &Retention, now: Moment) -> bool {
        self.until(retention) <= now
    }
}

/// How dear a file is that was promised to these owners; nothing if to none. Somebody who still
/// waits counts for more than everybody who has it, and the latest for more than the others.
pub fn standing(
    promises: impl IntoIterator<Item = Promise>,
    retention: &Retention,
) -> Option<Standing> {
    let mut announced = None;
    let mut acknowledged = None;
    for promise in promises {
        match promise {
            Promise::Announced { since } => announced = announced.max(Some(since)),
            Promise::Acknowledged { since } => acknowledged = acknowledged.max(Some(since)),
        }
    }
    if let Some(since) = announced {
        return Some(Standing::Unacknowledged { since, until: since + retention.ttl });
    }
    let since = acknowledged?;
    Some(Standing::Acknowledged { since, until: since + retention.ttl_after_ack })
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
            match standing(promises.iter().copied(), &RETENTION) {
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
