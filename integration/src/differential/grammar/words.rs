//! The words expressions are made of: names of metrics and labels, values, patterns, numbers and
//! durations. They are those of `data`, and a few that exist nowhere.

use super::Grammar;

/// Metrics of `data` with how often each is asked for.
pub(super) const METRICS: &[(usize, &str)] = &[
    (12, "requests_total"),
    (8, "errors_total"),
    (10, "cpu_usage"),
    (5, "memory_bytes"),
    (6, "queue_length"),
    (5, "up"),
    (5, "latency_seconds_bucket"),
    (3, "latency_seconds_sum"),
    (3, "latency_seconds_count"),
    (2, "target_info"),
    (2, "build_info"),
    (4, "wild"),
    (2, "tiny"),
    (2, "lonely"),
    (1, "fixed"),
    (2, "twin_a"),
    (2, "twin_b"),
    (1, "missing"),
];

/// Metrics of every target, which share `job` and `instance`.
pub(super) const OF_TARGETS: &[&str] =
    &["requests_total", "errors_total", "cpu_usage", "memory_bytes", "queue_length", "up"];

const LABELS: &[(usize, &str)] = &[
    (10, "job"),
    (10, "instance"),
    (6, "code"),
    (3, "cpu"),
    (3, "le"),
    (2, "kind"),
    (2, "zone"),
    (2, "version"),
    (1, "cluster"),
    (1, "missing"),
    (1, "__name__"),
];

/// Values that labels of `data` have, and patterns that fit some of them.
const VALUES: &[(&str, &[&str], &[&str])] = &[
    ("job", &["api", "db"], &["api|db", "a.*", "(?i)API", "d.", "api|nowhere", ".+i"]),
    (
        "instance",
        &["api-0:80", "db-0:80", "api-1:80"],
        &["api-[01]:80", "db-.*", ".*-0.*", "(api|db)-[^0]+0", ".*:80"],
    ),
    ("code", &["200", "404", "500"], &["2..|5..", "[245]0[04]", "4.4", "^200$", "5\\\\d+"]),
    ("cpu", &["0", "1"], &["0|1", "[1-9]"]),
    ("le", &["+Inf", "0.1", "1"], &["0\\\\..*", "[^+].*", "1|5|\\\\+Inf"]),
    ("kind", &["a", "b"], &["a|b|", "[^b]"]),
    ("zone", &["eu", "us"], &["e.", "[a-z]{2}"]),
    ("version", &["1.0"], &["1\\\\.0", "1.1"]),
    ("cluster", &["blue"], &["b.+"]),
];

const ANY_VALUES: &[&str] = &["", "", "nowhere", "api", "1", "é"];

const ANY_PATTERNS: &[&str] = &[".*", ".*", ".+", "", "n?owhere", "|x"];

const RANGES: &[&str] = &[
    "37s", "1m", "90s", "2m", "5m", "2m", "2m30s", "5m", "5m", "5m", "7m", "10m", "15m", "20m",
    "30m", "1h", "1500ms", "300", "61.5", "1m1s", "1ms",
];

const STEPS: &[&str] = &["10s", "15s", "30s", "45s", "1m", "1m", "97s", "2m", "5m", "20"];

const OFFSETS: &[&str] = &[
    "30s", "1m", "5m", "7m30s", "15m", "-30s", "-1m", "-5m", "-12m", "0s", "90", "-45", "1ms",
    "-1ms",
];

const NUMBERS: &[&str] = &[
    "0", "1", "2", "3", "10", "100", "0.5", "0.25", "1.5", "-1", "1e3", "1e-3", "0x1F", "1_000",
    ".5", "NaN", "Inf", "+Inf", "-Inf", "5m", "1h30m", "1e308", "1e-300", "017",
];

