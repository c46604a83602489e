//! The knobs of both sides: meaning, default, what raising it costs, and the relations between
//! them, checked before anything starts.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Knobs of the API's coordinator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CoordinatorConfig {
    /// Heartbeats are sent this often (1 s). Longer: slower detection of dead links.
    pub heartbeat_interval: Duration,
    /// Silence for this long means lost (3 s). Longer: work on a dead link waits longer.
    pub heartbeat_timeout: Duration,
    /// A stream must be open this soon after a dial (2 s).
    pub dial_timeout: Duration,
    /// `Welcome` must come this soon after the stream is open (2 s).
    pub welcome_timeout: Duration,
    /// An assignment must be accepted or rejected, and a cancellation confirmed, this soon (10 s).
    /// Longer: a worker that lives but does not answer holds its work longer.
    pub answer_timeout: Duration,
    /// First pause before a redial (100 ms); doubles with every failure, with jitter.
    pub backoff_base: Duration,
    /// Longest pause before a redial (5 s). Longer: a returning worker is found later.
    pub backoff_max: Duration,
    /// A session that lived this long was good: the backoff starts over (5 s).
    pub backoff_reset_after: Duration,
    /// Work items on one worker beyond its slots (2). More: fewer idle gaps between items, and
    /// more work to hand elsewhere when the worker dies.
    pub worker_queue_ahead: u32,
    /// Slots that are believed of one worker (1,024). More: one that boasts gets more work.
    pub max_worker_slots: u32,
    /// Items of one query on their way at once, at most (64). More: more memory for results that
    /// came early.
    pub query_window: u32,
    /// Queries at once (2,000). More: memory.
    pub max_queries: u32,
    /// Queries of one tenant at once (500).
    pub max_tenant_queries: u32,
    /// Items waiting in the queue, of all queries (200,000). More: memory, some 200 bytes an item
    /// beyond its spec.
    pub max_queued_items: u32,
    /// Items of one query (100,000).
    pub max_query_items: u32,
    /// Attempts at one item (6). More: a work item that always fails ends its query later.
    pub max_attempts: u32,
    /// An item that was running on this many different workers when they died fails its query (3).
    pub poison_workers: u32,
    /// Fetches at once (64). More: memory and sockets.
    pub max_fetches: u32,
    /// Bytes of fetches at once (256 MiB); one fetch is always allowed. More: memory.
    pub max_fetch_bytes: u64,
    /// Size of one artifact (1 GiB). A larger one fails its query.
    pub max_artifact_bytes: u64,
    /// A straggler is hedged when it takes this many times as long as its siblings took on
    /// average (3.0). Less: more double work.
    pub hedge_factor: f64,
    /// No item is hedged before it has taken this long (50 ms).
    pub hedge_floor: Duration,
    /// Hedges as a share of finished items, in thousandths (50). More: more double work.
    pub hedge_budget_per_mille: u32,
}

impl Default for CoordinatorConfig {
    fn default() -> Self {
        Self {
            heartbeat_interval: Duration::from_secs(1),
            heartbeat_timeout: Duration::from_secs(3),
            dial_timeout: Duration::from_secs(2),
            welcome_timeout: Duration::from_secs(2),
            answer_timeout: Duration::from_secs(10),
            backoff_base: Duration::from_millis(100),
            backoff_max: Duration::from_secs(5),
            backoff_reset_after: Duration::from_secs(5),
            worker_queue_ahead: 2,
            max_worker_slots: 1_024,
            query_window: 64,
            max_queries: 2_000,
            max_tenant_queries: 500,
            max_queued_items: 200_000,
            max_query_items: 100_000,
            max_attempts: 6,
            poison_workers: 3,
            max_fetches: 64,
            max_fetch_bytes: 256 << 20,
            max_artifact_bytes: 1 << 30,
            hedge_factor: 3.0,
            hedge_floor: Duration::from_millis(50),
            hedge_budget_per_mille: 50,
        }
    }
}

