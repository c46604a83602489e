//! Engines that are asked over HTTP: a cluster of real processes, and beside it the one in this process
//! to which its answers are held.

use std::time::{Duration, Instant};

use reqwest::Client;
use reqwest::header::CONTENT_TYPE;
use tokio::runtime::Runtime;
use tributary_promql::Answer;
use tributary_promql::duration::PromDuration;
use tributary_promqltest::{DataSet, Engine, LocalEngine, Query, Time};

use super::{reply, shelf};
use crate::cli::{self, Problem};

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How long workers and node may take to find each other.
const START: Duration = Duration::from_secs(30);

/// A cluster, asked over HTTP.
pub(super) struct ClusterEngine {
    url: String,
    client: Client,
    runtime: Runtime,
}

impl ClusterEngine {
    /// Asks at this address.
    pub(super) fn new(url: &str) -> Result<Self, Problem> {
        let client = Client::builder().timeout(PATIENCE).build().map_err(Problem::failed)?;
        Ok(Self { url: url.to_owned(), client, runtime: cli::runtime()? })
    }

    /// Waits until the node has found so many workers.
    pub(super) fn wait_for_workers(&self, workers: u16) -> Result<(), Problem> {
        let begun = Instant::now();
        loop {
            let there = self.runtime.block_on(self.workers()).unwrap_or(0);
            if there >= u64::from(workers) {
                return Ok(());
            }
            if begun.elapsed() > START {
                let what = format!("{there} of {workers} workers");
                return Err(Problem::NotReady {
                    what,
                    status: "the others are missing".to_owned(),
                });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    async fn workers(&self) -> Option<u64> {
        let response = self.client.get(format!("{}/monitor/queue", self.url)).send().await.ok()?;
        let queue: serde_json::Value =
            serde_json::from_slice(&response.bytes().await.ok()?).ok()?;
        queue.get("workers")?.as_u64()
    }

    async fn ask(&self, tenant: &str, query: &Query) -> Result<Answer, String> {
        let (path, at, times) = match query.time {
            Time::Instant { at } => ("query", at, vec![("time", seconds(at))]),
            Time::Range { start, end, step } => {
                let times =
                    vec![("start", seconds(start)), ("end", seconds(end)), ("step", seconds(step))];
                ("query_range", start, times)
            }
        };
        let lookback = PromDuration::from_millis(query.settings.lookback_ms).to_string();
        let form = form(
            times
                .iter()
                .map(|(name, value)| (*name, value.as_str()))
                .chain([("query", query.text.as_str()), ("lookback_delta", &lookback)]),
        );
        let request = self
            .client
            .post(format!("{}/api/v1/{path}", self.url))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("X-Scope-OrgID", tenant)
            .body(form);
        let told = |error: reqwest::Error| format!("the cluster can't be asked: {error:?}");
        let json = request.send().await.map_err(told)?.bytes().await.map_err(told)?;
        reply::read(&json, at)
    }
}

impl Engine for ClusterEngine {
    fn answer(&self, data: &DataSet, query: &Query) -> Result<Answer, String> {
        let tenant = shelf::tenant(data).map_err(|problem| problem.to_string())?;
        self.runtime.block_on(self.ask(tenant.as_str(), query))
    }
}

/// The engine in this process, whose answers are made as if they had come over HTTP.
pub(super) struct Model;

impl Engine for Model {
    fn answer(&self, data: &DataSet, query: &Query) -> Result<Answer, String> {
        let answer = LocalEngine::default().answer(data, query)?;
        Ok(reply::in_json(answer, &query.text))
    }
}

/// Pairs as the body of a form.
fn form<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut url = reqwest::Url::parse("http://form/").expect("it is an address");
    url.query_pairs_mut().extend_pairs(pairs);
    url.query().unwrap_or_default().to_owned()
}

/// Milliseconds as seconds, exactly.
fn seconds(millis: i64) -> String {
    let (sign, size) = (if millis < 0 { "-" } else { "" }, millis.unsigned_abs());
    format!("{sign}{}.{:03}", size / 1_000, size % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_and_forms_are_encoded() {
        for (millis, text) in
            [(0, "0.000"), (61_001, "61.001"), (-1, "-0.001"), (-90_000, "-90.000")]
        {
            assert_eq!(seconds(millis), text);
        }
        let text = form([("query", "a{b=\"é&+\"}"), ("time", "1")].into_iter());
        assert_eq!(text, "query=a%7Bb%3D%22%C3%A9%26%2B%22%7D&time=1");
    }
}
