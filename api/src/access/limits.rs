//! How much a tenant may ask: so many requests a second, and so many at once. Counts only; what a
//! request is, is for others to say.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use core_workcoord::id::TenantId;
use tokio::time::Instant;

/// Tenants that are remembered. Without keys anybody may invent one, so there has to be an end.
const MOST_TENANTS: usize = 10_000;

/// How much each tenant may ask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TenantLimits {
    /// Requests a second on average; none for as many as come (none).
    pub requests_per_second: Option<f64>,
    /// Requests that may come at once after a silence (100). Counts where there is a rate.
    pub burst: u32,
    /// Requests whose answers are under way, streams included (256). More: memory and work for one
    /// tenant that others wait for.
    pub running: u32,
}

impl Default for TenantLimits {
    fn default() -> Self {
        Self { requests_per_second: None, burst: 100, running: 256 }
    }
}

/// Why a request is not let in now.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Busy {
    /// Requests come too fast.
    #[error("tenant {tenant} sends more than {rate} requests a second")]
    Rate {
        /// Whose.
        tenant: TenantId,
        /// The limit.
        rate: f64,
        /// When the next one will be let in.
        after: Duration,
    },
    /// Too many are under way.
    #[error("{limit} requests of tenant {tenant} are running already")]
    Running {
        /// Whose.
        tenant: TenantId,
        /// The limit.
        limit: u32,
    },
    /// Nobody can be remembered any more.
    #[error("requests of {MOST_TENANTS} tenants are running already")]
    Tenants,
}

impl Busy {
    /// When it may be worth to come again.
    pub fn retry_after(&self) -> Duration {
        match self {
            Self::Rate { after, .. } => *after,
            Self::Running { .. } | Self::Tenants => Duration::from_secs(1),
        }
    }
}

/// Counts the requests of every tenant.
#[derive(Debug)]
pub(super) struct Doorkeeper {
    limits: TenantLimits,
    tenants: Mutex<BTreeMap<TenantId, Tally>>,
}

#[derive(Debug)]
struct Tally {
    running: u32,
    /// Requests that may come now, and since when.
    tokens: f64,
    at: Instant,
}

/// Room for one request. Given back when dropped.
#[derive(Debug)]
pub struct Permit {
    door: Arc<Doorkeeper>,
    tenant: TenantId,
}

impl Doorkeeper {
    pub(super) fn new(limits: TenantLimits) -> Self {
        Self { limits, tenants: Mutex::default() }
    }

    pub(super) fn admit(door: &Arc<Self>, tenant: &TenantId) -> Result<Permit, Busy> {
        let limits = door.limits;
        let burst = f64::from(limits.burst.max(1));
        let now = Instant::now();
        let mut tenants = door.tenants();
        if tenants.len() >= MOST_TENANTS && !tenants.contains_key(tenant) {
            // Whoever is not here and has a full bucket is as good as unknown.
            tenants.retain(|_, tally| tally.running > 0 || limits.tokens_of(tally, now) < burst);
            if tenants.len() >= MOST_TENANTS {
                return Err(Busy::Tenants);
            }
        }
        let fresh = || Tally { running: 0, tokens: burst, at: now };
        let tally = tenants.entry(tenant.clone()).or_insert_with(fresh);
        if tally.running >= limits.running {
            return Err(Busy::Running { tenant: tenant.clone(), limit: limits.running });
        }
        if let Some(rate) = limits.requests_per_second {
            tally.tokens = limits.tokens_of(tally, now);
            tally.at = now;
            if tally.tokens < 1.0 {
                let seconds = (1.0 - tally.tokens) / rate;
                let after = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
                return Err(Busy::Rate { tenant: tenant.clone(), rate, after });
            }
            tally.tokens -= 1.0;
        }
        tally.running += 1;
        drop(tenants);
        Ok(Permit { door: Arc::clone(door), tenant: tenant.clone() })
    }

    fn tenants(&self) -> MutexGuard<'_, BTreeMap<TenantId, Tally>> {
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TenantLimits {
    fn tokens_of(&self, tally: &Tally, now: Instant) -> f64 {
        let burst = f64::from(self.burst.max(1));
        match self.requests_per_second {
            Some(rate) => (tally.tokens + rate * (now - tally.at).as_secs_f64()).min(burst),
            None => burst,
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut tenants = self.door.tenants();
        if let Some(tally) = tenants.get_mut(&self.tenant) {
            tally.running = tally.running.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    fn door(requests_per_second: Option<f64>, burst: u32, running: u32) -> Arc<Doorkeeper> {
        Arc::new(Doorkeeper::new(TenantLimits { requests_per_second, burst, running }))
    }

    fn tenant(name: &str) -> TenantId {
        TenantId::new(name).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_let_in_and_then_the_rate_counts() {
        let door = door(Some(2.0), 3, 100);
        let (a, b) = (tenant("a"), tenant("b"));
        for _ in 0..3 {
            Doorkeeper::admit(&door, &a).unwrap();
        }
        let busy = Doorkeeper::admit(&door, &a).unwrap_err();
        assert_eq!(busy.retry_after(), Duration::from_millis(500));
        assert_eq!(busy.to_string(), "tenant a sends more than 2 requests a second");
        Doorkeeper::admit(&door, &b).unwrap();
        advance(Duration::from_millis(500)).await;
        Doorkeeper::admit(&door, &a).unwrap();
        Doorkeeper::admit(&door, &a).unwrap_err();
        advance(Duration::from_secs(60)).await;
        let admitted = (0..10).filter(|_| Doorkeeper::admit(&door, &a).is_ok()).count();
        assert_eq!(admitted, 3, "a long silence earns one burst");
    }

    #[tokio::test]
    async fn so_many_run_at_once_and_the_end_of_one_lets_in_another() {
        let door = door(None, 1, 2);
        let a = tenant("a");
        let first = Doorkeeper::admit(&door, &a).unwrap();
        let _second = Doorkeeper::admit(&door, &a).unwrap();
        let busy = Doorkeeper::admit(&door, &a).unwrap_err();
        assert_eq!(busy.to_string(), "2 requests of tenant a are running already");
        Doorkeeper::admit(&door, &tenant("b")).unwrap();
        drop(first);
        Doorkeeper::admit(&door, &a).unwrap();
    }

    #[tokio::test]
    async fn invented_tenants_are_forgotten_and_running_ones_are_not() {
        let door = door(None, 1, 1);
        let held = Doorkeeper::admit(&door, &tenant("held")).unwrap();
        for number in 0..3 * MOST_TENANTS {
            Doorkeeper::admit(&door, &tenant(&number.to_string())).unwrap();
        }
        assert!(door.tenants().len() <= MOST_TENANTS);
        Doorkeeper::admit(&door, &tenant("held")).unwrap_err();
        drop(held);
    }
}
