//! One budget of bytes for artifacts and cached segments: who gets room, and what yields for it.
//! Pure: files are numbers here, time comes in, victims go out; `disk` does the removing.
//!
//! What yields, in this order: cached segments, least recently used first; acknowledged artifacts;
//! expired ones; then, only where an artifact would find no room at all, the oldest that nobody
//! acknowledged, whose work is done again. What is pinned or being written never yields.
//!
//! A file on its way out (a victim, or a removed file) no longer counts against the limits but is
//! still on the books until the caller says that it is gone, so that the books tell what is on disk.

use std::collections::{BTreeMap, BTreeSet};

use core_workcoord::moment::Moment;

mod held;

#[cfg(test)]
mod tests;

pub use held::{FileId, Kind, Standing};
use held::{Held, Rank};

/// The budget's size and the shares of it at which something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes for everything.
    pub capacity_bytes: u64,
    /// Beyond this share something yields.
    pub high_percent: u8,
    /// What yields, yields down to this share.
    pub low_percent: u8,
    /// Kept for artifacts.
    pub floor_percent: u8,
    /// Bytes of the disk that are not ours.
    pub keep_free_bytes: u64,
}

/// There is no room, whatever yields. Nothing has yielded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// How the disk is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes of artifacts, those being written included.
    pub spool_bytes: u64,
    /// Bytes of cached segments, those being downloaded included.
    pub cache_bytes: u64,
    /// Bytes of files that are being removed.
    pub leaving_bytes: u64,
    /// The budget as it is now: what was configured, or less where the disk has less.
    pub capacity_bytes: u64,
    /// What new artifacts can take before one that nobody acknowledged must yield.
    pub room_bytes: u64,
    /// There is room for the artifacts of new work.
    pub accepting: bool,
}

/// The books.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: Limits,
    capacity: u64,
    now: Moment,
    files: BTreeMap<FileId, Held>,
    order: BTreeSet<(Rank, u64, FileId)>,
    expiry: BTreeSet<(Moment, FileId)>,
    leaving: BTreeMap<FileId, u64>,
    spool_bytes: u64,
    cache_bytes: u64,
    /// Bytes that are promised to files and not yet on disk.
    unwritten: u64,
    /// Bytes that can yield without costing work, and those of cached segments among them.
    cheap_bytes: u64,
    idle_cache_bytes: u64,
    /// Bytes that can yield at the cost of work.
    dear_bytes: u64,
    accepting: bool,
    next_id: u64,
    next_use: u64,
}