/// Knobs of the worker's intake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IntakeConfig {
    /// Items that run at once (2). The worker sets it to its cores.
    pub slots: u32,
    /// Items accepted beyond the slots, of all sessions (16). More: work sits here instead of
    /// going to a worker with room.
    pub queue_limit: u32,
    /// Streams at once (64). More: memory and heartbeats.
    pub max_sessions: u32,
    /// Heartbeats are sent at least this often (1 s).
    pub heartbeat_interval: Duration,
    /// Silence for this long means lost (3 s).
    pub heartbeat_timeout: Duration,
    /// `Hello` must come this soon (2 s).
    pub hello_timeout: Duration,
    /// An artifact nobody acknowledged goes after this long (10 min). Longer: disk.
    pub artifact_ttl: Duration,
    /// An acknowledged artifact goes after this long (30 s). Longer: disk.
    pub artifact_ttl_after_ack: Duration,
    /// A drain ends after this long, done or not (5 min).
    pub drain_timeout: Duration,
}

impl Default for IntakeConfig {
    fn default() -> Self {
        Self {
            slots: 2,
            queue_limit: 16,
            max_sessions: 64,
            heartbeat_interval: Duration::from_secs(1),
            heartbeat_timeout: Duration::from_secs(3),
            hello_timeout: Duration::from_secs(2),
            artifact_ttl: Duration::from_secs(600),
            artifact_ttl_after_ack: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(300),
        }
    }
}

/// The most bytes any limit may be: a petabyte, so that sums of a few can't overflow.
const BYTES_MAX: u64 = 1 << 50;

/// Two knobs that do not fit together, or one that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadConfig {
    /// One must exceed the other.
    #[error("{larger} must exceed {smaller}")]
    Order {
        /// The knob that must be larger.
        larger: &'static str,
        /// The knob that must be smaller.
        smaller: &'static str,
    },
    /// It must not be zero.
    #[error("{knob} must not be zero")]
    Zero {
        /// Which knob.
        knob: &'static str,
    },
    /// It must be a millisecond or more.
    #[error("{knob} must be a millisecond or more")]
    TooShort {
        /// Which knob.
        knob: &'static str,
    },
    /// It is larger than any machine needs.
    #[error("{knob} must be {limit} or less")]
    TooLarge {
        /// Which knob.
        knob: &'static str,
        /// The most it may be.
        limit: u64,
    },
    /// It is outside the range that makes sense.
    #[error("{knob} must be from {from} to {to}")]
    Range {
        /// Which knob.
        knob: &'static str,
        /// The least it may be.
        from: u32,
        /// The most it may be.
        to: u32,
    },
}

