//! How far an import is, on standard error where that is a terminal.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::figures::{grouped, per_second};

/// How often the bar moves by itself.
const TICK: Duration = Duration::from_millis(100);

/// The bar, and the count of bytes it shows.
pub(super) struct Progress {
    bar: ProgressBar,
    bytes: Arc<AtomicU64>,
    begun: Instant,
}

impl Progress {
    /// Begins with no bytes read, of so many where that is known.
    pub(super) fn start(total_bytes: Option<u64>) -> Self {
        let template = match total_bytes {
            // Fits a terminal of 80 columns.
            Some(_) => "{bar:16} {bytes}/{total_bytes} {msg} {eta}",
            None => "{spinner} {bytes} {msg}",
        };
        let style = ProgressStyle::with_template(template).expect("the template is well formed");
        // Few frames: drawing takes time from the import.
        let target = ProgressDrawTarget::stderr_with_hz(5);
        let bar = ProgressBar::with_draw_target(total_bytes, target).with_style(style);
        Self { bar, bytes: Arc::default(), begun: Instant::now() }
    }

    /// Where bytes are counted as they are read.
    pub(super) fn bytes(&self) -> &Arc<AtomicU64> {
        &self.bytes
    }

    /// So many samples were read.
    pub(super) fn read(&self, samples: u64) {
        if self.bar.is_hidden() {
            return;
        }
        self.bar.set_position(self.bytes.load(Ordering::Relaxed));
        self.bar.set_message(format!(
            "{} samples, {}/s",
            grouped(samples),
            per_second(samples, self.begun.elapsed())
        ));
    }

    /// All is read, the segments are being written.
    pub(super) fn writing(&self, samples: u64) {
        let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}");
        self.bar.set_style(style.expect("the template is well formed"));
        self.bar.set_message(format!("{} samples read, writing segments", grouped(samples)));
        self.bar.enable_steady_tick(TICK);
    }

    /// Takes the bar away.
    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        // Where the import ended early, what went wrong is printed in its place.
        self.bar.finish_and_clear();
    }
}
