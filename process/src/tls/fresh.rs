//! Something made from files that is made anew when they change. What can't be made of the new ones
//! is told once, and the old thing stays.

use std::error::Error;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use tokio::time::MissedTickBehavior;
use tracing::{info, warn};

use super::TlsError;
use super::files::{Contents, Files};

/// Files are not looked at more often.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

type Make<T> = Box<dyn Fn(&Contents) -> Result<T, TlsError> + Send + Sync>;

/// A thing and the files it is made of.
pub(super) struct Fresh<T> {
    files: Files,
    make: Make<T>,
    current: RwLock<Arc<T>>,
    seen: Mutex<Seen>,
    stale: AtomicBool,
}

/// What was read last, whatever came of it.
struct Seen {
    contents: Contents,
    /// What is wrong with the files, as it was told.
    trouble: Option<String>,
}

/// What a look at the files brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// They are as before.
    Unchanged,
    /// New ones are taken up.
    Renewed,
    /// New ones can't be used.
    Kept,
}

impl<T: Send + Sync + 'static> Fresh<T> {
    /// Reads the files for the first time, when a failure is the caller's. Blocks.
    pub(super) fn load(
        files: Files,
        make: impl Fn(&Contents) -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, TlsError> {
        let contents = files.read()?;
        let current = RwLock::new(Arc::new(make(&contents)?));
        let seen = Mutex::new(Seen { contents, trouble: None });
        Ok(Arc::new(Self {
            files,
            make: Box::new(make),
            current,
            seen,
            stale: AtomicBool::new(false),
        }))
    }

    /// The thing as it is now.
    pub(super) fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether the files can't be used as they are now.
    pub(super) fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Relaxed)
    }

    /// Looks at the files again. Blocks.
    pub(super) fn look(&self) -> Look {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let made = match self.files.read() {
            Ok(contents) if contents == seen.contents && seen.trouble.is_none() => {
                return Look::Unchanged;
            }
            Ok(contents) => {
                let made = (self.make)(&contents);
                seen.contents = contents;
                made
            }
            Err(error) => Err(error),
        };
        self.stale.store(made.is_err(), Ordering::Relaxed);
        match made {
            Ok(made) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(made);
                seen.trouble = None;
                info!(files = ?self.files, "new certificates are in use");
                Look::Renewed
            }
            Err(error) => {
                let trouble = why(&error);
                if seen.trouble.as_ref() != Some(&trouble) {
                    warn!(error = trouble, "new certificates can't be used, the old ones stay");
                    seen.trouble = Some(trouble);
                }
                Look::Kept
            }
        }
    }

    /// Looks again and again, until dropped.
    pub(super) async fn keep(self: Arc<Self>, interval: Duration) {
        let mut every = tokio::time::interval(interval.max(SHORTEST_INTERVAL));
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            let this = Arc::clone(&self);
            if let Err(error) = tokio::task::spawn_blocking(move || this.look()).await {
                warn!(%error, "certificates could not be looked at");
            }
        }
    }
}

impl<T> fmt::Debug for Fresh<T> {
    /// Without what is in the files: one of them is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fresh").field("files", &self.files).finish_non_exhaustive()
    }
}

/// An error with what it comes from.
fn why(error: &TlsError) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
