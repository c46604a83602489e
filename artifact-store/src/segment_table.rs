//! Which files of segments are on disk, whole or in part. Names are hashes of where a file comes
//! from; room and order of use are the budget's.

use std::collections::HashMap;
use std::path::PathBuf;

use crate::disk_budget::FileId;

/// A download that was begun.
#[derive(Clone, Debug)]
pub(crate) struct Partial {
    pub(crate) file: FileId,
    pub(crate) path: PathBuf,
    /// The length of the whole, and of the file from the start.
    pub(crate) size_bytes: u64,
    /// Which parts are there.
    pub(crate) done: Vec<bool>,
}

#[derive(Clone, Debug)]
enum Copy {
    Whole { file: FileId, size_bytes: u64 },
    Partial(Partial),
}

/// All files, by name and by number.
#[derive(Debug, Default)]
pub(crate) struct SegmentTable {
    copies: HashMap<String, Copy>,
    names: HashMap<FileId, String>,
}

impl SegmentTable {
    /// A whole file is there, downloaded now or in an earlier life.
    pub(crate) fn found(&mut self, name: String, file: FileId, size_bytes: u64) {
        self.names.insert(file, name.clone());
        self.copies.insert(name, Copy::Whole { file, size_bytes });
    }

    /// A download was left before its end.
    pub(crate) fn left(&mut self, name: String, partial: Partial) {
        self.names.insert(partial.file, name.clone());
        self.copies.insert(name, Copy::Partial(partial));
    }

    /// A whole file and its length.
    pub(crate) fn whole(&self, name: &str) -> Option<(FileId, u64)> {
        match self.copies.get(name)? {
            Copy::Whole { file, size_bytes } => Some((*file, *size_bytes)),
            Copy::Partial(_) => None,
        }
    }

    /// Takes a download out, to go on with it or to throw it away.
    pub(crate) fn take_partial(&mut self, name: &str) -> Option<Partial> {
        match self.copies.get(name)? {
            Copy::Whole { .. } => None,
            Copy::Partial(partial) => {
                let partial = partial.clone();
                self.forget(partial.file);
                Some(partial)
            }
        }
    }

    /// The file is not there any more, or not for anybody else. False where it was not known.
    pub(crate) fn forget(&mut self, file: FileId) -> bool {
        match self.names.remove(&file) {
            Some(name) => self.copies.remove(&name).is_some(),
            None => false,
        }
    }

    /// Number of whole files.
    pub(crate) fn len(&self) -> usize {
        self.copies.values().filter(|copy| matches!(copy, Copy::Whole { .. })).count()
    }
}