impl Grammar<'_> {
    /// A metric of `data`.
    pub(super) fn metric(&mut self) -> &'static str {
        self.dice.weighted(METRICS)
    }

    /// The name of a label.
    pub(super) fn label(&mut self) -> &'static str {
        self.dice.weighted(LABELS)
    }

    /// Names of labels in parentheses, up to three, possibly none.
    pub(super) fn label_list(&mut self) -> String {
        let count = self.dice.weighted(&[(8, 0), (45, 1), (35, 2), (12, 3)]);
        let mut names: Vec<&str> = (0..count).map(|_| self.label()).collect();
        if self.dice.percent(2) {
            names.push("\"k8s.pod\"");
        }
        format!("({})", names.join(", "))
    }

    /// A label that series of a metric have, or sometimes any.
    pub(super) fn label_of(&mut self, metric: &str) -> &'static str {
        let own: &[&str] = match metric {
            "requests_total" | "errors_total" => &["job", "instance", "code"],
            "cpu_usage" => &["job", "instance", "cpu"],
            "latency_seconds_bucket" => &["job", "instance", "le"],
            "target_info" => &["job", "instance", "version", "cluster"],
            "build_info" => &["job", "instance", "version"],
            "wild" => &["kind"],
            "tiny" => &["kind", "job"],
            "twin_a" | "twin_b" | "fixed" => &["zone"],
            _ => &["job", "instance"],
        };
        if self.dice.percent(85) { self.dice.pick::<&str>(own) } else { self.label() }
    }

    /// A value of a label, mostly one that it has.
    pub(super) fn value(&mut self, label: &str) -> &'static str {
        let known = VALUES.iter().find(|(name, ..)| *name == label).map(|(_, values, _)| *values);
        let values = known.filter(|_| self.dice.percent(85)).unwrap_or(ANY_VALUES);
        self.dice.pick::<&str>(values)
    }

    /// A regular expression for values of a label, to stand in quotes.
    pub(super) fn pattern(&mut self, label: &str) -> &'static str {
        let known = VALUES.iter().find(|(name, ..)| *name == label).map(|(.., patterns)| *patterns);
        let patterns = known.filter(|_| self.dice.percent(75)).unwrap_or(ANY_PATTERNS);
        self.dice.pick::<&str>(patterns)
    }

    /// A number that stands by itself.
    pub(super) fn number(&mut self) -> String {
        if self.dice.percent(30) {
            return format!("{:.3}", self.dice.fraction() * 20.0 - 5.0);
        }
        (*self.dice.pick(NUMBERS)).to_owned()
    }

    /// The length of a window.
    pub(super) fn range(&mut self) -> String {
        let range = *self.dice.pick(RANGES);
        self.duration(range)
    }

    /// The step of a subquery.
    pub(super) fn step(&mut self) -> String {
        let step = *self.dice.pick(STEPS);
        self.duration(step)
    }

    /// A duration, now and then as the arithmetic of `promql-duration-expr`.
    fn duration(&mut self, plain: &str) -> String {
        if !self.dice.percent(6) {
            return plain.to_owned();
        }
        match self.dice.below(4) {
            0 => format!("{plain} * 2"),
            1 => format!("({plain} + 30s) / 2"),
            2 => format!("2 ^ 2 * {plain} / 4"),
            _ => format!("{plain} + (1m % 45s)"),
        }
    }

    /// How far back a selector looks, with the word before it.
    pub(super) fn offset(&mut self) -> String {
        let plain = *self.dice.pick(OFFSETS);
        match self.dice.below(20) {
            0 => format!(" offset ({plain})"),
            1 => format!(" offset -({plain} + 1m)"),
            _ => format!(" offset {plain}"),
        }
    }

    /// The time a selector is fixed at, with the sign before it.
    pub(super) fn at(&mut self) -> String {
        match self.dice.below(10) {
            0..3 => " @ start()".to_owned(),
            3..6 => " @ end()".to_owned(),
            _ => {
                let t = self.base + self.dice.between(0, self.span);
                let (seconds, thousandths) = (t / 1000, t % 1000);
                if self.dice.percent(50) {
                    format!(" @ {seconds}")
                } else {
                    format!(" @ {seconds}.{thousandths:03}")
                }
            }
        }
    }

    /// A string that stands by itself.
    pub(super) fn string(&mut self) -> String {
        (*self.dice.pick(&[
            r#""""#,
            "'it''s'",
            "\"a string\"",
            "`raw \\n`",
            r#""\u00e9\n\t\"""#,
            "'é'",
        ]))
        .replace("''", "\\'")
    }
}
