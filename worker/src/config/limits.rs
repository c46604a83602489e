//! How much one leaf may take of a worker, whatever an API node asks: the smaller limit counts. What
//! each of them counts is in `promql`.

use tributary_process::knobs;
use tributary_promql::EvalLimits;

knobs! {
    /// Limits of one leaf.
    LimitKnobs {
        /// Series that it may read (default 1000000). More: memory, and time in proportion.
        max_series: u64 = 1_000_000,
        /// Samples that it may read (default 2000000000). More: time in proportion.
        max_samples: u64 = 2_000_000_000,
        /// Values that are held at once (default 50000000). More: memory, 8 bytes for a value of a
        /// row, 16 for a sample, 40 for the state of a group and 100 for one of stddev.
        max_values: u64 = 50_000_000,
        /// Samples that windows look at, each as often as it is looked at (default 5000000000).
        /// More: time in proportion.
        max_window_samples: u64 = 5_000_000_000,
        /// Bytes of the labels of the groups it makes (default 536870912, 512 MiB). More: memory.
        max_label_bytes: u64 = 512 << 20,
    }
}

impl LimitKnobs {
    /// As leaves take them.
    pub fn limits(&self) -> EvalLimits {
        EvalLimits {
            max_series: self.max_series,
            max_samples: self.max_samples,
            max_values: self.max_values,
            max_window_samples: self.max_window_samples,
            max_label_bytes: self.max_label_bytes,
            // The others hold for whole queries, which a worker never sees.
            ..EvalLimits::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_evaluation() {
        assert_eq!(LimitKnobs::default().limits(), EvalLimits::default());
    }
}
