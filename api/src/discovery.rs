//! Which workers there are: sources that say it again and again, and one list made of what all of
//! them say. What is done with a worker that appears or goes is decided elsewhere.
//!
//! A source that fails keeps its last answer, so that an outage of a name server or of somebody's
//! API costs no worker; it is asked again after a pause that grows.

pub mod dns;
#[cfg(feature = "ecs")]
pub mod ecs;
pub mod fixed;
#[cfg(feature = "kubernetes")]
pub mod kubernetes;
mod merged;
mod place;

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use core_workcoord::id::{BadId, Endpoint};
use core_workcoord::reconnect;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::{info, warn};

use merged::Merged;
pub use place::{BadPlace, Place, PortChoice};

/// The most endpoints one source may name.
pub const ENDPOINTS_MAX: usize = 10_000;

/// Answers and changes that wait to be taken. A source that has more to say waits.
const WAITING_MAX: usize = 64;

/// Says which workers there are.
pub trait Source: Send + 'static {
    /// The workers there are. The first call answers as soon as it can, a later one when there may
    /// be news, and one after a failure tries again at once.
    fn next(&mut self) -> impl Future<Output = Result<BTreeSet<Endpoint>, SourceError>> + Send;
}

/// Why a source has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A name could not be looked up.
    #[error("{host} can't be looked up: {source}")]
    Lookup {
        /// The name.
        host: String,
        /// What the resolver says.
        source: io::Error,
    },
    /// Nobody answered in time.
    #[error("no answer within {after:?}")]
    Silent {
        /// How long was waited.
        after: Duration,
    },
    /// An API that was asked says no, or can't be reached.
    #[error("{0}")]
    Remote(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// An answer that names something that is no address.
    #[error("the answer names {text:?}: {source}")]
    BadEndpoint {
        /// What it names.
        text: String,
        /// What is wrong with it.
        source: BadId,
    },
    /// An answer that is too long to be true.
    #[error("the answer names {count} endpoints; at most {ENDPOINTS_MAX} are taken")]
    TooMany {
        /// How many it names.
        count: usize,
    },
    /// This build does not know the kind of source.
    #[error("this build has no {feature} discovery; build with the feature {feature:?}")]
    NotBuilt {
        /// What it would have to be built with.
        feature: &'static str,
    },
}

/// A worker came or went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Some source names it now, and none did before.
    Appeared(Endpoint),
    /// No source names it any more.
    Gone(Endpoint),
}

/// How often sources are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Names are looked up this often (5 s). Longer: a new worker is found later.
    pub dns_interval: Duration,
    /// ECS is asked this often (10 s). Shorter: its limit on requests is reached sooner.
    pub ecs_interval: Duration,
    /// An answer must come within this time (10 s).
    pub answer_timeout: Duration,
    /// The first pause after a failure (500 ms). It doubles with each failure.
    pub retry_base: Duration,
    /// The longest pause after a failure (30 s).
    pub retry_max: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            dns_interval: Duration::from_secs(5),
            ecs_interval: Duration::from_secs(10),
            answer_timeout: Duration::from_secs(10),
            retry_base: Duration::from_millis(500),
            retry_max: Duration::from_secs(30),
        }
    }
}

/// What one source did so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceView {
    /// What it is called.
    pub name: String,
    /// How often it answered.
    pub answers: u64,
    /// How often it failed.
    pub failures: u64,
    /// It failed the last time it was asked.
    pub is_failing: bool,
    /// How many workers its last answer names.
    pub endpoints: usize,
}

/// What all sources did so far. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Figures(Arc<Mutex<Vec<SourceView>>>);

impl Figures {
    /// Every source, in the order they were added.
    pub fn sources(&self) -> Vec<SourceView> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add(&self, name: &str) -> usize {
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = name.to_owned();
        let fresh = SourceView { name, answers: 0, failures: 0, is_failing: false, endpoints: 0 };
        sources.push(fresh);
        sources.len() - 1
    }

    fn note(&self, number: usize, change: impl FnOnce(&mut SourceView)) {
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(source) = sources.get_mut(number) {
            change(source);
        }
    }
}

/// An answer, and the number of the source that gave it.
type Numbered = (usize, BTreeSet<Endpoint>);

/// Sources at work. Dropped, they stop.
#[derive(Debug)]
pub struct Discovery {
    pace: Pace,
    seed: u64,
    tasks: JoinSet<()>,
    answers: mpsc::Sender<Numbered>,
    figures: Figures,
}

