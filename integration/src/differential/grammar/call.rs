//! Calls of functions, by what they take.

use super::Grammar;

/// Functions of one window.
const OVER_TIME: &[(usize, &str)] = &[
    (14, "rate"),
    (8, "increase"),
    (6, "delta"),
    (4, "irate"),
    (4, "idelta"),
    (4, "resets"),
    (4, "changes"),
    (4, "deriv"),
    (4, "sum_over_time"),
    (5, "avg_over_time"),
    (4, "min_over_time"),
    (4, "max_over_time"),
    (4, "count_over_time"),
    (4, "last_over_time"),
    (3, "present_over_time"),
    (3, "stddev_over_time"),
    (3, "stdvar_over_time"),
    (2, "mad_over_time"),
    (2, "ts_of_min_over_time"),
    (2, "ts_of_max_over_time"),
    (2, "ts_of_last_over_time"),
];

/// Functions of every value of a vector.
const ELEMENTWISE: &[&str] = &[
    "abs",
    "ceil",
    "floor",
    "exp",
    "ln",
    "log2",
    "log10",
    "sqrt",
    "sgn",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cos",
    "cosh",
    "sin",
    "sinh",
    "tan",
    "tanh",
    "deg",
    "rad",
    "timestamp",
];

/// Functions of times: of every value of a vector, or of the time of evaluation.
const CALENDAR: &[&str] = &[
    "day_of_month",
    "day_of_week",
    "day_of_year",
    "days_in_month",
    "hour",
    "minute",
    "month",
    "year",
];

/// Functions that only native histograms have an answer to.
const NATIVE_ONLY: &[&str] =
    &["histogram_avg", "histogram_count", "histogram_stddev", "histogram_stdvar", "histogram_sum"];