fn exceeds<T: PartialOrd>(
    (larger, large): (&'static str, T),
    (smaller, small): (&'static str, T),
) -> Result<(), BadConfig> {
    if large > small { Ok(()) } else { Err(BadConfig::Order { larger, smaller }) }
}

fn not_zero(knobs: &[(&'static str, u64)]) -> Result<(), BadConfig> {
    match knobs.iter().find(|(_, value)| *value == 0) {
        Some((knob, _)) => Err(BadConfig::Zero { knob }),
        None => Ok(()),
    }
}

/// Shorter spans are nothing but busy work.
fn a_millisecond_at_least(knobs: &[(&'static str, Duration)]) -> Result<(), BadConfig> {
    match knobs.iter().find(|(_, value)| *value < Duration::from_millis(1)) {
        Some((knob, _)) => Err(BadConfig::TooShort { knob }),
        None => Ok(()),
    }
}

impl CoordinatorConfig {
    /// Checks every relation between the knobs.
    pub fn check(&self) -> Result<(), BadConfig> {
        a_millisecond_at_least(&[
            ("heartbeat_interval", self.heartbeat_interval),
            ("dial_timeout", self.dial_timeout),
            ("welcome_timeout", self.welcome_timeout),
            ("answer_timeout", self.answer_timeout),
            ("backoff_base", self.backoff_base),
        ])?;
        not_zero(&[
            ("max_worker_slots", self.max_worker_slots.into()),
            ("query_window", self.query_window.into()),
            ("max_queries", self.max_queries.into()),
            ("max_tenant_queries", self.max_tenant_queries.into()),
            ("max_queued_items", self.max_queued_items.into()),
            ("max_query_items", self.max_query_items.into()),
            ("max_attempts", self.max_attempts.into()),
            ("poison_workers", self.poison_workers.into()),
            ("max_fetches", self.max_fetches.into()),
            ("max_fetch_bytes", self.max_fetch_bytes),
            ("max_artifact_bytes", self.max_artifact_bytes),
        ])?;
        exceeds(
            ("heartbeat_timeout", self.heartbeat_timeout),
            ("heartbeat_interval", self.heartbeat_interval),
        )?;
        if self.max_artifact_bytes > BYTES_MAX {
            return Err(BadConfig::TooLarge { knob: "max_artifact_bytes", limit: BYTES_MAX });
        }
        if self.backoff_max < self.backoff_base {
            return Err(BadConfig::Order { larger: "backoff_max", smaller: "backoff_base" });
        }
        if (1.0..=1_000.0).contains(&self.hedge_factor) {
            Ok(())
        } else {
            Err(BadConfig::Range { knob: "hedge_factor", from: 1, to: 1_000 })
        }
    }
}

impl IntakeConfig {
    /// Checks every relation between the knobs.
    pub fn check(&self) -> Result<(), BadConfig> {
        a_millisecond_at_least(&[
            ("heartbeat_interval", self.heartbeat_interval),
            ("hello_timeout", self.hello_timeout),
            ("artifact_ttl", self.artifact_ttl),
            ("drain_timeout", self.drain_timeout),
        ])?;
        not_zero(&[("slots", self.slots.into()), ("max_sessions", self.max_sessions.into())])?;
        exceeds(
            ("heartbeat_timeout", self.heartbeat_timeout),
            ("heartbeat_interval", self.heartbeat_interval),
        )?;
        exceeds(
            ("artifact_ttl", self.artifact_ttl),
            ("artifact_ttl_after_ack", self.artifact_ttl_after_ack),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_fit_together() {
        assert_eq!(CoordinatorConfig::default().check(), Ok(()));
        assert_eq!(IntakeConfig::default().check(), Ok(()));
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let second = Duration::from_secs(1);
        let bad = CoordinatorConfig { heartbeat_timeout: second, ..Default::default() };
        let order = BadConfig::Order { larger: "heartbeat_timeout", smaller: "heartbeat_interval" };
        assert_eq!(bad.check(), Err(order.clone()));
        assert_eq!(order.to_string(), "heartbeat_timeout must exceed heartbeat_interval");
        let bad = CoordinatorConfig { query_window: 0, ..Default::default() };
        assert_eq!(bad.check(), Err(BadConfig::Zero { knob: "query_window" }));
        let bad = CoordinatorConfig { hedge_factor: f64::NAN, ..Default::default() };
        assert_eq!(bad.check(), Err(BadConfig::Range { knob: "hedge_factor", from: 1, to: 1_000 }));
        let bad = CoordinatorConfig { backoff_max: Duration::ZERO, ..Default::default() };
        assert!(matches!(bad.check(), Err(BadConfig::Order { larger: "backoff_max", .. })));
        let bad = IntakeConfig { slots: 0, ..Default::default() };
        assert_eq!(bad.check(), Err(BadConfig::Zero { knob: "slots" }));
        let bad = IntakeConfig { heartbeat_interval: Duration::ZERO, ..Default::default() };
        assert_eq!(bad.check(), Err(BadConfig::TooShort { knob: "heartbeat_interval" }));
        let bad = CoordinatorConfig { max_artifact_bytes: u64::MAX, ..Default::default() };
        let limit = BYTES_MAX;
        assert_eq!(bad.check(), Err(BadConfig::TooLarge { knob: "max_artifact_bytes", limit }));
    }
}
