//! Which cases need what no engine here can do yet. Decided from the script alone: from the samples
//! that were loaded, from what the case's selectors can reach of them, and from what is expected.

use std::collections::BTreeMap;
use std::fmt;

use tributary_promql::Labels;
use tributary_promql::matcher::CompiledMatcher;

use crate::reach::{Reach, reaches};
use crate::script::{Case, Load};

/// What a case needs and no engine can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// A native histogram is expected.
    HistogramExpected,
    /// A selector reaches native histograms.
    HistogramSelected,
    /// A function reaches samples that say since when they count.
    StartTimestamps,
}

/// Samples that not every case can cope with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Special {
    series: BTreeMap<Labels, SpecialTimes>,
}

/// When a series has such samples, in milliseconds.
#[derive(Clone, Debug, Default)]
struct SpecialTimes {
    histograms: Vec<i64>,
    start_timestamps: Vec<i64>,
}

impl Special {
    /// Takes in what a `load` brings.
    pub(crate) fn load(&mut self, load: &Load) {
        for (labels, series) in &load.series {
            if !series.histograms.is_empty() || series.has_start_timestamps {
                let times = self.series.entry(labels.clone()).or_default();
                times.histograms.extend(&series.histograms);
                if series.has_start_timestamps {
                    times.start_timestamps.extend(&series.samples.ts);
                }
            }
        }
    }

    /// What a case needs, if anything.
    pub(crate) fn need_of(&self, case: &Case) -> Option<Need> {
        if case.expect.has_histograms {
            return Some(Need::HistogramExpected);
        }
        if self.series.is_empty() {
            return None;
        }
        let reaches = reaches(&case.expr, case.time);
        reaches.iter().filter_map(|reach| self.need_of_selector(reach)).min()
    }

    fn need_of_selector(&self, reach: &Reach) -> Option<Need> {
        // Prometheus hands start timestamps to these only, and only straight from a selector.
        let reads_starts = matches!(
            reach.function,
            Some("rate" | "irate" | "increase" | "resets" | "start_timestamp")
        );
        // One that is too large to compile is taken to let everything through.
        let matchers: Vec<CompiledMatcher> =
            reach.matchers.iter().filter_map(|matcher| matcher.compile().ok()).collect();
        let fits = |labels: &Labels| matchers.iter().all(|m| m.matches(labels.value(m.name())));
        let selected = self.series.iter().filter(|(labels, _)| fits(labels));
        let read = |times: &[i64]| times.iter().any(|t| reach.times.contains(*t));
        selected
            .filter_map(|(_, times)| {
                if read(&times.histograms) {
                    Some(Need::HistogramSelected)
                } else if reads_starts && read(&times.start_timestamps) {
                    Some(Need::StartTimestamps)
                } else {
                    None
                }
            })
            .min()
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HistogramExpected => "a native histogram is expected",
            Self::HistogramSelected => "a selector reaches native histograms",
            Self::StartTimestamps => "a function reaches start timestamps",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Command, Script};

    const LOAD: &str = r#"load 1m
  f{a="1"} 1
  h{a="1"} {{sum:1}}
  mixed 1 {{sum:1}} _x20
  s@st -1m
  s 1
"#;

    /// What `expr` needs after `load`.
    fn need(load: &str, expr: &str) -> Option<Need> {
        let script = Script::parse(&format!("{load}\neval instant at 1m {expr}\n")).unwrap();
        let mut special = Special::default();
        for command in &script.commands {
            if let Command::Load(load) = command {
                special.load(load);
            }
        }
        special.need_of(script.cases().next().unwrap())
    }

    #[test]
    fn only_selectors_that_reach_histograms_need_them() {
        for expr in ["h", "sum(rate(h[5m])) + 1", "{a=\"1\"}", "{__name__=~\"h|g\"}", "mixed"] {
            assert_eq!(need(LOAD, expr), Some(Need::HistogramSelected), "{expr}");
        }
        for expr in ["f", "h{a=\"2\"}", "h{a!~\"1|2\"}", "{a=\"1\",__name__!=\"h\"}", "1", "s"] {
            assert_eq!(need(LOAD, expr), None, "{expr}");
        }
        assert_eq!(need(LOAD, "mixed offset 1m"), None, "it was a float a minute before");
        let inside = "max_over_time((1 + topk(2, h))[5m:1m])";
        assert_eq!(need(LOAD, inside), Some(Need::HistogramSelected));
    }

    #[test]
    fn an_expected_histogram_is_a_need_of_its_own() {
        let script = Script::parse("eval instant at 1m f\n f {{sum:1}}\n").unwrap();
        let case = script.cases().next().unwrap();
        assert_eq!(Special::default().need_of(case), Some(Need::HistogramExpected));
    }

    #[test]
    fn start_timestamps_matter_to_few_functions_and_not_through_subqueries() {
        for expr in [
            "rate(s[5m])",
            "resets((s[5m]))",
            "start_timestamp(s)",
            "irate({__name__=~\"s|t\"}[5m])",
        ] {
            assert_eq!(need(LOAD, expr), Some(Need::StartTimestamps), "{expr}");
        }
        for expr in ["s", "delta(s[5m])", "rate(s[5m:1m])", "start_timestamp(s * 1)", "rate(f[5m])"]
        {
            assert_eq!(need(LOAD, expr), None, "{expr}");
        }
    }

    #[test]
    fn info_without_a_name_reaches_only_target_info() {
        assert_eq!(need(LOAD, "info(f, {a=\"1\"})"), None);
        assert_eq!(need(LOAD, "info(f, {__name__=\"h\"})"), Some(Need::HistogramSelected));
        assert_eq!(need(LOAD, "info(h)"), Some(Need::HistogramSelected));
    }

    #[test]
    fn classic_series_of_converted_histograms_can_be_asked() {
        let load = "load_with_nhcb 1m\n  x_bucket{le=\"1\"} 1\n  x_sum 1\n";
        assert_eq!(need(load, "x_bucket"), None);
        assert_eq!(need(load, "x_sum"), None);
        assert_eq!(need(load, "x"), Some(Need::HistogramSelected));
    }
}
