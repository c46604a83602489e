//! One file on the books: what it is for, how dear it is, and when it yields. The sums over all files
//! are the budget's.

use core_workcoord::moment::Moment;

/// A file on the books. Numbers are never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub(super) u64);

/// What a file is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The result of a work item.
    Artifact,
    /// A copy of a segment's file.
    Segment,
}

/// How dear a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It is being written. Does not yield.
    Writing,
    /// A segment that can be downloaded again.
    Cached,
    /// An artifact that somebody is to fetch.
    Unacknowledged {
        /// When it was announced.
        since: Moment,
        /// When nobody will come any more.
        until: Moment,
    },
    /// An artifact that was fetched.
    Acknowledged {
        /// When.
        since: Moment,
        /// When it is of no more use.
        until: Moment,
    },
    /// An artifact that stayed longer than promised.
    Expired {
        /// When it expired.
        since: Moment,
    },
}

/// What is known of a file on the books.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) kind: Kind,
    pub(super) standing: Standing,
    pub(super) bytes: u64,
    /// How many of them are on disk, while it is being written.
    pub(super) written: u64,
    pub(super) pins: u32,
    /// Its turn among cached segments.
    pub(super) used: u64,
    /// To be removed as soon as nobody has it open.
    pub(super) doomed: bool,
}

/// The order of yielding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Cached,
    Acknowledged,
    Expired,
    Unacknowledged,
}

impl Held {
    /// Its place in the order of yielding, if it can yield.
    pub(super) fn place(&self) -> Option<(Rank, u64)> {
        if self.pins > 0 || self.doomed {
            return None;
        }
        match self.standing {
            Standing::Writing => None,
            Standing::Cached => Some((Rank::Cached, self.used)),
            Standing::Acknowledged { since, .. } => Some((Rank::Acknowledged, since.0)),
            Standing::Expired { since } => Some((Rank::Expired, since.0)),
            Standing::Unacknowledged { since, .. } => Some((Rank::Unacknowledged, since.0)),
        }
    }

    /// When it ceases to be worth its room.
    pub(super) fn expires(&self) -> Option<Moment> {
        match self.standing {
            Standing::Unacknowledged { until, .. } | Standing::Acknowledged { until, .. } => {
                Some(until)
            }
            Standing::Writing | Standing::Cached | Standing::Expired { .. } => None,
        }
    }
}
