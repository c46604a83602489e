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
        let operator = self.operator();
        let one = |this: &mut Self| match this.dice.below(4) {
            0 if depth > 0 => {
                let inner = this.selector_of_targets();
                let by = *this.dice.pick(&["job", "job, instance", "instance"]);
                let aggregation = *this.dice.pick(&["sum", "avg", "max", "count"]);
                format!("{aggregation} by ({by}) ({inner})")
            }
            1 if depth > 0 => {
                let function = *this.dice.pick(&["rate", "max_over_time", "delta"]);
                let series = this.series();
                format!("{function}({series}[5m])")
            }
            _ => this.selector_of_targets(),
        };
        let (left, right) = (one(self), one(self));
        let matching = *self.dice.pick(&[
            "",
            "",
            " ignoring(code)",
            " ignoring(code, cpu)",
            " on(job, instance)",
            " on(job, instance) group_left",
            " on(job, instance) group_left()",
            " on(job, instance) group_right",
            " on(instance) group_left(job)",
            " on(job) group_left(code)",
            " on(job) group_right(instance)",
            " ignoring(code, cpu) group_left",
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
