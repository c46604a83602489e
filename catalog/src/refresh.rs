//! Keeps a universe current in the background. Asks the database a cheap question a few times a
//! second, reads what changed, and swaps the universe as a whole. While the database is away the
//! last universe stays, and its age can be seen. The owner of the `UniverseFeed` ends it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::config::CatalogConfig;
use crate::error::CatalogError;
use crate::store::link::{Idle, Link};
use crate::store::read::{self, Changes};
use crate::store::{Catalog, Changed};
use crate::universe::Universe;

/// The task that keeps a universe current. It ends when this is dropped.
pub struct UniverseFeed {
    task: JoinHandle<()>,
    reader: UniverseReader,
}

/// Hands out the current universe, at once and always. Cheap to clone.
#[derive(Clone)]
pub struct UniverseReader {
    universe: watch::Receiver<Arc<Universe>>,
    health: Arc<Mutex<Health>>,
}

/// How current a universe is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freshness {
    /// Time since the database last said that there is nothing newer.
    pub age: Duration,
    /// Tries that failed since then, one after the other.
    pub failures: u32,
    /// What the last of them met.
    pub last_error: Option<String>,
}

struct Health {
    confirmed: Instant,
    failures: u32,
    last_error: Option<String>,
}

impl UniverseFeed {
    /// Reads the catalog once and keeps it current from then on. Fails if it can't be read now:
    /// an empty universe would answer every query with nothing, as if that were true.
    pub async fn start(catalog: &Catalog) -> Result<Self, CatalogError> {
        let mut link = catalog.new_link();
        let changes = load(&mut link, None).await?;
        let first = build(Arc::default(), changes).await?;
        let (sender, receiver) = watch::channel(first);
        let health = Health { confirmed: Instant::now(), failures: 0, last_error: None };
        let health = Arc::new(Mutex::new(health));
        let reader = UniverseReader { universe: receiver, health: health.clone() };
        let task = tokio::spawn(keep_current(link, sender, health));
        Ok(Self { task, reader })
    }

    /// A reader of the universe. Readers outlive the feed; their universe then stays as it is.
    pub fn reader(&self) -> UniverseReader {
        self.reader.clone()
    }

    /// Ends the task and waits until it is gone, its connection with it.
    pub async fn stop(mut self) {
        self.task.abort();
        // Being cancelled is the end that was asked for.
        _ = (&mut self.task).await;
    }
}

impl Drop for UniverseFeed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl UniverseReader {
    /// The newest universe there is. Never waits.
    pub fn current(&self) -> Arc<Universe> {
        self.universe.borrow().clone()
    }

    /// How current it is.
    pub fn freshness(&self) -> Freshness {
        let health = self.health.lock().unwrap_or_else(PoisonError::into_inner);
        Freshness {
            age: health.confirmed.elapsed(),
            failures: health.failures,
            last_error: health.last_error.clone(),
        }
    }

    /// Waits until a change is seen here. None if the feed ended before.
    pub async fn seen(&mut self, change: Changed) -> Option<Arc<Universe>> {
        let seen = self.universe.wait_for(|universe| universe.change_seq() >= change.change_seq);
        seen.await.ok().map(|universe| universe.clone())
    }
}

async fn keep_current(
    mut link: Link,
    universe: watch::Sender<Arc<Universe>>,
    health: Arc<Mutex<Health>>,
) {
    let CatalogConfig { poll_interval: interval, backoff_max, .. } = link.terms().config;
    let catalog = link.terms().url.clone();
    // After a silence the database may be one that was restored from a backup, where the same
    // number stands for another state: then a difference is not to be trusted.
    let mut trusted = true;
    let mut pause = interval;
    loop {
        tokio::time::sleep(pause).await;
        let known = i64::try_from(universe.borrow().change_seq()).ok().filter(|_| trusted);
        let asked = Instant::now();
        let last = universe.borrow().clone();
        match follow(&mut link, last, known).await {
            Ok(news) => {
                if let Some(next) = news {
                    universe.send_replace(next);
                }
                if note(&health, |health| health.confirm(asked)) > 0 {
                    info!(%catalog, "catalog answers again");
                }
                trusted = true;
                pause = interval;
            }
            Err(error) => {
                trusted &=
                    !matches!(error, CatalogError::Away { .. } | CatalogError::TimedOut { .. });
                let text = with_causes(&error);
                if note(&health, |health| health.fail(text.clone())) == 0 {
                    warn!(%catalog, error = text, "catalog can't be read; the last universe stays");
                }
                pause = (pause * 2).min(backoff_max);
            }
        }
    }
}

impl Health {
    /// Returns the failures there were before.
    fn confirm(&mut self, at: Instant) -> u32 {
        self.confirmed = at;
        self.last_error = None;
        std::mem::take(&mut self.failures)
    }

    /// Returns the failures there were before.
    fn fail(&mut self, error: String) -> u32 {
        let before = self.failures;
        self.failures = before.saturating_add(1);
        self.last_error = Some(error);
        before
    }
}

fn note(health: &Mutex<Health>, change: impl FnOnce(&mut Health) -> u32) -> u32 {
    change(&mut health.lock().unwrap_or_else(PoisonError::into_inner))
}

fn with_causes(error: &CatalogError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text.push_str(": ");
        text.push_str(&next.to_string());
        cause = next.source();
    }
    text
}

/// The next universe, if anything is new.
async fn follow(
    link: &mut Link,
    last: Arc<Universe>,
    known: Option<i64>,
) -> Result<Option<Arc<Universe>>, CatalogError> {
    match ask(link, known).await? {
        Some(changes) => build(last, changes).await.map(Some),
        None => Ok(None),
    }
}

/// What is new, if anything is.
async fn ask(link: &mut Link, known: Option<i64>) -> Result<Option<Changes>, CatalogError> {
    if known.is_some() {
        let limit = link.terms().config.poll_timeout;
        let newest = link
            .run(Idle::Trust, limit, async |connection| read::change_seq(connection).await)
            .await?;
        if known == Some(newest) {
            return Ok(None);
        }
    }
    load(link, known).await.map(Some)
}

async fn load(link: &mut Link, known: Option<i64>) -> Result<Changes, CatalogError> {
    let (limit, dialect) = (link.terms().config.operation_timeout, link.terms().dialect);
    link.run(Idle::Trust, limit, async |connection| read::changes(connection, dialect, known).await)
        .await
}

/// Builds the next universe beside the runtime's threads: with many segments it takes a while.
async fn build(last: Arc<Universe>, changes: Changes) -> Result<Arc<Universe>, CatalogError> {
    let built = tokio::task::spawn_blocking(move || last.after(changes).map(Arc::new));
    built.await.expect("building a universe does not panic and is never cancelled")
}
