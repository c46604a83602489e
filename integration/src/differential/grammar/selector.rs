//! Selectors of series and windows, and subqueries.

use super::Grammar;
use super::words::OF_TARGETS;

impl Grammar<'_> {
    /// An instant selector.
    pub(super) fn selector(&mut self) -> String {
        let series = self.series();
        format!("{series}{}", self.modifiers())
    }

    /// An instant selector of something every target has.
    pub(super) fn selector_of_targets(&mut self) -> String {
        let metric = *self.dice.pick(OF_TARGETS);
        let matchers = if self.dice.percent(30) { self.matchers(metric, 1) } else { String::new() };
        format!("{metric}{matchers}{}", self.modifiers())
    }

    /// A window of a selector.
    pub(super) fn matrix_selector(&mut self) -> String {
        let series = self.series();
        format!("{series}[{}]{}", self.range(), self.modifiers())
    }

    /// A window of an expression, evaluated again at every step of it.
    pub(super) fn subquery(&mut self, depth: usize) -> String {
        self.subqueries += 1;
        let inner = self.vector(depth);
        self.subqueries -= 1;
        let inner = if is_closed(&inner) { inner } else { format!("({inner})") };
        let step = if self.dice.percent(75) { self.step() } else { String::new() };
        format!("{inner}[{}:{step}]{}", self.range(), self.modifiers())
    }

    /// A metric and matchers, without any time.
    pub(super) fn series(&mut self) -> String {
        match self.dice.below(100) {
            0..45 => self.metric().to_owned(),
            45..85 => {
                let metric = self.metric();
                let count = self.dice.weighted(&[(70, 1), (25, 2), (5, 3)]);
                format!("{metric}{}", self.matchers(metric, count))
            }
            85..92 => {
                let names = *self.dice.pick(&[
                    "requests_total|errors_total",
                    "twin_.*",
                    "latency_seconds_(sum|count)",
                    ".*_total",
                    "up|queue_length",
                    "t.*",
                ]);
                format!("{{__name__=~\"{names}\"}}")
            }
            92..95 => "{\"http.requests\"}".to_owned(),
            95..96 => "{\"http.requests\",\"k8s.pod\"=~\"p-.\"}".to_owned(),
            96..98 => {
                let metric = self.metric();
                format!("{{__name__=\"{metric}\"}}")
            }
            _ => {
                // Every series of a target: most functions will find two that are the same.
                let more = self.matcher("up");
                format!("{{job=\"db\",{more}}}")
            }
        }
    }

    fn matchers(&mut self, metric: &str, count: usize) -> String {
        let matchers: Vec<String> = (0..count).map(|_| self.matcher(metric)).collect();
        let comma = if self.dice.percent(5) { "," } else { "" };
        format!("{{{}{comma}}}", matchers.join(", "))
    }

    /// A condition on a label that series of a metric mostly have.
    pub(super) fn matcher(&mut self, metric: &str) -> String {
        let label = match self.label_of(metric) {
            "__name__" => "job",
            label => label,
        };
        let quote = *self.dice.pick(&["\"", "\"", "\"", "'"]);
        if self.dice.percent(55) {
            let sign = *self.dice.pick(&["=", "!="]);
            format!("{label}{sign}{quote}{}{quote}", self.value(label))
        } else {
            let sign = *self.dice.pick(&["=~", "!~"]);
            format!("{label}{sign}{quote}{}{quote}", self.pattern(label))
        }
    }

    /// `offset` and `@`, in either order, usually neither.
    fn modifiers(&mut self) -> String {
        let offset = if self.dice.percent(15) { self.offset() } else { String::new() };
        let at = if self.dice.percent(8) { self.at() } else { String::new() };
        if self.dice.percent(50) { format!("{offset}{at}") } else { format!("{at}{offset}") }
    }
}

/// An expression that a window can follow directly: one name or one call or in parentheses.
fn is_closed(text: &str) -> bool {
    let mut open = 0_i32;
    for (at, char) in text.char_indices() {
        match char {
            '(' | '{' => open += 1,
            ')' | '}' => open -= 1,
            _ => {}
        }
        if open == 0 && (char == ' ' || (char == ')' && at + 1 < text.len())) {
            return false;
        }
    }
    !text.starts_with(['-', '+']) && !text.ends_with(']')
}
