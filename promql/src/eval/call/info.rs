//! `info`: adds the labels of info series, such as `target_info`, to series of the same target. Which
//! info series there are, and the times of their samples, is for the caller to find out.

use std::collections::{BTreeMap, BTreeSet};

use super::settled;
use crate::eval::{Context, EvalError};
use crate::features::Limits;
use crate::frame::{Frame, Row, nothing};
use crate::labels::Labels;
use crate::limits::Tally;
use crate::matcher::{CompiledMatcher, Condition, METRIC_NAME, Matcher};
use crate::pattern::Pattern;
use crate::window::is_absent;

/// The labels that tell targets apart.
const IDENTIFYING: [&str; 2] = ["instance", "job"];

/// The info series of a target, if nothing else is asked for.
const TARGET_INFO: &str = "target_info";

/// The matchers of the info series that a call is about, given the matchers of its second argument.
pub(crate) fn info_matchers(selector: Option<&[Matcher]>) -> Vec<Matcher> {
    let selector = selector.unwrap_or_default();
    let mut matchers = name_matchers(selector);
    matchers.extend(selector.iter().filter(|matcher| matcher.name != METRIC_NAME).cloned());
    matchers
}

/// The matchers on the names of info series. Where names are only excluded, any other info metric
/// is meant.
fn name_matchers(selector: &[Matcher]) -> Vec<Matcher> {
    let mut names: Vec<Matcher> =
        selector.iter().filter(|matcher| matcher.name == METRIC_NAME).cloned().collect();
    let includes = |matcher: &Matcher| {
        matches!(matcher.condition, Condition::Equal(_) | Condition::Matches(_))
    };
    if names.is_empty() {
        names.push(Matcher::named(TARGET_INFO));
    } else if !names.iter().any(includes) {
        let pattern = Pattern::parse(".+_info", Limits::default().max_pattern_size)
            .expect("the pattern is a fixed one");
        let condition = Condition::Matches(pattern);
        names.insert(0, Matcher { name: METRIC_NAME.to_owned(), condition });
    }
    names
}

/// Adds the labels of info series to the series of `base`.
///
/// `info_times` has, for each series that [`info_matchers`] select, the times in seconds of the
/// samples that count at each step: where several series describe one target, the newest sample
/// wins. `selector` has the matchers of the second argument; only the labels it names are added, and
/// series are left out for which it finds nothing.
pub(crate) fn info(
    base: Frame,
    info_times: &Frame,
    selector: Option<&[Matcher]>,
    ctx: &mut Context,
) -> Result<Frame, EvalError> {
    let selector = selector.unwrap_or_default();
    let names = compiled(&name_matchers(selector))?;
    let data: Vec<Matcher> =
        selector.iter().filter(|matcher| matcher.name != METRIC_NAME).cloned().collect();
    let is_info = |row: &Row| names.iter().all(|matcher| matcher.matches(row.labels.metric()));
    let (same, enriched): (Vec<Row>, Vec<Row>) = base.rows.into_iter().partition(is_info);
    let infos = Infos::of_targets(&enriched, info_times, ctx.steps.count)?;
    let mut rows = same;
    let mut tally = ctx.limits.tally();
    for row in enriched {
        infos.enrich(row, &data, &mut rows, &mut tally)?;
    }
    settled(rows, ctx)
}

fn compiled(matchers: &[Matcher]) -> Result<Vec<CompiledMatcher>, EvalError> {
    let compiled = matchers.iter().map(Matcher::compile).collect::<Result<_, _>>();
    compiled.map_err(|error| EvalError::invalid(error.to_string()))
}

/// For every info metric and target, which info series counts at each step.
struct Infos<'a> {
    series: Vec<&'a Row>,
    /// By the metric's name, then by the labels that tell targets apart: a row of `newest`.
    places: BTreeMap<&'a str, BTreeMap<Labels, usize>>,
    newest: Vec<Vec<Option<usize>>>,
}

impl<'a> Infos<'a> {
    /// Finds the info series of the targets of `base`, at every step those of the series that are
    /// there: what a step is worth never depends on other steps.
    fn of_targets(base: &[Row], info_times: &'a Frame, steps: usize) -> Result<Self, EvalError> {
        let series: Vec<&Row> = info_times.rows.iter().collect();
        let mut infos = Self { series, places: BTreeMap::new(), newest: Vec::new() };
        let places: Vec<usize> =
            info_times.rows.iter().map(|row| infos.place_of(row, steps)).collect();
        let mut wanted = Vec::new();
        for step in 0..steps {
            let there = |row: &Row, step: usize| !is_absent(row.values[step]);
            let changed = |row: &Row| step == 0 || there(row, step) != there(row, step - 1);
            if base.iter().any(changed) {
                wanted = infos.of_series(base.iter().filter(|row| there(row, step)));
            }
            for index in &wanted {
                infos.take(*index, places[*index], step)?;
            }
        }
        Ok(infos)
    }