impl Discovery {
    /// No source yet. Changes come out of the other end; the seed is for the jitter of retries.
    pub fn new(pace: Pace, seed: u64) -> (Self, mpsc::Receiver<Change>) {
        let (answers, incoming) = mpsc::channel(WAITING_MAX);
        let (changes, outgoing) = mpsc::channel(WAITING_MAX);
        let mut tasks = JoinSet::new();
        tasks.spawn(merge(incoming, changes));
        (Self { pace, seed, tasks, answers, figures: Figures::default() }, outgoing)
    }

    /// Asks at a place from now on.
    pub fn ask_at(&mut self, place: &Place) -> Result<(), SourceError> {
        let name = place.to_string();
        match place {
            Place::Fixed(endpoints) => {
                self.add(&name, fixed::FixedSource::new(endpoints.iter().cloned().collect()));
            }
            Place::Dns { host, port } => {
                self.add(&name, dns::DnsSource::new(host, *port, dns::SystemResolver, &self.pace));
            }
            #[cfg(feature = "kubernetes")]
            Place::Kubernetes { namespace, service, port } => {
                self.add(&name, kubernetes::SliceSource::new(namespace, service, port.clone()));
            }
            #[cfg(not(feature = "kubernetes"))]
            Place::Kubernetes { .. } => {
                return Err(SourceError::NotBuilt { feature: "kubernetes" });
            }
            #[cfg(feature = "ecs")]
            Place::Ecs { cluster, service, port } => {
                self.add(&name, ecs::TaskSource::new(cluster, service, *port, &self.pace));
            }
            #[cfg(not(feature = "ecs"))]
            Place::Ecs { .. } => return Err(SourceError::NotBuilt { feature: "ecs" }),
        }
        Ok(())
    }

    /// Asks one more source from now on.
    pub fn add(&mut self, name: &str, source: impl Source) {
        let number = self.figures.add(name);
        let asked = Asked {
            number,
            name: name.to_owned(),
            pace: self.pace,
            seed: self.seed,
            figures: self.figures.clone(),
        };
        self.tasks.spawn(asked.run(source, self.answers.clone()));
    }

    /// What the sources did so far, to be looked at any time.
    pub fn figures(&self) -> Figures {
        self.figures.clone()
    }
}

/// One source and what is said of it.
struct Asked {
    number: usize,
    name: String,
    pace: Pace,
    seed: u64,
    figures: Figures,
}

impl Asked {
    /// Asks until nobody takes the answers.
    async fn run(self, mut source: impl Source, answers: mpsc::Sender<Numbered>) {
        let mut failures = 0_u32;
        loop {
            match source.next().await.and_then(checked) {
                Ok(endpoints) => {
                    if failures > 0 {
                        info!(source = self.name, failures, "discovery answers again");
                    }
                    failures = 0;
                    self.figures.note(self.number, |view| {
                        view.answers += 1;
                        view.is_failing = false;
                        view.endpoints = endpoints.len();
                    });
                    if answers.send((self.number, endpoints)).await.is_err() {
                        return;
                    }
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.figures.note(self.number, |view| {
                        view.failures += 1;
                        view.is_failing = true;
                    });
                    let Pace { retry_base, retry_max, .. } = self.pace;
                    let pause =
                        reconnect::pause(self.seed, &self.name, failures, retry_base, retry_max);
                    warn!(source = self.name, failures, ?pause, %error, "discovery failed");
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

fn checked(endpoints: BTreeSet<Endpoint>) -> Result<BTreeSet<Endpoint>, SourceError> {
    let count = endpoints.len();
    if count > ENDPOINTS_MAX { Err(SourceError::TooMany { count }) } else { Ok(endpoints) }
}

/// Makes one list of all answers and tells how it changes.
async fn merge(mut answers: mpsc::Receiver<Numbered>, changes: mpsc::Sender<Change>) {
    let mut merged = Merged::default();
    while let Some((source, endpoints)) = answers.recv().await {
        for change in merged.take(source, endpoints) {
            match &change {
                Change::Appeared(endpoint) => info!(%endpoint, "worker found"),
                Change::Gone(endpoint) => info!(%endpoint, "worker no longer listed"),
            }
            if changes.send(change).await.is_err() {
                return;
            }
        }
    }
}

/// Checks the text of an endpoint that an answer names.
fn endpoint(text: &str) -> Result<Endpoint, SourceError> {
    Endpoint::new(text).map_err(|source| SourceError::BadEndpoint {
        text: text.chars().take(64).collect(),
        source,
    })
}

#[cfg(test)]
mod tests;
