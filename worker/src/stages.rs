//! The stages of a leaf's run, each with its span in the trace and its time in the metrics.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use core_workcoord::measure::Histogram;
use tracing::{Span, info_span};
use tributary_process::metrics::Text;

/// How long each stage took, over all runs.
#[derive(Debug, Default)]
pub(crate) struct Stages {
    download: Mutex<Histogram>,
    scan: Mutex<Histogram>,
    encode: Mutex<Histogram>,
}

impl Stages {
    /// Brings segments here.
    pub(crate) fn download<T>(&self, stage: impl FnOnce() -> T) -> T {
        timed(&self.download, info_span!("download"), stage)
    }

    /// Runs the leaf over them.
    pub(crate) fn scan<T>(&self, stage: impl FnOnce() -> T) -> T {
        timed(&self.scan, info_span!("scan"), stage)
    }

    /// Writes what came of it.
    pub(crate) fn encode<T>(&self, stage: impl FnOnce() -> T) -> T {
        timed(&self.encode, info_span!("encode"), stage)
    }

    /// Their times.
    pub(crate) fn measure(&self, text: &mut Text) {
        for (name, help, times) in [
            (
                "download_seconds",
                "Bringing a leaf's segments here, found on disk or downloaded.",
                &self.download,
            ),
            ("scan_seconds", "Running a leaf over its segments.", &self.scan),
            ("encode_seconds", "Writing a leaf's artifact.", &self.encode),
        ] {
            let times = times.lock().unwrap_or_else(PoisonError::into_inner).clone();
            text.histogram(name, help, &times);
        }
    }
}

/// Stages that fail or are cancelled count as well: they took their time.
fn timed<T>(times: &Mutex<Histogram>, span: Span, stage: impl FnOnce() -> T) -> T {
    let begun = Instant::now();
    let value = span.in_scope(stage);
    times.lock().unwrap_or_else(PoisonError::into_inner).observe(begun.elapsed());
    value
}
