//! The clock behind a state machine that asks none: moments since the process began, timers for the
//! moments it wants to be woken at, and the time of day for those who read it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use core_workcoord::moment::Moment;
use tokio::time::Instant;

/// A timer that is further away is as good as none.
const FAR: Duration = Duration::from_secs(86_400);

/// Tells moments since it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    begun: Instant,
}

impl Clock {
    /// It is moment zero.
    pub fn start() -> Self {
        Self { begun: Instant::now() }
    }

    /// The moment it is.
    pub fn now(&self) -> Moment {
        Moment::ZERO + self.begun.elapsed()
    }

    /// Sleeps until a moment; for ever where there is none.
    pub async fn sleep_until(&self, due: Option<Moment>) {
        let Some(due) = due else { return std::future::pending().await };
        let at = self.begun.checked_add(due.since(Moment::ZERO));
        tokio::time::sleep_until(at.unwrap_or_else(|| Instant::now() + FAR)).await;
    }
}

/// Nanoseconds since 1970, by this machine's clock.
pub fn unix_nanos() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_timer_wakes_at_its_moment_and_without_one_never() {
        let clock = Clock::start();
        clock.sleep_until(Some(Moment::ZERO + Duration::from_secs(5))).await;
        assert_eq!(clock.now(), Moment::ZERO + Duration::from_secs(5));
        let never = tokio::time::timeout(Duration::from_secs(1_000), clock.sleep_until(None));
        assert!(never.await.is_err());
    }
}