    fn place_of(&mut self, row: &'a Row, steps: usize) -> usize {
        let targets = self.places.entry(row.labels.metric()).or_default();
        let newest = &mut self.newest;
        *targets.entry(row.labels.only(&IDENTIFYING)).or_insert_with(|| {
            newest.push(vec![None; steps]);
            newest.len() - 1
        })
    }

    /// The info series that some series ask for: those whose identifying labels have values that
    /// occur, each for itself. One that does not occur at all may have any value.
    fn of_series<'b>(&self, base: impl Iterator<Item = &'b Row> + Clone) -> Vec<usize> {
        let targets = IDENTIFYING.map(|name| {
            let values = base.clone().filter_map(move |row| row.labels.get(name));
            (name, values.collect::<BTreeSet<&str>>())
        });
        if targets.iter().all(|(_, values)| values.is_empty()) {
            return Vec::new();
        }
        let wanted = |row: &Row| {
            targets
                .iter()
                .all(|(name, values)| values.is_empty() || values.contains(row.labels.value(name)))
        };
        (0..self.series.len()).filter(|index| wanted(self.series[*index])).collect()
    }

    /// Takes in the sample of an info series at a step. Two of the same time for one target are an
    /// error.
    fn take(&mut self, index: usize, place: usize, step: usize) -> Result<(), EvalError> {
        let row = self.series[index];
        let time = row.values[step];
        if is_absent(time) {
            return Ok(());
        }
        let held = &mut self.newest[place][step];
        match held.map(|held| self.series[held]) {
            Some(existing) if existing.values[step] > time => {}
            Some(existing) if existing.values[step] == time => {
                let millis = (time * 1000.0).round();
                return Err(EvalError::invalid(format!(
                    "found duplicate series for info metric: existing {} @ {millis}, new {} @ {millis}",
                    existing.labels.braced(),
                    row.labels.braced(),
                )));
            }
            _ => *held = Some(index),
        }
        Ok(())
    }

    /// Cuts a series into one for each set of info series that it meets over time, with their
    /// labels added.
    fn enrich(
        &self,
        row: Row,
        data: &[Matcher],
        out: &mut Vec<Row>,
        tally: &mut Tally,
    ) -> Result<(), EvalError> {
        let target = row.labels.only(&IDENTIFYING);
        let places = self.places.values().filter_map(|targets| targets.get(&target));
        let metrics: Vec<&[Option<usize>]> =
            places.map(|place| self.newest[*place].as_slice()).collect();
        // Without an info series a label that is asked for is empty.
        let may_lack_info = data.iter().all(Matcher::matches_empty);
        let mut parts: BTreeMap<Vec<usize>, Vec<f64>> = BTreeMap::new();
        let mut met = Vec::with_capacity(metrics.len());
        for (step, value) in row.values.iter().enumerate().filter(|(_, value)| !is_absent(**value))
        {
            met.clear();
            met.extend(metrics.iter().filter_map(|newest| newest[step]));
            if met.is_empty() && !may_lack_info {
                continue;
            }
            match parts.get_mut(&met) {
                Some(values) => values[step] = *value,
                None => {
                    tally.values(row.values.len())?;
                    let mut values = nothing(row.values.len());
                    values[step] = *value;
                    parts.insert(met.clone(), values);
                }
            }
        }
        for (met, values) in parts {
            let labels = self.with_labels_of(&met, &row.labels, data)?;
            tally.labels(labels.size_bytes())?;
            out.push(Row { labels, drop_name: row.drop_name, values });
        }
        Ok(())
    }

    fn with_labels_of(
        &self,
        met: &[usize],
        base: &Labels,
        data: &[Matcher],
    ) -> Result<Labels, EvalError> {
        let mut added: BTreeMap<&str, &str> = BTreeMap::new();
        for info in met.iter().map(|index| self.series[*index]) {
            for (name, value) in info.labels.without_metric() {
                let asked = data.is_empty() || data.iter().any(|matcher| matcher.name == name);
                if !asked || base.get(name).is_some() {
                    continue;
                }
                if added.insert(name, value).is_some_and(|other| other != value) {
                    return Err(EvalError::invalid(format!("conflicting label: {name}")));
                }
            }
        }
        let all = base.iter().chain(added);
        Ok(Labels::new(all).expect("labels are added only where the base has none"))
    }
}
