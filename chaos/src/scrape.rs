//! Reads what processes say of themselves: `/metrics` and `/monitor`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use reqwest::Client;
use serde_json::Value;

/// A process that is well answers this soon.
const PATIENCE: Duration = Duration::from_secs(5);

/// All samples of a page of metrics, by name and labels as they stand there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    /// Reads a page; none where the process does not answer.
    pub async fn of(client: &Client, address: SocketAddr) -> Option<Self> {
        let request = client.get(format!("http://{address}/metrics")).timeout(PATIENCE);
        let text = request.send().await.ok()?.error_for_status().ok()?.text().await.ok()?;
        Some(Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let samples = lines.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self(samples.collect())
    }

    /// One value, by its whole name with labels.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Everything whose name begins like this.
    pub fn beginning<'a>(&'a self, start: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0
            .iter()
            .filter(move |(name, _)| name.starts_with(start))
            .map(|(n, v)| (n.as_str(), *v))
    }

    /// The buckets of a histogram, cumulative, by their upper bounds.
    pub fn buckets(&self, name: &str) -> Vec<(f64, f64)> {
        let mut buckets: Vec<(f64, f64)> = self
            .beginning(&format!("{name}_bucket{{"))
            .filter_map(|(sample, count)| {
                let bound = sample.split_once("le=\"")?.1.split('"').next()?;
                let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().ok()? };
                Some((bound, count))
            })
            .collect();
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        buckets
    }
}

/// What a process says in JSON at a path; none where it does not answer.
pub async fn said(client: &Client, address: SocketAddr, path: &str) -> Option<Value> {
    let request = client.get(format!("http://{address}{path}")).timeout(PATIENCE);
    let text = request.send().await.ok()?.error_for_status().ok()?.text().await.ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_buckets_are_found_by_name() {
        let text =
            "# HELP a b\na 3\nb{x=\"1\"} 2.5\nh_bucket{le=\"+Inf\"} 9\nh_bucket{le=\"0.5\"} 4\n";
        let metrics = Metrics::parse(text);
        assert_eq!(metrics.get("a"), Some(3.0));
        assert_eq!(metrics.get("b{x=\"1\"}"), Some(2.5));
        assert_eq!(metrics.get("c"), None);
        assert_eq!(metrics.buckets("h"), [(0.5, 4.0), (f64::INFINITY, 9.0)]);
    }
}
