//! What the worker's sessions need of the disk: who may fetch what, what is still needed, how full
//! it is. Files, checksums and the routes that serve them are left to whoever implements
//! `Artifacts`.

use std::fmt;
use std::sync::Arc;

use core_workcoord::id::{RunId, SessionId};
pub use core_workcoord::intake::DiskReport;
use tributary_process::metrics::Text;

/// The store's own name for an artifact: the end of its URL. Made by the store, never by a peer.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactId(Arc<str>);

impl ArtifactId {
    /// A name that the store made.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Who needs an artifact: one run of one session. Several runs may need the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// The session whose token opens it.
    pub session: SessionId,
    /// The run it answers.
    pub run: RunId,
}

/// The worker's artifacts, as its sessions see them. Calls come from threads that may wait for the
/// disk, but for `admit`, which must not.
///
/// For one holder the calls are `hold`, then perhaps `acknowledge`, then `release`; for one session
/// `admit`, then those of its holders, then `dismiss`. After `hold` gave true and until `release`,
/// the artifact is served to whoever has the session's token, or its loss is told on the channel of
/// lost artifacts.
pub trait Artifacts: Send + Sync + 'static {
    /// A session began. Gives a token that nobody can guess, which opens what is held for the
    /// session, and nothing else.
    fn admit(&self, session: SessionId) -> String;

    /// A session is over: its token opens nothing any more.
    fn dismiss(&self, session: SessionId);

    /// An artifact is about to be announced. False if it is gone already.
    fn hold(&self, artifact: &ArtifactId, holder: Holder) -> bool;

    /// A holder has what it needs: the artifact may be evicted for it, and is kept if there is room.
    fn acknowledge(&self, artifact: &ArtifactId, holder: Holder);

    /// A holder does not need it any more. What nobody holds may be kept for equal work, or removed.
    fn release(&self, artifact: &ArtifactId, holder: Holder);

    /// How the disk is.
    fn disk(&self) -> DiskReport;

    /// Everything else there is to see, for `/metrics`.
    fn measure(&self, metrics: &mut Text);
}
