//! Calculations of queries, off the threads that serve sockets: so many at once, and the rest wait
//! for their turn. What is calculated is the callers' business.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::Semaphore;

/// Where calculations run.
#[derive(Debug)]
pub struct Cores {
    turns: Semaphore,
    /// On the caller's thread, so that a simulation repeats itself.
    inline: bool,
}

/// A calculation broke off. What it was about is lost; nothing else is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a calculation broke off; this is a fault of this program")]
pub struct BrokeOff;

impl Cores {
    /// So many calculations at once, on threads of their own.
    pub fn new(count: usize) -> Self {
        Self { turns: Semaphore::new(count.max(1)), inline: false }
    }

    /// One calculation at a time, on the thread that asks for it.
    pub fn inline() -> Self {
        Self { turns: Semaphore::new(1), inline: true }
    }

    /// Calculates something, in its turn. Where the caller gives up waiting, a calculation that has
    /// begun goes on to its end, which limits bring soon.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, BrokeOff> {
        let _turn = self.turns.acquire().await.expect("it is never closed");
        if self.inline {
            return catch_unwind(AssertUnwindSafe(work)).map_err(|_| BrokeOff);
        }
        tokio::task::spawn_blocking(work).await.map_err(|_| BrokeOff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_calculation_that_panics_ends_alone() {
        for cores in [Cores::new(1), Cores::inline()] {
            let broken = cores.run(|| -> u32 { panic!("on purpose") }).await;
            assert_eq!(broken, Err(BrokeOff));
            assert_eq!(cores.run(|| 7).await, Ok(7));
        }
    }
}
