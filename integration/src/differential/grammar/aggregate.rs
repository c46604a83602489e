//! Aggregations over the series of a vector, with their parameters and groupings.

use super::Grammar;

const PLAIN: &[&str] = &["sum", "avg", "min", "max", "count", "group", "stddev", "stdvar"];

impl Grammar<'_> {
    /// An aggregation.
    pub(super) fn aggregation(&mut self, depth: usize) -> String {
        let (name, parameter) = match self.dice.below(100) {
            0..62 => (*self.dice.pick(PLAIN), None),
            62..78 => {
                let name = *self.dice.pick(&["topk", "bottomk"]);
                (name, Some(self.count(depth)))
            }
            78..86 => ("quantile", Some(self.quantile(depth))),
            86..92 => {
                let name = *self.dice.pick(&[
                    "\"value\"",
                    "\"job\"",
                    "'le'",
                    "\"v.1\"",
                    "\"__name__\"",
                    "\"\"",
                    "\"1x\"",
                ]);
                ("count_values", Some(name.to_owned()))
            }
            92..96 => ("limitk", Some(self.count(depth))),
            _ => {
                let ratio = *self
                    .dice
                    .pick(&["0.5", "-0.5", "0.1", "0", "1", "-1", "0.9", "2", "-3", "NaN"]);
                ("limit_ratio", Some(ratio.to_owned()))
            }
        };
        let vector = self.vector(depth);
        let arguments = match parameter {
            Some(parameter) => format!("({parameter}, {vector})"),
            None => format!("({vector})"),
        };
        match self.dice.below(10) {
            0..4 => format!("{name}{arguments}"),
            4..8 => {
                let word = *self.dice.pick(&["by", "by", "without"]);
                format!("{name} {word} {} {arguments}", self.label_list())
            }
            _ => {
                let word = *self.dice.pick(&["by", "without", "BY"]);
                format!("{name}{arguments} {word} {}", self.label_list())
            }
        }
    }

    /// How many series to keep: small numbers, and numbers that are none.
    fn count(&mut self, depth: usize) -> String {
        let plain =
            ["1", "2", "3", "3", "5", "0", "-1", "1.9", "100", "NaN", "Inf", "1e19", "-Inf"];
        match self.dice.below(20) {
            0 => self.scalar(depth.min(2)),
            1..4 => (*self.dice.pick(&plain)).to_owned(),
            _ => (*self.dice.pick(&plain[..5])).to_owned(),
        }
    }

    /// A quantile: most between nought and one.
    pub(super) fn quantile(&mut self, depth: usize) -> String {
        match self.dice.below(20) {
            0 => self.scalar(depth.min(2)),
            1..4 => (*self.dice.pick(&["-1", "2", "NaN", "1.0001", "-Inf", "Inf"])).to_owned(),
            _ => (*self.dice.pick(&["0", "1", "0.5", "0.9", "0.99", "0.25", "1e-3"])).to_owned(),
        }
    }
}