impl Budget {
    /// Empty books.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            capacity: limits.capacity_bytes,
            now: Moment::ZERO,
            files: BTreeMap::new(),
            order: BTreeSet::new(),
            expiry: BTreeSet::new(),
            leaving: BTreeMap::new(),
            spool_bytes: 0,
            cache_bytes: 0,
            unwritten: 0,
            cheap_bytes: 0,
            idle_cache_bytes: 0,
            dear_bytes: 0,
            accepting: true,
            next_id: 1,
            next_use: 1,
        }
    }

    /// A file that is about to be written, empty so far.
    pub fn begin(&mut self, kind: Kind) -> FileId {
        self.insert(kind, Standing::Writing, 0)
    }

    /// A segment's file that is on disk already. The one added last is used last.
    pub fn found(&mut self, bytes: u64) -> FileId {
        self.insert(Kind::Segment, Standing::Cached, bytes)
    }

    /// Room for so many more bytes of a file that is being written. Gives the victims, which are
    /// to be removed first, then called [`Budget::gone`].
    pub fn grow(&mut self, file: FileId, by: u64) -> Result<Vec<FileId>, Refused> {
        let held = self.files.get(&file).expect("the caller writes it");
        let victims = match held.kind {
            Kind::Artifact => self.room_for_artifact(by)?,
            Kind::Segment => self.room_for_segment(by)?,
        };
        self.change(file, |held| held.bytes += by);
        Ok(victims)
    }

    /// So many bytes of what a file was given are on disk now.
    pub fn wrote(&mut self, file: FileId, by: u64) {
        self.change(file, |held| held.written = held.bytes.min(held.written + by));
    }

    /// A file is complete, or left as it is for now: its size is what it has on disk.
    pub fn settle(&mut self, file: FileId, bytes: u64, standing: Standing) {
        self.change(file, |held| {
            held.bytes = bytes;
            held.standing = standing;
        });
    }

    /// An artifact is dearer, or less dear, than before.
    pub fn stand(&mut self, file: FileId, standing: Standing) {
        self.change(file, |held| held.standing = standing);
    }

    /// A download that was left goes on: its size is reserved, and so many bytes are on disk.
    pub fn resume(&mut self, file: FileId, written: u64) {
        self.change(file, |held| {
            held.standing = Standing::Writing;
            held.written = held.bytes.min(written);
        });
    }

    /// Somebody has the file open: it does not yield, and counts as just used.
    pub fn pin(&mut self, file: FileId) {
        let used = self.next_use;
        self.next_use += 1;
        self.change(file, |held| {
            held.pins += 1;
            held.used = used;
        });
    }

    /// Somebody closed it. True where it was to be removed and nobody else has it open: the caller
    /// removes it, then calls [`Budget::gone`].
    pub fn unpin(&mut self, file: FileId) -> bool {
        self.change(file, |held| held.pins -= 1);
        let held = &self.files[&file];
        let last = held.doomed && held.pins == 0;
        if last {
            self.leave(file);
        }
        last
    }

    /// Takes a file off the books. True where nobody has it open: the caller removes it, then
    /// calls [`Budget::gone`]. Otherwise that is told by [`Budget::unpin`].
    pub fn remove(&mut self, file: FileId) -> bool {
        if !self.files.contains_key(&file) {
            return false;
        }
        self.change(file, |held| held.doomed = true);
        let free = self.files[&file].pins == 0;
        if free {
            self.leave(file);
        }
        free
    }

    /// A victim or a removed file is no longer on disk.
    pub fn gone(&mut self, file: FileId) {
        self.leaving.remove(&file);
        self.admit();
    }

    /// Time passes. A moment before the last one counts as the last one.
    pub fn advance(&mut self, now: Moment) {
        self.now = self.now.max(now);
        while let Some((until, file)) = self.expiry.first().copied() {
            if until > self.now {
                break;
            }
            self.change(file, |held| held.standing = Standing::Expired { since: until });
        }
    }

    /// What the disk has free now. Gives the victims of a budget that became smaller; nothing
    /// among them that costs work.
    pub fn disk_has_free(&mut self, free_bytes: u64) -> Vec<FileId> {
        let ours = (self.total() + self.leaving_bytes()).saturating_sub(self.unwritten);
        let there = (ours + free_bytes).saturating_sub(self.limits.keep_free_bytes);
        self.capacity = self.limits.capacity_bytes.min(there);
        let mut victims = Vec::new();
        let cache_limit = self.cache_limit();
        while self.cache_bytes > cache_limit && self.idle_cache_bytes > 0 {
            victims.push(self.take_first());
        }
        if self.total() > self.high() {
            self.yield_down_to(self.low(), &mut victims);
        }
        self.admit();
        victims
    }

    /// The disk is full though the books say otherwise: what costs no work yields, up to so many
    /// bytes.
    pub fn relieve(&mut self, wanted_bytes: u64) -> Vec<FileId> {
        let mut victims = Vec::new();
        self.yield_down_to(self.total().saturating_sub(wanted_bytes), &mut victims);
        victims
    }

    /// Whether a file is on the books and not on its way out.
    pub fn holds(&self, file: FileId) -> bool {
        self.files.get(&file).is_some_and(|held| !held.doomed)
    }

    /// How the disk is.
    pub fn usage(&self) -> Usage {
        Usage {
            spool_bytes: self.spool_bytes,
            cache_bytes: self.cache_bytes,
            leaving_bytes: self.leaving_bytes(),
            capacity_bytes: self.capacity,
            room_bytes: self.room(),
            accepting: self.accepting,
        }
    }

    fn room_for_artifact(&mut self, by: u64) -> Result<Vec<FileId>, Refused> {
        let fixed = self.total() - self.cheap_bytes - self.dear_bytes;
        if fixed.saturating_add(by) > self.capacity {
            return Err(Refused);
        }
        let mut victims = Vec::new();
        if self.total() + by > self.high() {
            self.yield_down_to(self.low().saturating_sub(by), &mut victims);
        }
        while self.total() + by > self.capacity {
            victims.push(self.take_first());
        }
        Ok(victims)
    }

    /// Segments make room among themselves, and leave the floor and all artifacts alone.
    fn room_for_segment(&mut self, by: u64) -> Result<Vec<FileId>, Refused> {
        let limit = self.cache_limit();
        let fixed = self.cache_bytes - self.idle_cache_bytes;
        if fixed.saturating_add(by) > limit {
            return Err(Refused);
        }
        let mut victims = Vec::new();
        if self.cache_bytes + by > limit {
            let target = limit.saturating_sub(self.high() - self.low()).saturating_sub(by);
            while self.cache_bytes > target && self.idle_cache_bytes > 0 {
                victims.push(self.take_first());
            }
        }
        Ok(victims)
    }

    /// Cached segments never take the floor, nor what artifacts have beyond it.
    fn cache_limit(&self) -> u64 {
        self.high().saturating_sub(self.floor().max(self.spool_bytes))
    }

    fn yield_down_to(&mut self, target: u64, victims: &mut Vec<FileId>) {
        while self.total() > target && self.cheap_bytes > 0 {
            victims.push(self.take_first());
        }
    }

    fn take_first(&mut self) -> FileId {
        let (_, _, file) = self.order.first().copied().expect("the sums say that there is one");
        self.leave(file);
        file
    }

    fn insert(&mut self, kind: Kind, standing: Standing, bytes: u64) -> FileId {
        let file = FileId(self.next_id);
        self.next_id += 1;
        let used = self.next_use;
        self.next_use += 1;
        let held = Held { kind, standing, bytes, written: 0, pins: 0, used, doomed: false };
        self.add(file, &held);
        self.files.insert(file, held);
        self.admit();
        file
    }

    fn leave(&mut self, file: FileId) {
        let held = self.files.remove(&file).expect("it is on the books");
        self.subtract(file, &held);
        self.leaving.insert(file, held.bytes);
        self.admit();
    }

    fn change(&mut self, file: FileId, change: impl FnOnce(&mut Held)) {
        let mut held = self.files.remove(&file).expect("it is on the books");
        self.subtract(file, &held);
        change(&mut held);
        self.add(file, &held);
        self.files.insert(file, held);
        self.admit();
    }

    fn add(&mut self, file: FileId, held: &Held) {
        *self.bytes_of(held.kind) += held.bytes;
        if held.standing == Standing::Writing {
            self.unwritten += held.bytes - held.written;
        }
        if let Some((rank, at)) = held.place() {
            self.order.insert((rank, at, file));
            *self.bytes_at(rank) += held.bytes;
            if rank == Rank::Cached {
                self.idle_cache_bytes += held.bytes;
            }
        }
        if let Some(until) = held.expires() {
            self.expiry.insert((until, file));
        }
    }

    fn subtract(&mut self, file: FileId, held: &Held) {
        *self.bytes_of(held.kind) -= held.bytes;
        if held.standing == Standing::Writing {
            self.unwritten -= held.bytes - held.written;
        }
        if let Some((rank, at)) = held.place() {
            self.order.remove(&(rank, at, file));
            *self.bytes_at(rank) -= held.bytes;
            if rank == Rank::Cached {
                self.idle_cache_bytes -= held.bytes;
            }
        }
        if let Some(until) = held.expires() {
            self.expiry.remove(&(until, file));
        }
    }

    fn bytes_of(&mut self, kind: Kind) -> &mut u64 {
        match kind {
            Kind::Artifact => &mut self.spool_bytes,
            Kind::Segment => &mut self.cache_bytes,
        }
    }

    fn bytes_at(&mut self, rank: Rank) -> &mut u64 {
        match rank {
            Rank::Cached | Rank::Acknowledged | Rank::Expired => &mut self.cheap_bytes,
            Rank::Unacknowledged => &mut self.dear_bytes,
        }
    }

    /// Work is refused below the floor, and welcome again when there is some room above it, so
    /// that the word does not change with every artifact.
    fn admit(&mut self) {
        let enough = match self.accepting {
            true => self.floor(),
            false => self.floor() + (self.high() - self.low()),
        };
        // Of a disk with nothing left, every share is nothing.
        self.accepting = self.room() >= enough.max(1);
    }

    fn room(&self) -> u64 {
        self.capacity.saturating_sub(self.total() - self.cheap_bytes)
    }

    fn total(&self) -> u64 {
        self.spool_bytes + self.cache_bytes
    }

    fn leaving_bytes(&self) -> u64 {
        self.leaving.values().sum()
    }

    fn high(&self) -> u64 {
        self.share(self.limits.high_percent)
    }

    fn low(&self) -> u64 {
        self.share(self.limits.low_percent)
    }

    fn floor(&self) -> u64 {
        self.share(self.limits.floor_percent)
    }

    /// Divided first: a share of the largest budget must not overflow.
    fn share(&self, percent: u8) -> u64 {
        let percent = u64::from(percent);
        self.capacity / 100 * percent + self.capacity % 100 * percent / 100
    }
}
