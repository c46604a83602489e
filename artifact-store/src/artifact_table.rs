//! Which artifacts there are, what each is a copy of, whose it is and how long it stays. No files
//! and no clock here: `spool` and `disk` ask.
//!
//! An artifact is a promise to one session. Its bytes are a file that several artifacts may share,
//! where equal work was asked for more than once; the file goes with the last of them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use core_workcoord::artifact::{Artifact, Checksum};
use core_workcoord::id::SessionId;
use core_workcoord::moment::Moment;

use crate::disk_budget::{FileId, Standing};
use crate::retention::{Promise, Rank, Retention};
use crate::secret::{ArtifactId, Token};

#[cfg(test)]
mod tests;

/// What an artifact is made of: a hash of the spec and of the segments it names, made by the
/// caller. Equal keys mean equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReuseKey(pub [u8; 32]);

/// What the maker of an artifact says of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Number of rows.
    pub row_count: u64,
    /// Smallest timestamp, in milliseconds of the Unix epoch.
    pub min_ts: i64,
    /// Largest timestamp.
    pub max_ts: i64,
    /// Version of the Parquet schema.
    pub parquet_schema_version: u32,
}

/// An artifact in the spool: committed, complete, promised to one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpooledArtifact {
    /// Its name.
    pub id: ArtifactId,
    /// Its length.
    pub size_bytes: u64,
    /// SHA-256 of its bytes.
    pub checksum: Checksum,
    /// What its maker says of it.
    pub facts: Facts,
}

/// An artifact that is gone though its owner may still come for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostArtifact {
    /// Which artifact.
    pub id: ArtifactId,
    /// Whose it was.
    pub session: SessionId,
}

impl SpooledArtifact {
    /// What is said of it to its owner. The base is where [`crate::serve::routes`] are.
    pub fn announce(&self, base_url: &str) -> Artifact {
        Artifact {
            url: format!("{}{}{}", base_url.trim_end_matches('/'), crate::serve::PREFIX, self.id),
            size_bytes: self.size_bytes,
            checksum: self.checksum,
            row_count: self.facts.row_count,
            min_ts: self.facts.min_ts,
            max_ts: self.facts.max_ts,
            parquet_schema_version: self.facts.parquet_schema_version,
        }
    }
}

/// A committed file and the artifacts it is the bytes of.
#[derive(Clone, Debug)]
struct Content {
    key: ReuseKey,
    size_bytes: u64,
    checksum: Checksum,
    facts: Facts,
    /// The dearest last, so that what the file is worth is known however many share it.
    artifacts: BTreeSet<(Rank, ArtifactId)>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    file: FileId,
    session: SessionId,
    promise: Promise,
}

/// All artifacts, by every question that is asked.
#[derive(Debug)]
pub(crate) struct ArtifactTable {
    retention: Retention,
    contents: BTreeMap<FileId, Content>,
    by_key: HashMap<ReuseKey, FileId>,
    artifacts: HashMap<ArtifactId, Entry>,
    expiry: BTreeSet<(Moment, ArtifactId)>,
    sessions: HashMap<SessionId, (Token, BTreeSet<ArtifactId>)>,
}

/// What time did.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    /// Artifacts that are gone.
    pub(crate) expired: u64,
    /// Those among them that somebody might still have come for.
    pub(crate) lost: Vec<LostArtifact>,
    /// Files that no artifact needs any more.
    pub(crate) unclaimed: Vec<FileId>,
    /// Files that are less dear than before.
    pub(crate) restand: Vec<(FileId, Standing)>,
}

/// What is left of a file when one of its artifacts has gone, or was fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// Others need it, this much.
    Needed(FileId, Standing),
    /// Nobody does.
    Unclaimed(FileId),
}

impl ArtifactTable {
    /// Whether there is such an artifact.
    pub(crate) fn has(&self, id: ArtifactId) -> bool {
        self.artifacts.contains_key(&id)
    }

    pub(crate) fn new(retention: Retention) -> Self {
        Self {
            retention,
            contents: BTreeMap::new(),
            by_key: HashMap::new(),
            artifacts: HashMap::new(),
            expiry: BTreeSet::new(),
            sessions: HashMap::new(),
        }
    }

    /// A session that may be given artifacts, and what opens them.
    pub(crate) fn open_session(&mut self, session: SessionId, token: Token) {
        self.sessions.insert(session, (token, BTreeSet::new()));
    }

    /// A session is over, and so is what it was promised. Gives what became of the files.
    pub(crate) fn close_session(&mut self, session: SessionId) -> Vec<Left> {
        let Some((_, artifacts)) = self.sessions.remove(&session) else { return Vec::new() };
        artifacts.into_iter().filter_map(|id| self.release(id)).collect()
    }

    /// A committed file becomes an artifact of a session.
    pub(crate) fn commit(
        &mut self,
        file: FileId,
        key: ReuseKey,
        artifact: SpooledArtifact,
        session: SessionId,
        now: Moment,
    ) -> Standing {
        let SpooledArtifact { id, size_bytes, checksum, facts } = artifact;
        let content = Content { key, size_bytes, checksum, facts, artifacts: BTreeSet::new() };
        self.contents.insert(file, content);
        self.by_key.insert(key, file);
        self.promise(id, file, session, now);
        self.standing(file).expect("it was just promised")
    }

