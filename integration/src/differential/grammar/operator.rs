//! Operators between vectors and numbers, with all the ways in which series find each other.

use super::Grammar;

const ARITHMETIC: &[&str] = &["+", "-", "*", "/", "%", "^", "atan2"];
const COMPARISONS: &[&str] = &["==", "!=", "<", "<=", ">", ">="];
const SETS: &[&str] = &["and", "or", "unless"];

impl Grammar<'_> {
    /// An operator with a vector on at least one side.
    pub(super) fn operation(&mut self, depth: usize) -> String {
        match self.dice.below(100) {
            0..8 => {
                let sign = *self.dice.pick(&["-", "-", "+"]);
                let operand = self.operand(depth);
                format!("{sign}{operand}")
            }
            8..45 => self.with_number(depth),
            45..60 => self.of_sets(depth),
            60..85 => self.of_targets(depth),
            _ => {
                let (left, right) = (self.operand(depth), self.operand(depth));
                let operator = self.operator();
                let matching = self.matching();
                format!("{left} {operator}{matching} {right}")
            }
        }
    }

    /// An operator between numbers.
    pub(super) fn scalar_operation(&mut self, depth: usize) -> String {
        let (left, right) = (self.scalar(depth), self.scalar(depth));
        if self.dice.percent(70) {
            let operator = *self.dice.pick(ARITHMETIC);
            format!("({left} {operator} {right})")
        } else {
            let operator = *self.dice.pick(COMPARISONS);
            format!("({left} {operator} bool {right})")
        }
    }

    fn with_number(&mut self, depth: usize) -> String {
        let (vector, number) = (self.operand(depth), self.scalar(depth.min(1)));
        let operator = self.operator();
        if self.dice.percent(60) {
            format!("{vector} {operator} {number}")
        } else {
            format!("{number} {operator} {vector}")
        }
    }

    fn of_sets(&mut self, depth: usize) -> String {
        let (left, right) = (self.operand(depth), self.operand(depth));
        let operator = *self.dice.pick(SETS);
        let matching = if self.dice.percent(50) { self.on_or_ignoring() } else { String::new() };
        format!("{left} {operator}{matching} {right}")
    }

    /// Two vectors of the same targets, so that series find each other.
    fn of_targets(&mut self, depth: usize) -> String {
        if self.dice.percent(25) {
            return self.of_any_targets();
        }
        let (many, one) = (self.with_many(depth), self.with_one(depth));
        let operator = self.operator();
        match self.dice.below(10) {
            0..3 => format!("requests_total {operator} {}", self.like_requests()),
            3 => format!("{} {operator} ignoring(cpu) requests_total", self.like_requests()),
            4..7 => {
                let group = *self.dice.pick(&["group_left", "group_left()", "group_left(version)"]);
                format!("{many} {operator} on(job, instance) {group} {one}")
            }
            7..9 => format!("{one} {operator} on(instance, job) group_right {many}"),
            _ => format!("{many} {operator} ignoring(code, cpu, le) group_left {one}"),
        }
    }

    /// Series of the same labels as those of `requests_total`.
    fn like_requests(&mut self) -> String {
        let range = self.range();
        match self.dice.below(4) {
            0 => "errors_total".to_owned(),
            1 => format!("rate(errors_total[{range}])"),
            2 => format!("requests_total{}", self.offset()),
            _ => format!("max_over_time(requests_total[{range}])"),
        }
    }

    /// Several series of every target.
    fn with_many(&mut self, depth: usize) -> String {
        let metric = *self.dice.pick(&[
            "requests_total",
            "errors_total",
            "cpu_usage",
            "latency_seconds_bucket",
        ]);
        if depth > 0 && self.dice.percent(40) {
            let range = self.range();
            return format!(
                "{}({metric}[{range}])",
                self.dice.pick(&["rate", "increase", "last_over_time"])
            );
        }
        metric.to_owned()
    }

    /// One series of every target.
    fn with_one(&mut self, depth: usize) -> String {
        if depth > 0 && self.dice.percent(40) {
            let many = self.with_many(0);
            let aggregation = *self.dice.pick(&["sum", "avg", "max", "count"]);
            return format!("{aggregation} by (job, instance) ({many})");
        }
        (*self.dice.pick(&[
            "up",
            "memory_bytes",
            "queue_length",
            "latency_seconds_sum",
            "target_info",
        ]))
        .to_owned()
    }

    /// Two vectors of targets with any way of finding each other, which may not be one.
    fn of_any_targets(&mut self) -> String {
        let (left, right) = (self.selector_of_targets(), self.selector_of_targets());
        let operator = self.operator();
        let matching = *self.dice.pick(&[
            "",
            " ignoring(code)",
            " on(job, instance)",
            " on(job, instance) group_right",
            " on(instance) group_left(job)",
            " on(job) group_left(code)",
            " on(job) group_right(instance)",
            " ignoring(code) group_right(missing)",
            " on(job, instance, code)",
        ]);
        format!("{left} {operator}{matching} {right}")
    }

    /// A vector next to an operator. Mostly in parentheses where need be; sometimes precedence
    /// decides.
    fn operand(&mut self, depth: usize) -> String {
        let vector = self.vector(depth);
        if vector.contains(' ') && self.dice.percent(80) { format!("({vector})") } else { vector }
    }

    fn operator(&mut self) -> String {
        if self.dice.percent(60) {
            return (*self.dice.pick(ARITHMETIC)).to_owned();
        }
        let comparison = *self.dice.pick(COMPARISONS);
        if self.dice.percent(40) { format!("{comparison} bool") } else { comparison.to_owned() }
    }

    fn matching(&mut self) -> String {
        if self.dice.percent(30) {
            return String::new();
        }
        let labels = self.on_or_ignoring();
        let group = match self.dice.below(4) {
            0 => *self.dice.pick(&[" group_left", " group_right"]),
            1 => {
                let side = *self.dice.pick(&["group_left", "group_right"]);
                let include = self.dice.pick(&["code", "version", "cpu", "missing"]);
                return format!("{labels} {side}({include})");
            }
            _ => "",
        };
        format!("{labels}{group}")
    }

    fn on_or_ignoring(&mut self) -> String {
        let word = *self.dice.pick(&["on", "ignoring"]);
        format!(" {word}{}", self.label_list())
    }
}
