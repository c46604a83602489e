//! The spool: artifacts on disk, from the first byte of the writer to the last of the reader.
//! Names, promises and lifetimes are kept in `artifact_table`, room in `disk_budget`; `serve` puts
//! it on the network.

use std::fs::File;
use std::sync::{Arc, MutexGuard};

use core_workcoord::artifact::Checksum;
use core_workcoord::id::SessionId;
use core_workcoord::moment::Moment;

use crate::artifact_table::{Facts, Left, ReuseKey, SpooledArtifact};
use crate::disk::{Books, Disk, Pin};
use crate::disk_budget::FileId;
use crate::error::DiskError;
use crate::secret::{ArtifactId, Token};
use crate::turns::{self, Turns};

mod writer;

#[cfg(test)]
mod tests;

pub use writer::ArtifactWriter;

/// The artifacts of one worker. Cheap to clone.
///
/// One artifact's life: [`Spool::turn`] with the key of the work, [`WorkTurn::reuse`] what is here
/// or [`WorkTurn::begin`] to write, [`ArtifactWriter::commit`]; then [`Spool::acknowledge`] when
/// its owner has it, and [`Spool::release`] when nobody needs it, unless [`crate::WorkerDisk`]
/// sweeps it away before.
#[derive(Clone, Debug)]
pub struct Spool {
    disk: Arc<Disk>,
    turns: Turns<ReuseKey>,
    sync: bool,
    /// Compared with what a peer shows where there is no artifact.
    decoy: Arc<Token>,
}

/// The right to make the artifact of one key, or to find it made: nobody else makes it meanwhile.
#[derive(Debug)]
pub struct WorkTurn {
    spool: Spool,
    key: ReuseKey,
    _turn: turns::Turn<ReuseKey>,
}

/// An artifact that is being read: it stays until this is dropped.
#[derive(Debug)]
pub struct OpenArtifact {
    /// What is read.
    pub artifact: SpooledArtifact,
    pin: Pin,
}

impl Spool {
    pub(crate) fn new(disk: Arc<Disk>, sync: bool) -> Self {
        Self { disk, turns: Turns::new(), sync, decoy: Arc::new(Token::draw()) }
    }

    /// A session that may own artifacts from now on. What it gets opens them, and only them.
    pub fn open_session(&self, session: SessionId) -> Token {
        let token = Token::draw();
        self.disk.books().artifacts.open_session(session, token.clone());
        token
    }

    /// A session is over: nothing it was promised is kept. Blocks.
    pub fn close_session(&self, session: SessionId) {
        let mut books = self.disk.books();
        let left = books.artifacts.close_session(session);
        self.settle(books, left);
    }

    /// Waits until nobody else makes the artifact of this key. The first of several goes on at
    /// once; when it is done the others find what it made.
    pub async fn turn(&self, key: ReuseKey) -> WorkTurn {
        let turn = self.turns.turn(&key).await;
        WorkTurn { spool: self.clone(), key, _turn: turn }
    }

    /// Whether there is such an artifact.
    pub fn holds(&self, id: ArtifactId) -> bool {
        self.disk.books().artifacts.has(id)
    }

    /// Its owner has it. False where there is no such artifact, or it was said before.
    pub fn acknowledge(&self, id: ArtifactId, now: Moment) -> bool {
        let mut books = self.disk.books();
        books.budget.advance(now);
        let Some(Left::Needed(file, standing)) = books.artifacts.acknowledge(id, now) else {
            return false;
        };
        books.budget.stand(file, standing);
        self.disk.counters.artifacts_acknowledged.one();
        true
    }

    /// An artifact is not needed any more, whoever says so. One that is being read goes when the
    /// reader is done. Blocks.
    pub fn release(&self, id: ArtifactId) {
        let mut books = self.disk.books();
        let left = books.artifacts.release(id);
        self.settle(books, left);
    }

    /// Opens an artifact for whoever shows the token of its session.
    pub fn open(&self, id: ArtifactId, token: &str) -> Option<OpenArtifact> {
        let mut books = self.disk.books();
        let (file, artifact) = books.artifacts.find(id, token, &self.decoy)?;
        let pin = self.disk.pin(&mut books, file);
        Some(OpenArtifact { artifact, pin })
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    pub(crate) fn decoy(&self) -> &Token {
        &self.decoy
    }

    /// Books what became of files, and removes those that nobody needs.
    fn settle(&self, mut books: MutexGuard<'_, Books>, left: impl IntoIterator<Item = Left>) {
        let mut unclaimed = Vec::new();
        for left in left {
            match left {
                Left::Needed(file, standing) => books.budget.stand(file, standing),
                Left::Unclaimed(file) => unclaimed.push(file),
            }
        }
        drop(books);
        unclaimed.into_iter().for_each(|file| self.disk.remove(file));
    }
}

impl WorkTurn {
    /// The artifact, if it is here already, as one of this session's own. Then the turn is best
    /// dropped: there is nothing to make.
    pub fn reuse(&self, session: SessionId, now: Moment) -> Option<SpooledArtifact> {
        let disk = &self.spool.disk;
        let mut books = disk.books();
        books.budget.advance(now);
        let id = ArtifactId::draw();
        let (artifact, file, standing) = books.artifacts.reuse(self.key, id, session, now)?;
        books.budget.stand(file, standing);
        disk.counters.artifacts_reused.one();
        Some(artifact)
    }

    /// Starts to write it. The turn lasts until the writer commits or is dropped. Blocks.
    pub fn begin(self) -> Result<ArtifactWriter, DiskError> {
        ArtifactWriter::create(self)
    }

    fn committed(
        &self,
        file: FileId,
        size_bytes: u64,
        checksum: Checksum,
        facts: Facts,
        session: SessionId,
        now: Moment,
    ) -> SpooledArtifact {
        let artifact = SpooledArtifact { id: ArtifactId::draw(), size_bytes, checksum, facts };
        let mut books = self.spool.disk.books();
        books.budget.advance(now);
        let standing = books.artifacts.commit(file, self.key, artifact, session, now);
        books.budget.settle(file, size_bytes, standing);
        artifact
    }
}

impl OpenArtifact {
    /// The file, open for reading. Blocks.
    pub fn file(&self) -> Result<File, DiskError> {
        let path = self.pin.path();
        File::open(&path).map_err(DiskError::io(&path))
    }
}
