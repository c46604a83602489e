//! Metrics as Prometheus' text. Figures are counted where things happen, and get their names from
//! whoever writes them down.

use std::fmt::{Display, Write};
use std::time::Duration;

use core_workcoord::measure::Histogram;

/// The content type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The smallest bound that a histogram's buckets are told for; each next one is twice as large.
const FIRST_BOUND: Duration = Duration::from_micros(16);

/// The largest bound, about 18 minutes.
const LAST_BOUND: Duration = Duration::from_micros(16 << 26);

/// Metrics in Prometheus' text format, version 0.0.4.
#[derive(Clone, Debug)]
pub struct Text {
    prefix: &'static str,
    out: String,
}

impl Text {
    /// An empty text in which every name begins with this, as in `tributary_worker_`.
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, out: String::new() }
    }

    /// Something that only goes up. Its name ends with `_total`.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        self.line(name, "", value);
    }

    /// A counter for each value of a label.
    pub fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'static str, u64)>,
    ) {
        self.head(name, "counter", help);
        for (value, count) in values {
            self.line(name, &format!("{{{label}=\"{value}\"}}"), count);
        }
    }

    /// Something that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.line(name, "", value);
    }

    /// A gauge for each value of a label. The values are escaped.
    pub fn gauges<V: AsRef<str>>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (V, impl Display)>,
    ) {
        self.head(name, "gauge", help);
        for (value, amount) in values {
            let value = escaped(value.as_ref());
            self.line(name, &format!("{{{label}=\"{value}\"}}"), amount);
        }
    }

    /// How long things took, in seconds.
    pub fn histogram(&mut self, name: &str, help: &str, times: &Histogram) {
        self.head(name, "histogram", help);
        let (mut below, mut bound) = (0, FIRST_BOUND);
        for (count, upper) in times.buckets() {
            // A bucket's own upper bound is not in it, and the next bound up is told at last.
            while upper > bound && bound <= LAST_BOUND {
                let bucket = format!("_bucket{{le=\"{}\"}}", bound.as_secs_f64());
                self.line(name, &bucket, below);
                bound *= 2;
            }
            below += count;
        }
        self.line(name, "_bucket{le=\"+Inf\"}", times.count());
        self.line(name, "_sum", times.sum().as_secs_f64());
        self.line(name, "_count", times.count());
    }

    /// The text.
    pub fn into_string(self) -> String {
        self.out
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let prefix = self.prefix;
        let written =
            writeln!(self.out, "# HELP {prefix}{name} {help}\n# TYPE {prefix}{name} {kind}");
        written.expect("a string takes everything");
    }

    fn line(&mut self, name: &str, rest: &str, value: impl Display) {
        let prefix = self.prefix;
        writeln!(self.out, "{prefix}{name}{rest} {value}").expect("a string takes everything");
    }
}

/// The value of a label as the format has it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_up_to_everything() {
        let mut times = Histogram::default();
        for millis in [1, 1, 3, 100, 5_000_000] {
            times.observe(Duration::from_millis(millis));
        }
        let mut text = Text::new("tributary_worker_");
        text.histogram("x_seconds", "X.", &times);
        let text = text.into_string();
        let below = |bound: &str| {
            let start = format!("tributary_worker_x_seconds_bucket{{le=\"{bound}\"}} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&start));
            line.unwrap_or_else(|| panic!("{bound} is missing in {text}")).parse::<u64>().unwrap()
        };
        assert_eq!((below("0.000016"), below("0.001024"), below("0.004096")), (0, 2, 3));
        assert_eq!((below("0.131072"), below("1073.741824"), below("+Inf")), (4, 4, 5));
        assert!(text.contains("x_seconds_count 5\n"), "{text}");
        let counts: Vec<u64> = text
            .lines()
            .filter(|line| line.contains("_bucket"))
            .map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert!(counts.is_sorted(), "{text}");
    }

    #[test]
    fn counters_carry_their_label() {
        let mut text = Text::new("tributary_worker_");
        text.counters("y_total", "Y.", "why", [("a", 1), ("b", 2)]);
        text.gauge("z", "Z.", 3);
        let expected = "# HELP tributary_worker_y_total Y.\n# TYPE tributary_worker_y_total counter\n\
            tributary_worker_y_total{why=\"a\"} 1\ntributary_worker_y_total{why=\"b\"} 2\n\
            # HELP tributary_worker_z Z.\n# TYPE tributary_worker_z gauge\ntributary_worker_z 3\n";
        assert_eq!(text.into_string(), expected);
        let mut text = Text::new("t_");
        text.gauges("g", "G.", "of", [("a", 1), ("\"b\\\n", 2)]);
        let text = text.into_string();
        assert!(text.ends_with("t_g{of=\"a\"} 1\nt_g{of=\"\\\"b\\\\\\n\"} 2\n"), "{text}");
    }
}
