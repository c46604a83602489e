//! `load`: series and their samples, at even times from zero on. Histograms and start timestamps
//! are noticed, not kept: series that have them are named, so that cases which need them can be
//! told apart.

use std::collections::BTreeMap;

use tributary_promql::matcher::METRIC_NAME;
use tributary_promql::{Labels, Options, SeriesDescription, SeriesValue, parse_series};

use super::lines::{Line, Lines};
use super::{ScriptError, block};
use crate::data::Samples;

/// What a `load` brings.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// By labels; of two lines for the same series the later one counts.
    pub series: BTreeMap<Labels, LoadedSeries>,
}

/// One series of a `load`.
#[derive(Clone, Debug, Default)]
pub struct LoadedSeries {
    /// Its samples that are floats.
    pub samples: Samples,
    /// The times of others, which are native histograms.
    pub histograms: Vec<i64>,
    /// Its samples say since when they count.
    pub has_start_timestamps: bool,
}

/// More values in one line are a slip of the pen.
const MOST_VALUES: usize = 1_000_000;

/// Ends the labels of a line that gives start timestamps.
const START_TIMESTAMPS: &str = "@st";

/// Reads the block of a `load` whose first line was taken.
pub(super) fn parse(lines: &mut Lines<'_>, first: Line<'_>) -> Result<Load, ScriptError> {
    let ([word, gap], rest) = first.words::<2>();
    let with_histograms = match word {
        "load" => false,
        "load_with_nhcb" => true,
        _ => return Err(usage(first)),
    };
    if gap.is_empty() || !rest.is_empty() {
        return Err(usage(first));
    }
    let gap = first.millis(gap)?;
    let mut load = Load::default();
    // A line of start timestamps, the labels it is for and how many values it has.
    let mut pending: Option<(Line<'_>, Labels, usize)> = None;
    for line in block(lines) {
        if let Some((labels, count)) = start_timestamps(line)? {
            if let Some((earlier, ..)) = pending.replace((line, labels, count)) {
                return Err(earlier.error("@st line has no following sample line"));
            }
            continue;
        }
        let (labels, description) = series(line, line.text)?;
        let count = description.values().take(MOST_VALUES + 1).count();
        if count > MOST_VALUES {
            return Err(line.error(format!("more than {MOST_VALUES} values")));
        }
        let starts = pending.take();
        if let Some((earlier, for_labels, starts)) = &starts {
            if *for_labels != labels {
                return Err(earlier.error("@st is for another series than the following line"));
            }
            if *starts != count {
                return Err(
                    earlier.error(format!("@st has {starts} values, the following line {count}"))
                );
            }
        }
        let mut loaded = loaded(&description, gap);
        loaded.has_start_timestamps = starts.is_some();
        load.series.insert(labels, loaded);
    }
    if let Some((line, ..)) = pending {
        return Err(line.error("@st line has no following sample line"));
    }
    if with_histograms {
        load.add_converted();
    }
    Ok(load)
}

fn usage(line: Line<'_>) -> ScriptError {
    line.error("invalid load command, it is `load[_with_nhcb] <step>`")
}

/// Reads a series in the notation of scripts.
pub(super) fn series(
    line: Line<'_>,
    text: &str,
) -> Result<(Labels, SeriesDescription), ScriptError> {
    let description = parse_series(text, &Options::with_all_features())
        .map_err(|error| line.error(error.to_string()))?;
    let labels = Labels::new(&description.labels).map_err(|error| line.error(error.to_string()))?;
    Ok((labels, description))
}

fn loaded(description: &SeriesDescription, gap: i64) -> LoadedSeries {
    let mut loaded = LoadedSeries::default();
    let mut t = 0;
    for value in description.values() {
        match value {
            SeriesValue::Missing => {}
            SeriesValue::Float(value) => loaded.samples.push(t, value),
            SeriesValue::Histogram { .. } => loaded.histograms.push(t),
        }
        t += gap;
    }
    loaded
}

impl Load {
    /// Names the native histograms that Prometheus makes of classic ones.
    fn add_converted(&mut self) {
        let parts = self.series.iter();
        let converted: Vec<(Labels, Vec<i64>)> = parts
            .filter_map(|(labels, part)| {
                Some((base_of_histogram(labels)?, part.samples.ts.clone()))
            })
            .collect();
        for (labels, times) in converted {
            self.series.entry(labels).or_default().histograms.extend(times);
        }
    }
}

/// The labels of the whole histogram that a series is a part of.
fn base_of_histogram(labels: &Labels) -> Option<Labels> {
    let name = labels.metric();
    let base = match name.strip_suffix("_bucket") {
        Some(base) => {
            let bound: f64 = labels.value("le").parse().ok()?;
            (!bound.is_nan()).then_some(base)?
        }
        None => name.strip_suffix("_sum").or_else(|| name.strip_suffix("_count"))?,
    };
    Some(labels.with(METRIC_NAME, base).with("le", ""))
}

/// The labels of a line of start timestamps and how many values it has, if it is one.
fn start_timestamps(line: Line<'_>) -> Result<Option<(Labels, usize)>, ScriptError> {
    let ([labels], values) = line.words::<1>();
    let Some(labels) = labels.strip_suffix(START_TIMESTAMPS) else { return Ok(None) };
    if values.is_empty() {
        // Without values it reads as a series, and is none.
        return Ok(None);
    }
    let (labels, _) = series(line, &format!("{labels} _"))?;
    let counts = values.split_whitespace().map(|item| {
        start_item(item).ok_or_else(|| line.error(format!("invalid @st item {item:?}")))
    });
    Ok(Some((labels, counts.sum::<Result<usize, _>>()?)))
}

/// How many values an item of start timestamps stands for: `_`, `_x3`, `-1m`, `-1mx3`, `-1m+5sx3`.
fn start_item(item: &str) -> Option<usize> {
    if let Some(rest) = item.strip_prefix('_') {
        return match rest {
            "" => Some(1),
            _ => rest.strip_prefix('x')?.parse().ok().filter(|count| *count > 0),
        };
    }
    let (duration, times) = match item.split_once('x') {
        Some((duration, times)) => (duration, Some(times.parse::<usize>().ok()?)),
        None => (item, None),
    };
    let duration = duration.strip_prefix(['-', '+']).unwrap_or(duration);
    let parsed = |text: &str| tributary_promql::duration::PromDuration::parse(text).ok();
    match duration.split_once(['-', '+']) {
        Some((first, change)) => {
            parsed(first)?;
            parsed(change)?;
            times?.checked_add(1)
        }
        None => {
            parsed(duration)?;
            times.unwrap_or(0).checked_add(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::{Command, Script};

    fn load(text: &str) -> Result<Load, ScriptError> {
        match Script::parse(text)?.commands.swap_remove(0) {
            Command::Load(load) => Ok(load),
            other => panic!("{other:?}"),
        }
    }

    fn flags(load: &Load) -> Vec<(String, bool, bool)> {
        let flags = |(labels, series): (&Labels, &LoadedSeries)| {
            (labels.to_string(), !series.histograms.is_empty(), series.has_start_timestamps)
        };
        load.series.iter().map(flags).collect()
    }

    #[test]
    fn samples_stand_at_even_times_and_gaps_stay_gaps() {
        let load = load("load 30s\n  m{a=\"b\"} 5 _x2 2+3x1 stale\n").unwrap();
        let series = load.series.values().next().unwrap();
        assert_eq!(series.samples.ts, [0, 90_000, 120_000, 150_000]);
        assert_eq!(series.samples.values[..3], [5.0, 2.0, 5.0]);
        assert_eq!(series.samples.values[3].to_bits(), tributary_promql::STALE_BITS);
    }

    #[test]
    fn of_two_lines_for_a_series_the_later_one_counts() {
        let load = load("load 1m\n m 1 2 3\n m 4\n").unwrap();
        assert_eq!(load.series.values().next().unwrap().samples.values, [4.0]);
    }

    #[test]
    fn histograms_and_start_timestamps_are_noticed() {
        let load = load(
            "load 1m\n a@st _ -30s-1mx2 -1s _x2 0x1\n a _ 0+1x2 5 _x2 7x1\n b 1 {{sum:1}}\n c 1\n",
        )
        .unwrap();
        let expected =
            [("a".into(), false, true), ("b".into(), true, false), ("c".into(), false, false)];
        assert_eq!(flags(&load), expected);
    }

    #[test]
    fn start_timestamps_must_fit_the_next_line() {
        for (text, line, message) in [
            ("load 1m\n a@st -1m\n", 2, "no following"),
            ("load 1m\n a@st -1m\n a@st -1m\n a 1\n", 2, "no following"),
            ("load 1m\n a@st -1m\n b 1\n", 2, "another series"),
            ("load 1m\n a@st -1mx2\n a 1\n", 2, "3 values"),
            ("load 1m\n a@st -1m-\n a 1\n", 2, "invalid @st item"),
            ("load 1m\n a@st _x0\n a 1\n", 2, "invalid @st item"),
            ("load 1m\n a@st -1m-1m\n a 1\n", 2, "invalid @st item"),
        ] {
            let error = load(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.message.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn classic_histograms_name_the_native_one_made_of_them() {
        let text = "load_with_nhcb 1m\n h_bucket{le=\"1\",a=\"b\"} 1\n h_bucket{le=\"x\",a=\"c\"} 1\n h_sum{a=\"d\"} 1\n other 1\n";
        let load = load(text).unwrap();
        let histograms: Vec<String> =
            flags(&load).into_iter().filter(|(_, histogram, _)| *histogram).map(|f| f.0).collect();
        assert_eq!(histograms, [r#"h{a="b"}"#, r#"h{a="d"}"#]);
    }

    #[test]
    fn a_repetition_beyond_all_measure_is_refused() {
        let error = load("load 1m\n a 0x18446744073709551614\n").unwrap_err();
        assert!(error.message.contains("more than 1000000 values"), "{error}");
    }
}
