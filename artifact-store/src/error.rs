//! What can go wrong with the worker's disk, and with segments on their way to it. A variant is
//! there when a caller would act differently.

use std::io;
use std::path::{Path, PathBuf};

use core_workcoord::message::FailureCode;
use tributary_catalog::ObjectError;
use tributary_segment::SegmentError;

/// Why the disk did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// A knob has a value that can't work.
    #[error("bad disk setting: {reason}")]
    BadConfig {
        /// Which, and why.
        reason: &'static str,
    },
    /// Another process uses the folder.
    #[error("{} is used by another worker", folder.display())]
    InUse {
        /// Which folder.
        folder: PathBuf,
    },
    /// The folder holds something that no worker left there, and that would be removed.
    #[error("{} is not a worker's folder: {} is in it", folder.display(), found)]
    NotOurs {
        /// Which folder.
        folder: PathBuf,
        /// What is in the way.
        found: &'static str,
    },
    /// There is no room, by the budget or by the disk itself. Later, or elsewhere, there may be.
    #[error("no room on disk for {wanted_bytes} more bytes")]
    Full {
        /// How much was asked for.
        wanted_bytes: u64,
    },
    /// The system refuses.
    #[error("{}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

impl DiskError {
    /// The same may succeed later, or on another worker.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Full { .. } | Self::Io { .. } | Self::InUse { .. } => true,
            Self::BadConfig { .. } | Self::NotOurs { .. } => false,
        }
    }

    /// What it is called in the control protocol.
    pub fn code(&self) -> FailureCode {
        match self {
            Self::Full { .. } => FailureCode::DiskFull,
            Self::Io { .. } | Self::InUse { .. } => FailureCode::Internal,
            Self::BadConfig { .. } | Self::NotOurs { .. } => FailureCode::Internal,
        }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<'_> {
        |source| Self::Io { path: path.to_owned(), source }
    }
}

/// The system says that the disk is full, one way or another.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Why a segment can't be read.
#[derive(Debug, thiserror::Error)]
pub enum SegmentFetchError {
    /// The store has no such object: the query can't be answered from this segment.
    #[error("segment file {path} is missing")]
    Missing {
        /// Where it should be.
        path: String,
    },
    /// The object is not what was written. Fetching it again gave the same.
    #[error("segment file {path} is corrupt: {reason}")]
    Corrupt {
        /// Where it is.
        path: String,
        /// What does not fit.
        reason: String,
    },
    /// The files are fine and this release can't read them, or not together.
    #[error(transparent)]
    Unreadable(SegmentError),
    /// The store did not answer, however often it was asked.
    #[error("segment file {path} can't be fetched")]
    Unreachable {
        /// Where it is.
        path: String,
        /// What the store said last; nothing if it was silent.
        #[source]
        source: Option<ObjectError>,
    },
    /// This machine's disk.
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl SegmentFetchError {
    /// The same may succeed later, or on another worker.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::Corrupt { .. } | Self::Unreadable(_) => false,
            Self::Unreachable { .. } => true,
            Self::Disk(error) => error.is_retryable(),
        }
    }

    /// What it is called in the control protocol.
    pub fn code(&self) -> FailureCode {
        match self {
            Self::Missing { .. } => FailureCode::SegmentMissing,
            Self::Corrupt { .. } | Self::Unreadable(_) => FailureCode::SegmentCorrupt,
            Self::Unreachable { .. } => FailureCode::StoreUnavailable,
            Self::Disk(error) => error.code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_retryable_and_a_missing_segment_is_not() {
        assert!(DiskError::Full { wanted_bytes: 1 }.is_retryable());
        let missing = SegmentFetchError::Missing { path: "a".into() };
        assert!(!missing.is_retryable());
        assert_eq!(missing.to_string(), "segment file a is missing");
        // 28 is ENOSPC and 122 EDQUOT on Linux.
        if cfg!(target_os = "linux") {
            assert!(is_full(&io::Error::from_raw_os_error(28)));
            assert!(is_full(&io::Error::from_raw_os_error(122)));
        }
        assert!(!is_full(&io::ErrorKind::PermissionDenied.into()));
    }
}
