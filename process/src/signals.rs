//! SIGTERM and SIGINT: the first asks the process to drain, the second is for one that should be
//! gone. What ends the process is left to its main function.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::{info, warn};

/// The two signals that ask a process to leave.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on they are caught. To be called in a tokio runtime, before anybody is told that
    /// the process is ready.
    pub fn catch() -> io::Result<Self> {
        let terminate = signal(SignalKind::terminate())?;
        let interrupt = signal(SignalKind::interrupt())?;
        Ok(Self { terminate, interrupt })
    }

    /// Calls `drain` at the first signal. Comes back at the second, even while `drain` still waits,
    /// with the exit code that a process gets which a signal ended.
    pub async fn drain_then_give_up(mut self, drain: impl AsyncFnOnce()) -> u8 {
        let first = self.next().await;
        info!(signal = first, "asked to leave by a signal");
        let second = tokio::select! {
            () = drain() => self.next().await,
            second = self.next() => second,
        };
        warn!(signal = second, "told to leave at once by a second signal");
        128 + second
    }

    /// Waits for the next of the two and gives its number.
    pub async fn next(&mut self) -> u8 {
        let (interrupt, terminate) = (2, 15);
        tokio::select! {
            _ = self.terminate.recv() => terminate,
            _ = self.interrupt.recv() => interrupt,
        }
    }
}