impl Grammar<'_> {
    /// A function of a window.
    pub(super) fn over_time(&mut self, depth: usize) -> String {
        let matrix = self.matrix(depth);
        match self.dice.below(100) {
            0..6 => {
                let quantile = self.quantile(depth);
                format!("quantile_over_time({quantile}, {matrix})")
            }
            6..11 => {
                let ahead = *self.dice.pick(&["60", "3600", "-300", "0", "5m"]);
                format!("predict_linear({matrix}, {ahead})")
            }
            11..15 => {
                let factors = ["0.5", "0.1", "0.9", "0.3", "0.5", "0.1", "0", "1", "2", "NaN"];
                let smoothing = *self.dice.pick(&factors);
                let trend = *self.dice.pick(&factors[..6]);
                format!("double_exponential_smoothing({matrix}, {smoothing}, {trend})")
            }
            _ => format!("{}({matrix})", self.dice.weighted(OVER_TIME)),
        }
    }

    /// A function of every value.
    pub(super) fn elementwise(&mut self, depth: usize) -> String {
        match self.dice.below(100) {
            0..60 => {
                let function = *self.dice.pick(ELEMENTWISE);
                format!("{function}({})", self.vector(depth))
            }
            60..70 => {
                let function = *self.dice.pick(CALENDAR);
                let vector = match self.dice.below(3) {
                    0 => String::new(),
                    1 => format!("timestamp({})", self.selector()),
                    _ => self.vector(depth),
                };
                format!("{function}({vector})")
            }
            70..80 => {
                let function = *self.dice.pick(&["clamp_min", "clamp_max"]);
                let vector = self.vector(depth);
                format!("{function}({vector}, {})", self.scalar(depth.min(1)))
            }
            80..88 => {
                let vector = self.vector(depth);
                format!("clamp({vector}, {}, {})", self.number(), self.number())
            }
            _ => {
                let vector = self.vector(depth);
                match self.dice.below(3) {
                    0 => format!("round({vector})"),
                    _ => format!("round({vector}, {})", self.scalar(depth.min(1))),
                }
            }
        }
    }

    /// A vector in an order that is asked for.
    pub(super) fn sorted(&mut self, depth: usize) -> String {
        let vector = self.vector(depth);
        match self.dice.below(4) {
            0 => format!("sort({vector})"),
            1 => format!("sort_desc({vector})"),
            which => {
                let function = if which == 2 { "sort_by_label" } else { "sort_by_label_desc" };
                let labels: Vec<String> =
                    (0..self.dice.below(3)).map(|_| format!(", \"{}\"", self.label())).collect();
                format!("{function}({vector}{})", labels.concat())
            }
        }
    }

    /// A vector with other labels.
    pub(super) fn relabelled(&mut self, depth: usize) -> String {
        let vector = self.vector(depth);
        let source = self.label();
        if self.dice.percent(60) {
            let target =
                *self.dice.pick(&["job", "host", "code", "instance", "__name__", "k8s.pod", ""]);
            let (replacement, pattern) = *self.dice.pick(&[
                ("$1", "(.*)-.*"),
                ("$1", "(.*)"),
                ("x", ""),
                ("${1}_x", "(.+):(\\\\d+)"),
                ("$2-$1", "([a-z]+)-(.*)"),
                ("$host", "(?P<host>[^:]*):.*"),
                ("", ".*"),
                ("$$1", "(.)(.*)"),
                ("fixed", "api.*"),
                ("$9$0", "2.."),
                ("$1", "("),
            ]);
            format!(
                "label_replace({vector}, \"{target}\", \"{replacement}\", \"{source}\", \"{pattern}\")"
            )
        } else {
            let target = *self.dice.pick(&["joined", "joined", "job", "instance", "__name__", ""]);
            let between = *self.dice.pick(&["-", "", ", ", "é"]);
            let sources: Vec<String> =
                (0..self.dice.below(4)).map(|_| format!(", \"{}\"", self.label())).collect();
            format!("label_join({vector}, \"{target}\", \"{between}\"{})", sources.concat())
        }
    }

    /// Functions of classic histograms, mostly of buckets that are some.
    pub(super) fn of_histogram(&mut self, depth: usize) -> String {
        let buckets = match self.dice.below(8) {
            0 => "latency_seconds_bucket".to_owned(),
            1 => format!("latency_seconds_bucket{{{}}}", self.matcher("latency_seconds_bucket")),
            2 => "{__name__=~\"latency_seconds_.*\"}".to_owned(),
            3 => format!("rate(latency_seconds_bucket[{}])", self.range()),
            4 => format!("sum by (le) (rate(latency_seconds_bucket[{}]))", self.range()),
            5 => "sum by (job, le) (increase(latency_seconds_bucket[10m]))".to_owned(),
            6 => "avg without (instance) (latency_seconds_bucket)".to_owned(),
            _ => self.vector(depth),
        };
        match self.dice.below(10) {
            0..6 => {
                let quantile = self.quantile(depth);
                format!("histogram_quantile({quantile}, {buckets})")
            }
            6..9 => {
                let bounds = ["0", "0.1", "0.3", "1", "7", "-Inf", "Inf", "NaN", "-2"];
                let (low, high) = (*self.dice.pick(&bounds), *self.dice.pick(&bounds));
                format!("histogram_fraction({low}, {high}, {buckets})")
            }
            _ => {
                let function = *self.dice.pick(NATIVE_ONLY);
                format!("{function}({buckets})")
            }
        }
    }

    /// Whether something is not there.
    pub(super) fn absence(&mut self, depth: usize) -> String {
        if self.dice.percent(50) {
            let gone = if self.dice.percent(50) {
                format!(
                    "nowhere{{job=\"{}\",{}}}",
                    self.value("job"),
                    self.matcher("requests_total")
                )
            } else {
                self.vector(depth)
            };
            format!("absent({gone})")
        } else {
            format!("absent_over_time({})", self.matrix(depth))
        }
    }

    /// A vector with labels of information metrics.
    pub(super) fn with_information(&mut self, depth: usize) -> String {
        let vector =
            if self.dice.percent(60) { self.selector_of_targets() } else { self.vector(depth) };
        let labels = *self.dice.pick(&[
            "",
            "",
            ", {version=~\".+\"}",
            ", {cluster=\"blue\"}",
            ", {__name__=\"build_info\"}",
            ", {__name__=~\".*_info\", version=\"1.0\"}",
            ", {missing=~\".*\"}",
        ]);
        format!("info({vector}{labels})")
    }
}
