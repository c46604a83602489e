//! What the text says of metric families: kind, help, unit.

use std::collections::BTreeMap;

use crate::schema::{Family, Kind};

/// All families that were announced, by name. A later line replaces an earlier one.
#[derive(Debug, Default)]
pub(super) struct Families {
    by_name: BTreeMap<String, Family>,
}

impl Families {
    pub(super) fn set_kind(&mut self, name: &str, kind: Kind) {
        self.entry(name).kind = kind;
    }

    pub(super) fn set_help(&mut self, name: &str, help: String) {
        self.entry(name).help = help;
    }

    pub(super) fn set_unit(&mut self, name: &str, unit: &str) {
        unit.clone_into(&mut self.entry(name).unit);
    }

    fn entry(&mut self, name: &str) -> &mut Family {
        self.by_name
            .entry(name.to_owned())
            .or_insert_with(|| Family { name: name.to_owned(), ..Family::default() })
    }

    /// The family that a metric belongs to: the one of its name, or one whose kind has a metric
    /// with such an ending. A family without a name where nothing was said.
    pub(super) fn of_metric(&self, metric: &str) -> Family {
        if let Some(family) = self.by_name.get(metric) {
            return family.clone();
        }
        let stem = metric.rsplit_once('_').and_then(|(stem, ending)| {
            self.by_name.get(stem).filter(|family| endings(family.kind).contains(&ending))
        });
        stem.cloned().unwrap_or_default()
    }
}

/// What OpenMetrics and Prometheus append to the name of a family of this kind.
fn endings(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Counter => &["total", "created"],
        Kind::Histogram => &["bucket", "sum", "count", "created"],
        Kind::GaugeHistogram => &["bucket", "gsum", "gcount"],
        Kind::Summary => &["sum", "count", "created"],
        Kind::Info => &["info"],
        Kind::Gauge | Kind::StateSet | Kind::Unknown => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_belongs_to_the_family_whose_kind_has_its_ending() {
        let mut families = Families::default();
        families.set_kind("http_requests", Kind::Counter);
        families.set_help("http_requests", "Requests.".to_owned());
        families.set_kind("latency_seconds", Kind::Histogram);
        families.set_unit("latency_seconds", "seconds");
        families.set_kind("latency_seconds_count", Kind::Gauge);
        assert_eq!(families.of_metric("http_requests_total").help, "Requests.");
        assert_eq!(families.of_metric("latency_seconds_bucket").unit, "seconds");
        assert_eq!(families.of_metric("latency_seconds_count").kind, Kind::Gauge);
        assert_eq!(families.of_metric("http_requests_bucket"), Family::default());
        assert_eq!(families.of_metric("up"), Family::default());
    }
}
