//! What can go wrong with the catalog, the object store and the cleaning of both. A variant is
//! there when a caller would act differently. No text here ever holds a password.

use std::path::PathBuf;
use std::time::Duration;

use crate::catalog_url;
use crate::segment_row::SegmentId;

/// Why the catalog did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// The address of the catalog is not one. It is not repeated: it may hold a password.
    #[error("bad catalog address: {reason}")]
    BadUrl {
        /// What is wrong with it.
        reason: String,
    },
    /// A knob has a value that can't work.
    #[error("bad catalog setting: {reason}")]
    BadConfig {
        /// Which, and why.
        reason: &'static str,
    },
    /// A newer release has changed the schema: this one would misread it.
    #[error("{catalog} has schema version {found}; this release knows versions up to {known}")]
    NewerSchema {
        /// Which catalog.
        catalog: String,
        /// The version found.
        found: i64,
        /// The newest version known here.
        known: i64,
    },
    /// The database can't be reached. Trying again later may help.
    #[error("{catalog} can't be reached")]
    Away {
        /// Which catalog.
        catalog: String,
        /// What the driver says.
        #[source]
        source: sqlx::Error,
    },
    /// The database did not answer in time. Trying again later may help, and is safe: whatever
    /// was asked either happened as a whole or not at all, and doing it twice does it once.
    #[error("{catalog} did not answer within {limit:?}")]
    TimedOut {
        /// Which catalog.
        catalog: String,
        /// How long it had.
        limit: Duration,
    },
    /// Another writer holds the catalog. Trying again may help.
    #[error("{catalog} is held by another writer")]
    Busy {
        /// Which catalog.
        catalog: String,
        /// What the driver says.
        #[source]
        source: sqlx::Error,
    },
    /// The database refused something it should not.
    #[error("{catalog} failed")]
    Database {
        /// Which catalog.
        catalog: String,
        /// What the driver says.
        #[source]
        source: sqlx::Error,
    },
    /// A row that this crate can't have written.
    #[error("the catalog's {what} can't be read: {reason}")]
    Corrupt {
        /// Which row or value.
        what: String,
        /// Why.
        reason: String,
    },
    /// The description of a segment contradicts itself.
    #[error("segment {segment}: {reason}")]
    BadSegment {
        /// Which segment.
        segment: SegmentId,
        /// What is wrong.
        reason: String,
    },
    /// Another segment has this name, or these files.
    #[error("segment {segment} is registered already, with other content")]
    Conflict {
        /// The name both have.
        segment: SegmentId,
    },
    /// The segment was removed, by retention or by a compaction that has its samples now.
    #[error("segment {segment} was removed")]
    Retired {
        /// Which segment.
        segment: SegmentId,
    },
    /// The tenant has no such segment.
    #[error("there is no segment {segment}")]
    Unknown {
        /// Which segment.
        segment: SegmentId,
    },
    /// A compaction would turn the order of two segments around: its inputs are older and newer
    /// than this one, which holds the same series and time and was left out.
    #[error("segment {segment} lies between the replaced ones in age and is not among them")]
    LeftOut {
        /// The segment that was left out.
        segment: SegmentId,
    },
    /// The files were written so long ago that cleaning may have taken them for orphans.
    #[error("the files of segment {segment} are {age:?} old: too late to register them")]
    TooLate {
        /// Which segment.
        segment: SegmentId,
        /// Time since its files were written.
        age: Duration,
    },
}

impl CatalogError {
    /// The same call may succeed later, unchanged.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Away { .. } | Self::TimedOut { .. } | Self::Busy { .. })
    }

    /// The connection is not to be trusted after this.
    pub(crate) fn breaks_connection(&self) -> bool {
        matches!(
            self,
            Self::Away { .. } | Self::TimedOut { .. } | Self::Busy { .. } | Self::Database { .. }
        )
    }
}

/// Why the object store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// The address of the store is not one. It is not repeated: it may hold a secret.
    #[error("bad object store address: {reason}")]
    BadUrl {
        /// What is wrong with it.
        reason: String,
    },
    /// A path that could lead out of the store, or that not every store can hold.
    #[error("bad object path {path:?}: {reason}")]
    BadPath {
        /// The path.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// There is no such object.
    #[error("there is no object {path}")]
    NotFound {
        /// Where it should be.
        path: String,
    },
    /// The store failed.
    #[error("object {path}")]
    Failed {
        /// The object in question, or the prefix that was listed.
        path: String,
        /// What the store says.
        #[source]
        source: object_store::Error,
    },
    /// A file of this machine could not be read or removed.
    #[error("file {}", path.display())]
    LocalFile {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
}

/// Why a folder is not used as a data directory.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    /// There is no such folder.
    #[error("there is no data directory {}", path.display())]
    Missing {
        /// Which.
        path: PathBuf,
    },
    /// It is a file or something else.
    #[error("{} is not a folder", path.display())]
    NotAFolder {
        /// What.
        path: PathBuf,
    },
    /// A folder with something else in it.
    #[error("{} is not a data directory: it has no {}", path.display(), catalog_url::FILE_NAME)]
    NoCatalog {
        /// Which folder.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("data directory {}", path.display())]
    Failed {
        /// Which folder.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
}

/// Why cleaning stopped.
#[derive(Debug, thiserror::Error)]
pub enum GcError {
    /// The catalog's side.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// The object store's side.
    #[error(transparent)]
    Objects(#[from] ObjectError),
}
