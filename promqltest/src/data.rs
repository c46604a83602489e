//! The samples a script has loaded so far. Which of them a query needs is the engine's business.

use std::collections::BTreeMap;

use tributary_promql::Labels;

/// Series by their labels.
pub type Series = BTreeMap<Labels, Samples>;

/// The samples of one series.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Times in milliseconds, rising.
    pub ts: Vec<i64>,
    /// As many values; staleness marks have their bits.
    pub values: Vec<f64>,
}

/// Everything that was loaded since the last `clear`.
#[derive(Clone, Debug, Default)]
pub struct DataSet {
    loads: Vec<Series>,
    series: Series,
    cut_times: Option<Vec<i64>>,
}

impl Samples {
    /// The samples with their times.
    pub fn iter(&self) -> impl Iterator<Item = (i64, f64)> {
        self.ts.iter().copied().zip(self.values.iter().copied())
    }

    /// Adds a sample that is later than all others.
    pub fn push(&mut self, t: i64, value: f64) {
        self.ts.push(t);
        self.values.push(value);
    }

    /// The samples in `[from, to)`.
    pub fn between(&self, from: i64, to: i64) -> Self {
        let first = self.ts.partition_point(|t| *t < from);
        let end = self.ts.partition_point(|t| *t < to).max(first);
        Self { ts: self.ts[first..end].to_vec(), values: self.values[first..end].to_vec() }
    }

    /// These samples and newer ones, which win where both have the same time.
    fn overlaid(&self, newer: &Self) -> Self {
        let mut all: BTreeMap<i64, f64> = self.iter().collect();
        all.extend(newer.iter());
        Self { ts: all.keys().copied().collect(), values: all.into_values().collect() }
    }
}

impl DataSet {
    /// Adds what a `load` brings. Series without samples are left out.
    pub fn load(&mut self, mut load: Series) {
        load.retain(|_, samples| !samples.ts.is_empty());
        for (labels, samples) in &load {
            match self.series.get_mut(labels) {
                Some(held) => *held = held.overlaid(samples),
                None => {
                    self.series.insert(labels.clone(), samples.clone());
                }
            }
        }
        self.loads.push(load);
    }

    /// Every series with all its samples.
    pub const fn series(&self) -> &Series {
        &self.series
    }

    /// What each `load` brought, the oldest first. They may overlap, as segments may; for equal
    /// times the later one counts.
    pub fn loads(&self) -> &[Series] {
        &self.loads
    }

    /// The times at which the script wants the data to be cut, rising, if it cares.
    pub fn cut_times(&self) -> Option<&[i64]> {
        self.cut_times.as_deref()
    }

    /// Says at which times the data is to be cut.
    pub fn cut_at(&mut self, mut times: Vec<i64>) {
        times.sort_unstable();
        times.dedup();
        self.cut_times = Some(times);
    }

    /// The samples in `[from, to)` of the series that are wanted, load by load.
    pub fn part(&self, from: i64, to: i64, wanted: impl Fn(&Labels) -> bool) -> Self {
        let mut part = Self::default();
        for load in &self.loads {
            let series = load.iter().filter(|(labels, _)| wanted(labels));
            part.load(
                series
                    .map(|(labels, samples)| (labels.clone(), samples.between(from, to)))
                    .collect(),
            );
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(samples: &[(i64, f64)]) -> Series {
        let (ts, values) = samples.iter().copied().unzip();
        let labels = Labels::new([("__name__", "m")]).unwrap();
        Series::from([(labels, Samples { ts, values })])
    }

    fn only(data: &DataSet) -> Vec<(i64, f64)> {
        data.series().values().next().unwrap().iter().collect()
    }

    #[test]
    fn a_later_load_may_be_older_and_wins_where_both_have_a_sample() {
        let mut data = DataSet::default();
        data.load(load(&[(10, 1.0), (20, 2.0)]));
        data.load(load(&[(0, 5.0), (20, 7.0)]));
        assert_eq!(only(&data), [(0, 5.0), (10, 1.0), (20, 7.0)]);
        assert_eq!(data.loads().len(), 2);
        let part = data.part(5, 21, |_| true);
        assert_eq!(only(&part), [(10, 1.0), (20, 7.0)]);
        assert_eq!(part.loads().len(), 2, "a part keeps apart what was loaded apart");
        assert!(data.part(0, 20, |_| false).series().is_empty());
    }
}
