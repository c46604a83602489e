//! The catalog's knobs: meaning, default, what raising each costs, and the relations between them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::CatalogError;

/// How the catalog is read and written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CatalogConfig {
    /// Readers ask this often whether anything changed (250 ms). Longer: new segments are seen
    /// later.
    pub poll_interval: Duration,
    /// That question, a new connection and a sign of life must be answered this soon (2 s).
    /// Longer: a dead link is noticed later.
    pub poll_timeout: Duration,
    /// A write waits this long for another writer to finish (5 s). Longer: callers wait longer
    /// for a writer that hangs.
    pub lock_timeout: Duration,
    /// Everything else must be done this soon (60 s); reading a whole catalog is the longest.
    pub operation_timeout: Duration,
    /// Longest pause between two tries while the database is away (2 s); the first is the poll
    /// interval, and it doubles. Longer: its return is noticed later.
    pub backoff_max: Duration,
}

impl Default for CatalogConfig {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_millis(250),
            poll_timeout: Duration::from_secs(2),
            lock_timeout: Duration::from_secs(5),
            operation_timeout: Duration::from_secs(60),
            backoff_max: Duration::from_secs(2),
        }
    }
}

impl CatalogConfig {
    /// The knobs fit together.
    pub fn check(&self) -> Result<(), CatalogError> {
        let bad = |reason| Err(CatalogError::BadConfig { reason });
        if self.poll_interval < Duration::from_millis(1) {
            return bad("poll_interval is under a millisecond");
        }
        if self.poll_timeout < Duration::from_millis(10) {
            return bad("poll_timeout is under ten milliseconds");
        }
        if self.operation_timeout <= self.lock_timeout {
            return bad("operation_timeout must exceed lock_timeout");
        }
        if self.backoff_max < self.poll_interval {
            return bad("backoff_max is shorter than poll_interval");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knobs_that_can_not_work_together_are_refused() {
        assert!(CatalogConfig::default().check().is_ok());
        let wrongs: [fn(&mut CatalogConfig); 4] = [
            |c| c.poll_interval = Duration::ZERO,
            |c| c.poll_timeout = Duration::ZERO,
            |c| c.operation_timeout = c.lock_timeout,
            |c| c.backoff_max = Duration::from_millis(1),
        ];
        for wrong in wrongs {
            let mut config = CatalogConfig::default();
            wrong(&mut config);
            assert!(matches!(config.check(), Err(CatalogError::BadConfig { .. })), "{config:?}");
        }
    }
}
