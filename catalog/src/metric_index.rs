//! Which metric lists hold a metric. Segments share lists, so the index is over lists, and a new
//! segment with a known list costs nothing here. Exact: no list is named that lacks the metric.

use std::collections::HashMap;
use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::metric_names::MetricNames;

/// Lists that no segment uses any more are swept out when there are more of them than this and
/// than the used ones.
const UNUSED_MAX: usize = 64;

/// Metric names and the numbers of the lists that hold them.
#[derive(Clone, Default)]
pub(crate) struct MetricIndex {
    numbers: HashMap<Arc<str>, u32>,
    next_number: u32,
    sets: HashMap<Arc<str>, RoaringBitmap>,
}

impl MetricIndex {
    /// The number of a list that is known by this digest.
    pub(crate) fn number_of(&self, digest: &str) -> Option<u32> {
        self.numbers.get(digest).copied()
    }

    /// Takes a new list in and returns its number.
    pub(crate) fn add(&mut self, digest: &str, names: &MetricNames) -> u32 {
        let number = self.next_number;
        self.next_number += 1;
        self.numbers.insert(digest.into(), number);
        for name in names.iter() {
            match self.sets.get_mut(name) {
                Some(sets) => _ = sets.insert(number),
                None => _ = self.sets.insert(name.into(), RoaringBitmap::from([number])),
            }
        }
        number
    }

    /// The lists with this metric.
    pub(crate) fn sets_with(&self, name: &str) -> RoaringBitmap {
        self.sets.get(name).cloned().unwrap_or_default()
    }

    /// The lists with a metric whose name passes.
    pub(crate) fn sets_passing(&self, test: impl Fn(&str) -> bool) -> RoaringBitmap {
        let mut all = RoaringBitmap::new();
        for (_, sets) in self.sets.iter().filter(|(name, _)| test(name)) {
            all |= sets;
        }
        all
    }

    /// The metrics of any of these lists, in order.
    pub(crate) fn names_in(&self, sets: impl Iterator<Item = u32>) -> Vec<Arc<str>> {
        let wanted: RoaringBitmap = sets.collect();
        let held = self.sets.iter().filter(|(_, sets)| !sets.is_disjoint(&wanted));
        let mut names: Vec<Arc<str>> = held.map(|(name, _)| name.clone()).collect();
        names.sort_unstable();
        names
    }

    /// The index without the lists that are not among the used ones, and the new numbers by the old
    /// ones; nothing if there is too little to sweep.
    pub(crate) fn without_unused(
        &self,
        used: impl Iterator<Item = u32>,
    ) -> Option<(Self, HashMap<u32, u32>)> {
        let used: RoaringBitmap = used.collect();
        let used_count = usize::try_from(used.len()).unwrap_or(usize::MAX);
        let unused_count = self.numbers.len().saturating_sub(used_count);
        if unused_count <= UNUSED_MAX.max(used_count) {
            return None;
        }
        let renumbered: HashMap<u32, u32> = used.iter().zip(0..).collect();
        let mut smaller = Self { next_number: used.len().try_into().ok()?, ..Self::default() };
        for (digest, number) in &self.numbers {
            if let Some(&number) = renumbered.get(number) {
                smaller.numbers.insert(digest.clone(), number);
            }
        }
        for (name, sets) in &self.sets {
            let kept: RoaringBitmap = (sets & &used).iter().map(|set| renumbered[&set]).collect();
            if !kept.is_empty() {
                smaller.sets.insert(name.clone(), kept);
            }
        }
        Some((smaller, renumbered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> MetricNames {
        MetricNames::new(of).unwrap()
    }

    #[test]
    fn metrics_lead_to_the_lists_that_hold_them() {
        let mut index = MetricIndex::default();
        let first = index.add("d1", &names(&["cpu", "up"]));
        let second = index.add("d2", &names(&["mem", "up"]));
        assert_eq!(index.number_of("d2"), Some(second));
        assert_eq!(index.number_of("d3"), None);
        assert_eq!(index.sets_with("up"), RoaringBitmap::from([first, second]));
        assert_eq!(index.sets_with("mem"), RoaringBitmap::from([second]));
        assert!(index.sets_with("u").is_empty());
        assert_eq!(index.sets_passing(|name| name.ends_with('u')), RoaringBitmap::from([first]));
        let held = index.names_in([second].into_iter());
        assert_eq!(held.iter().map(|name| &**name).collect::<Vec<_>>(), ["mem", "up"]);
    }

    #[test]
    fn unused_lists_are_swept_out_when_they_are_the_most() {
        let mut index = MetricIndex::default();
        for number in 0..100_u32 {
            let own = format!("m{number:02}");
            index.add(&format!("d{number}"), &names(&["up", &own]));
        }
        assert!(index.without_unused(0..50).is_none());
        let (smaller, renumbered) = index.without_unused([7, 93].into_iter()).unwrap();
        assert_eq!((renumbered[&7], renumbered[&93]), (0, 1));
        assert_eq!((smaller.number_of("d7"), smaller.number_of("d93")), (Some(0), Some(1)));
        assert_eq!(smaller.number_of("d8"), None);
        assert_eq!(smaller.sets_with("up"), RoaringBitmap::from([0, 1]));
        assert_eq!(smaller.sets_with("m93"), RoaringBitmap::from([1]));
        assert!(smaller.sets_with("m08").is_empty());
        let mut smaller = smaller;
        assert_eq!(smaller.add("new", &names(&["up"])), 2);
    }
}
