//! Writes one artifact: room first, then bytes, hashed on their way; a rename commits. Whatever
//! happens before leaves nothing behind.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use core_workcoord::artifact::Checksum;
use core_workcoord::id::SessionId;
use core_workcoord::moment::Moment;
use sha2::{Digest, Sha256};

use super::WorkTurn;
use crate::artifact_table::{Facts, SpooledArtifact};
use crate::disk::{self, Disk};
use crate::disk_budget::{FileId, Kind};
use crate::error::DiskError;
use crate::secret;

/// Bytes held back so that small writes do not each ask the disk and the books.
const BUFFER_BYTES: usize = 256 << 10;

/// How names of committed artifacts end.
const ARTIFACT: &str = ".artifact";

/// An artifact that is being written. Dropped without a commit, it was never there.
///
/// All of it blocks: it belongs on a thread for such work. After a failed write the reason is kept
/// and told by [`ArtifactWriter::failure`], since writers in between lose it.
#[derive(Debug)]
pub struct ArtifactWriter {
    turn: WorkTurn,
    file: FileId,
    path: PathBuf,
    handle: File,
    buffer: Vec<u8>,
    hash: Sha256,
    size_bytes: u64,
    failure: Option<DiskError>,
    committed: bool,
}

impl ArtifactWriter {
    pub(super) fn create(turn: WorkTurn) -> Result<Self, DiskError> {
        let disk = &turn.spool.disk;
        let (file, path) = disk.begin(Kind::Artifact);
        let handle = match create(disk, &path) {
            Ok(handle) => handle,
            Err(error) => {
                disk.remove(file);
                return Err(error);
            }
        };
        Ok(Self {
            turn,
            file,
            path,
            handle,
            buffer: Vec::new(),
            hash: Sha256::new(),
            size_bytes: 0,
            failure: None,
            committed: false,
        })
    }

    /// Bytes written so far.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes + self.buffer.len() as u64
    }

    /// Why writing failed, if it did.
    pub fn failure(&mut self) -> Option<DiskError> {
        self.failure.take()
    }

    /// Makes it an artifact of this session: complete, and visible from now on.
    pub fn commit(
        mut self,
        session: SessionId,
        facts: Facts,
        now: Moment,
    ) -> Result<SpooledArtifact, DiskError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.write_out()?;
        if self.turn.spool.sync {
            // Room that a disk promised and does not have shows here at the latest.
            self.handle.sync_data().map_err(|e| match crate::error::is_full(&e) {
                true => DiskError::Full { wanted_bytes: self.size_bytes },
                false => DiskError::io(&self.path)(e),
            })?;
        }
        let disk = &self.turn.spool.disk;
        disk.rename(self.file, &secret::file_name(ARTIFACT))?;
        let checksum = Checksum(std::mem::take(&mut self.hash).finalize().into());
        let artifact =
            self.turn.committed(self.file, self.size_bytes, checksum, facts, session, now);
        self.committed = true;
        let counters = &self.turn.spool.disk.counters;
        counters.artifacts_committed.one();
        counters.artifact_bytes_committed.add(self.size_bytes);
        Ok(artifact)
    }

    fn write_out(&mut self) -> Result<(), DiskError> {
        let bytes = self.buffer.len() as u64;
        if bytes == 0 {
            return Ok(());
        }
        let disk = &self.turn.spool.disk;
        disk.grow(self.file, bytes)?;
        let relieve = |wanted| disk.relieve(wanted);
        disk::write_all(&mut self.handle, &self.buffer, &self.path, relieve)?;
        disk.books().budget.wrote(self.file, bytes);
        self.hash.update(&self.buffer);
        self.size_bytes += bytes;
        self.buffer.clear();
        Ok(())
    }
}

impl io::Write for ArtifactWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.failure.is_some() {
            return Err(io::Error::other("writing the artifact has failed before"));
        }
        if self.buffer.len() + bytes.len() > BUFFER_BYTES
            && let Err(failure) = self.write_out()
        {
            let kind = match &failure {
                DiskError::Full { .. } => io::ErrorKind::StorageFull,
                _ => io::ErrorKind::Other,
            };
            let told = io::Error::new(kind, failure.to_string());
            self.failure = Some(failure);
            return Err(told);
        }
        let taken = bytes.len().min(BUFFER_BYTES);
        self.buffer.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// Nothing is promised before the commit, so nothing need be written before it.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for ArtifactWriter {
    fn drop(&mut self) {
        if !self.committed {
            self.turn.spool.disk.remove(self.file);
            self.turn.spool.disk.counters.artifacts_abandoned.one();
        }
    }
}

/// Even a name takes room on a full disk.
fn create(disk: &Disk, path: &std::path::Path) -> Result<File, DiskError> {
    loop {
        match File::options().write(true).create_new(true).open(path) {
            Err(e) if crate::error::is_full(&e) => {
                if !disk.relieve(1) {
                    return Err(DiskError::Full { wanted_bytes: 1 });
                }
            }
            other => return other.map_err(DiskError::io(path)),
        }
    }
}