    /// Another artifact of a file that is here already, with what it is worth now.
    pub(crate) fn reuse(
        &mut self,
        key: ReuseKey,
        id: ArtifactId,
        session: SessionId,
        now: Moment,
    ) -> Option<(SpooledArtifact, FileId, Standing)> {
        let file = *self.by_key.get(&key)?;
        self.promise(id, file, session, now);
        let standing = self.standing(file)?;
        let Content { size_bytes, checksum, facts, .. } = self.contents[&file];
        Some((SpooledArtifact { id, size_bytes, checksum, facts }, file, standing))
    }

    /// Its owner has it. Nothing if there is no such artifact, or it was said before.
    pub(crate) fn acknowledge(&mut self, id: ArtifactId, now: Moment) -> Option<Left> {
        let retention = self.retention;
        let entry = self.artifacts.get_mut(&id)?;
        if matches!(entry.promise, Promise::Acknowledged { .. }) {
            return None;
        }
        let before = entry.promise;
        entry.promise = Promise::Acknowledged { since: now };
        let (after, file) = (entry.promise, entry.file);
        self.expiry.remove(&(before.until(&retention), id));
        self.expiry.insert((after.until(&retention), id));
        if let Some(content) = self.contents.get_mut(&file) {
            content.artifacts.remove(&(before.rank(), id));
            content.artifacts.insert((after.rank(), id));
        }
        Some(Left::Needed(file, self.standing(file)?))
    }

    /// An artifact is not needed any more.
    pub(crate) fn release(&mut self, id: ArtifactId) -> Option<Left> {
        let file = self.take(id)?.file;
        Some(match self.standing(file) {
            Some(standing) => Left::Needed(file, standing),
            None => {
                self.drop_content(file);
                Left::Unclaimed(file)
            }
        })
    }

    /// The file has to yield: all its artifacts are gone, and which of them were waited for.
    pub(crate) fn forget(&mut self, file: FileId) -> Vec<(LostArtifact, bool)> {
        let Some(content) = self.drop_content(file) else { return Vec::new() };
        let gone = content.artifacts.into_iter().filter_map(|(_, id)| {
            let entry = self.take(id)?;
            let waited = matches!(entry.promise, Promise::Announced { .. });
            Some((LostArtifact { id, session: entry.session }, waited))
        });
        gone.collect()
    }

    /// Takes away every artifact whose time is up.
    pub(crate) fn expire(&mut self, now: Moment) -> Due {
        let mut due = Due::default();
        let mut touched = BTreeSet::new();
        while let Some((until, id)) = self.expiry.first().copied() {
            if until > now {
                break;
            }
            let entry = self.take(id).expect("what expires is known");
            due.expired += 1;
            if matches!(entry.promise, Promise::Announced { .. }) {
                due.lost.push(LostArtifact { id, session: entry.session });
            }
            touched.insert(entry.file);
        }
        for file in touched {
            match self.standing(file) {
                Some(standing) => due.restand.push((file, standing)),
                None => {
                    self.drop_content(file);
                    due.unclaimed.push(file);
                }
            }
        }
        due
    }

    /// The file of an artifact, if the token opens it. An unknown name takes the same way as a
    /// wrong token.
    pub(crate) fn find(
        &self,
        id: ArtifactId,
        token: &str,
        decoy: &Token,
    ) -> Option<(FileId, SpooledArtifact)> {
        let entry = self.artifacts.get(&id);
        let owner = entry.and_then(|entry| self.sessions.get(&entry.session));
        let opens = owner.map_or(decoy, |(token, _)| token).opens_with(token);
        let (entry, _) = entry.zip(owner).filter(|_| opens)?;
        let Content { size_bytes, checksum, facts, .. } = *self.contents.get(&entry.file)?;
        Some((entry.file, SpooledArtifact { id, size_bytes, checksum, facts }))
    }

    /// Number of artifacts.
    pub(crate) fn len(&self) -> usize {
        self.artifacts.len()
    }

    fn promise(&mut self, id: ArtifactId, file: FileId, session: SessionId, now: Moment) {
        let promise = Promise::Announced { since: now };
        self.artifacts.insert(id, Entry { file, session, promise });
        self.expiry.insert((promise.until(&self.retention), id));
        if let Some((_, artifacts)) = self.sessions.get_mut(&session) {
            artifacts.insert(id);
        }
        if let Some(content) = self.contents.get_mut(&file) {
            content.artifacts.insert((promise.rank(), id));
        }
    }

    /// Takes an artifact out of every table but its file's key.
    fn take(&mut self, id: ArtifactId) -> Option<Entry> {
        let entry = self.artifacts.remove(&id)?;
        self.expiry.remove(&(entry.promise.until(&self.retention), id));
        if let Some((_, artifacts)) = self.sessions.get_mut(&entry.session) {
            artifacts.remove(&id);
        }
        if let Some(content) = self.contents.get_mut(&entry.file) {
            content.artifacts.remove(&(entry.promise.rank(), id));
        }
        Some(entry)
    }

    fn drop_content(&mut self, file: FileId) -> Option<Content> {
        let content = self.contents.remove(&file)?;
        // A second file of the same key may have taken its place.
        if self.by_key.get(&content.key) == Some(&file) {
            self.by_key.remove(&content.key);
        }
        Some(content)
    }

    fn standing(&self, file: FileId) -> Option<Standing> {
        let (dearest, _) = self.contents.get(&file)?.artifacts.last()?;
        Some(dearest.standing(&self.retention))
    }
}
