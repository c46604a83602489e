//! When a straggler gets a second attempt: only when its query waits for nothing else, when it
//! takes far longer than its siblings did, and while the budget lasts.

use std::time::Duration;

use crate::config::CoordinatorConfig;
use crate::work_ledger::{Query, Work};

/// The most hedges that can be saved up, in thousandths.
const SAVED_MAX: u64 = 10_000;
/// What one hedge costs, in thousandths.
const COST: u64 = 1_000;

/// What may be spent on hedges: a share of the work that was finished.
#[derive(Clone, Debug)]
pub struct HedgeBudget {
    saved: u64,
    per_item: u64,
}

impl HedgeBudget {
    /// Begins with one hedge's worth, if hedging is on at all.
    pub fn new(per_mille: u32) -> Self {
        Self { saved: if per_mille == 0 { 0 } else { COST }, per_item: per_mille.into() }
    }

    /// An item was finished: a little more may be spent.
    pub fn earn(&mut self) {
        self.saved = (self.saved + self.per_item).min(SAVED_MAX);
    }

    /// Whether a hedge can be paid for.
    pub fn affords(&self) -> bool {
        self.saved >= COST
    }

    /// Pays for a hedge.
    pub fn spend(&mut self) {
        self.saved = self.saved.saturating_sub(COST);
    }
}

/// Whether an item could have a second line: it has one, on a worker, and an attempt to spare.
pub fn is_hedgeable(work: &Work, config: &CoordinatorConfig) -> bool {
    work.hedge.is_none() && work.lead.occupies() && work.attempts < config.max_attempts
}

/// How long an item of this query may take before it is a straggler, counted from its assignment;
/// `None` while the query waits for something else as well, or too few siblings are done to tell.
pub fn patience(query: &Query, config: &CoordinatorConfig) -> Option<Duration> {
    // What lies beyond the window waits for the straggler, too.
    let nothing_to_give_out = query.next_item().is_none() && query.parked == 0;
    let waits_only_for_open = nothing_to_give_out && !query.open.is_empty();
    let enough_done = query.done >= 1 && query.done >= query.fresh / 2;
    if !(waits_only_for_open && enough_done) {
        return None;
    }
    let average = query.finished_time / query.done;
    Some(average.mul_f64(config.hedge_factor).max(config.hedge_floor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_a_share_of_finished_work() {
        let mut budget = HedgeBudget::new(50);
        assert!(budget.affords());
        budget.spend();
        for _ in 0..19 {
            budget.earn();
            assert!(!budget.affords());
        }
        budget.earn();
        assert!(budget.affords(), "20 items at 5 % pay for one");
        for _ in 0..10_000 {
            budget.earn();
        }
        for _ in 0..10 {
            assert!(budget.affords());
            budget.spend();
        }
        assert!(!budget.affords(), "no more than ten can be saved up");
    }

    #[test]
    fn no_share_means_no_hedge() {
        let mut budget = HedgeBudget::new(0);
        budget.earn();
        assert!(!budget.affords());
        budget.spend();
    }
}
