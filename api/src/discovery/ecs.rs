//! Workers among the tasks of an ECS service, asked for again and again: ECS does not call when
//! something changes. Tasks need a network interface of their own (`awsvpc`), for that is where their
//! address comes from.

use std::collections::BTreeSet;
use std::time::Duration;

use aws_config::BehaviorVersion;
use aws_sdk_ecs::Client;
use aws_sdk_ecs::error::DisplayErrorContext;
use aws_sdk_ecs::types::{DesiredStatus, Task};
use core_workcoord::id::Endpoint;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::warn;

use super::{ENDPOINTS_MAX, Pace, Source, SourceError, endpoint};

/// How many tasks ECS describes in one answer.
const DESCRIBED_AT_ONCE: usize = 100;

/// The running tasks of one service.
#[derive(Debug)]
pub struct TaskSource {
    cluster: String,
    service: String,
    port: u16,
    client: Option<Client>,
    interval: Duration,
    answer_timeout: Duration,
    /// When to ask next; nothing for at once.
    due: Option<Instant>,
}

impl TaskSource {
    /// The tasks of a service, asked for with the credentials and in the region that the environment
    /// gives.
    pub fn new(cluster: &str, service: &str, port: u16, pace: &Pace) -> Self {
        Self {
            cluster: cluster.to_owned(),
            service: service.to_owned(),
            port,
            client: None,
            interval: pace.ecs_interval,
            answer_timeout: pace.answer_timeout,
            due: None,
        }
    }

    /// The same, asked for by a client that is at hand.
    pub fn with_client(self, client: Client) -> Self {
        Self { client: Some(client), ..self }
    }

    async fn look(&mut self) -> Result<BTreeSet<Endpoint>, SourceError> {
        if self.client.is_none() {
            let config = aws_config::load_defaults(BehaviorVersion::latest()).await;
            self.client = Some(Client::new(&config));
        }
        let client = self.client.as_ref().expect("it was just made");
        let tasks = self.tasks(client).await?;
        let mut found = BTreeSet::new();
        for some in tasks.chunks(DESCRIBED_AT_ONCE) {
            let asked = client.describe_tasks().cluster(&self.cluster);
            let answer = asked.set_tasks(Some(some.to_vec())).send().await.map_err(remote)?;
            // Tasks that ended since they were listed are told as failures: they are gone.
            for task in answer.tasks().iter().filter(|task| is_running(task)) {
                match address_of(task) {
                    Some(address) => {
                        found.insert(endpoint(&format!("{address}:{}", self.port))?);
                    }
                    None => {
                        let task = task.task_arn().unwrap_or_default();
                        warn!(task, "task without a network interface of its own is left out");
                    }
                }
            }
        }
        Ok(found)
    }

    /// The names of all tasks that should run.
    async fn tasks(&self, client: &Client) -> Result<Vec<String>, SourceError> {
        let mut pages = client
            .list_tasks()
            .cluster(&self.cluster)
            .service_name(&self.service)
            .desired_status(DesiredStatus::Running)
            .into_paginator()
            .send();
        let mut tasks = Vec::new();
        while let Some(page) = pages.next().await {
            tasks.extend_from_slice(page.map_err(remote)?.task_arns());
            if tasks.len() > ENDPOINTS_MAX {
                return Err(SourceError::TooMany { count: tasks.len() });
            }
        }
        Ok(tasks)
    }
}

impl Source for TaskSource {
    async fn next(&mut self) -> Result<BTreeSet<Endpoint>, SourceError> {
        if let Some(due) = self.due.take() {
            sleep_until(due).await;
        }
        let after = self.answer_timeout;
        let found = timeout(after, self.look()).await;
        let found = found.map_err(|_| SourceError::Silent { after })??;
        self.due = Some(Instant::now() + self.interval);
        Ok(found)
    }
}

/// A task that is still starting has no address yet, or nobody listens there.
fn is_running(task: &Task) -> bool {
    task.last_status() == Some("RUNNING")
}

fn address_of(task: &Task) -> Option<&str> {
    let of_interface = |interface: &str| interface == "ElasticNetworkInterface";
    let attached = task.attachments().iter().filter(|a| a.r#type().is_some_and(of_interface));
    let mut details = attached.flat_map(|attached| attached.details());
    let address = details.find(|detail| detail.name() == Some("privateIPv4Address"));
    address.and_then(|address| address.value()).or_else(|| {
        let mut interfaces = task.containers().iter().flat_map(|c| c.network_interfaces());
        interfaces.find_map(|interface| interface.private_ipv4_address())
    })
}

/// What the client says, with all its reasons: its own words alone are "service error".
fn remote(error: impl std::error::Error) -> SourceError {
    SourceError::Remote(DisplayErrorContext(error).to_string().into())
}
