//! How much memory the results of all queries take together. A query that would take more than is
//! left ends with an error, instead of all of them with the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::QueryError;

/// The memory there is for results.
#[derive(Debug)]
pub struct Memory {
    limit_bytes: u64,
    used_bytes: AtomicU64,
}

/// Memory that somebody has. Given back when dropped.
#[derive(Debug)]
pub struct Charge {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Memory {
    /// So much, and nothing of it taken.
    pub fn new(limit_bytes: u64) -> Arc<Self> {
        Arc::new(Self { limit_bytes, used_bytes: AtomicU64::new(0) })
    }

    /// Takes some, if there is as much.
    pub fn charge(self: &Arc<Self>, bytes: u64) -> Result<Charge, QueryError> {
        let mut charge = Charge { memory: Arc::clone(self), bytes: 0 };
        charge.change_to(bytes)?;
        Ok(charge)
    }

    /// How much is taken.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }
}

impl Charge {
    /// Takes more or gives some back, so that it is this much. What can't be had changes nothing.
    pub fn change_to(&mut self, bytes: u64) -> Result<(), QueryError> {
        let limit_bytes = self.memory.limit_bytes;
        let others = |used: u64| used.saturating_sub(self.bytes);
        let fits = |used: u64| {
            let next = others(used).checked_add(bytes)?;
            (next <= limit_bytes || bytes <= self.bytes).then_some(next)
        };
        let order = Ordering::Relaxed;
        match self.memory.used_bytes.fetch_update(order, order, fits) {
            Ok(_) => {
                self.bytes = bytes;
                Ok(())
            }
            Err(_) => Err(QueryError::OutOfMemory { limit_bytes }),
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.memory.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_and_what_is_dropped_comes_back() {
        let memory = Memory::new(10);
        let mut one = memory.charge(6).unwrap();
        let refused = memory.charge(5).unwrap_err();
        assert_eq!(refused, QueryError::OutOfMemory { limit_bytes: 10 });
        assert!(one.change_to(11).is_err());
        assert_eq!(memory.used_bytes(), 6);
        one.change_to(2).unwrap();
        let other = memory.charge(8).unwrap();
        assert_eq!(memory.used_bytes(), 10);
        drop((one, other));
        assert_eq!(memory.used_bytes(), 0);
    }
}
