//! The workers as one API node sees them: where discovery says they are, the session with each, and
//! who is in rotation. Knows what is on each session; what to do about it is the coordinator's.

use std::collections::BTreeMap;

use crate::assign::{Node, Room, Rotation};
use crate::heartbeat::Pulse;
use crate::id::{Attempt, Endpoint, SessionId, WorkId, WorkerId};
use crate::message::{WorkRef, WorkerStatus};
use crate::moment::Moment;

/// An address that discovery named, or that still has a session.
#[derive(Clone, Debug, Default)]
pub struct Post {
    /// Discovery names it now.
    pub listed: bool,
    /// The session with it, in any phase.
    pub session: Option<SessionId>,
    /// Dials and sessions that failed in a row.
    pub failures: u32,
    /// When to dial again.
    pub redial_at: Option<Moment>,
    /// Since when a once live worker is away, for the reconnect time.
    pub away_since: Option<Moment>,
}

/// One life of a control stream.
#[derive(Clone, Debug)]
pub struct Session {
    /// Where it leads.
    pub endpoint: Endpoint,
    /// When it wants to be woken.
    pub wake_at: Moment,
    /// Discovery names its address now.
    pub listed: bool,
    /// How far it is.
    pub phase: Phase,
}

/// How far a session is.
///
/// - `Dialing → Opened`: the stream is open.
/// - `Opened → Live`: `Welcome` came.
/// - any `→` gone: closed by either side, silent for too long, or not opened in time.
#[derive(Clone, Debug)]
pub enum Phase {
    /// The stream is being opened.
    Dialing,
    /// The stream is open; the worker has not introduced itself.
    Opened,
    /// The worker is known.
    Live(Box<Live>),
}

/// A worker with a session.
#[derive(Clone, Debug)]
pub struct Live {
    /// Its name.
    pub worker: WorkerId,
    /// Its hash.
    pub node: Node,
    /// Items it runs at once.
    pub slots: u32,
    /// Where its artifacts are.
    pub base_url: String,
    /// What it last said of itself; `None` until it did.
    pub status: Option<WorkerStatus>,
    /// It refused work and has not spoken of itself since.
    pub held: bool,
    /// Signs of life.
    pub pulse: Pulse,
    /// When it became live.
    pub since: Moment,
    /// The attempts on it that are not fetched.
    pub lines: BTreeMap<WorkId, Attempt>,
    /// Cancellations it has not confirmed.
    pub cancelling: BTreeMap<WorkRef, Cancelling>,
    /// Attempts that take up room: unfinished ones, and cancelled ones until confirmed.
    pub occupied: u32,
    /// Its seat in the rotation, if it is in rotation.
    pub seat: Option<usize>,
}

/// A cancellation on its way.
#[derive(Clone, Copy, Debug)]
pub struct Cancelling {
    /// When it was sent.
    pub since: Moment,
    /// The attempt takes up room until the worker confirms.
    pub occupies: bool,
}

/// How a worker stands, in the words of the design.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// No live session yet.
    Connecting,
    /// Live and taking work.
    Accepting,
    /// Live and taking none.
    NotAccepting,
    /// Leaving.
    Draining,
    /// The session is gone and a redial is due.
    Lost,
}

impl Live {
    /// A worker that has just introduced itself.
    pub fn new(worker: WorkerId, slots: u32, base_url: String, pulse: Pulse, now: Moment) -> Self {
        Self {
            node: Node::of(&worker),
            worker,
            slots,
            base_url,
            status: None,
            held: false,
            pulse,
            since: now,
            lines: BTreeMap::new(),
            cancelling: BTreeMap::new(),
            occupied: 0,
            seat: None,
        }
    }

    /// Whether it takes work, by its own words.
    pub fn accepts(&self) -> bool {
        self.status.is_some_and(|s| s.alive && s.accepting_work && !s.draining)
    }

    /// Whether it is leaving, by its own words.
    pub fn drains(&self) -> bool {
        self.status.is_some_and(|status| status.draining)
    }

    /// Whether nothing of ours is on it.
    pub fn is_idle(&self) -> bool {
        self.lines.is_empty() && self.cancelling.is_empty()
    }

    /// The room it has for us.
    pub fn room(&self, ahead: u32) -> Room {
        if self.held {
            Room::None
        } else if self.occupied < self.slots {
            Room::Slot
        } else if self.occupied < self.slots.saturating_add(ahead) {
            Room::Ahead
        } else {
            Room::None
        }
    }
}

impl Session {
    /// The worker, once it is known.
    pub fn live(&self) -> Option<&Live> {
        match &self.phase {
            Phase::Live(live) => Some(live),
            Phase::Dialing | Phase::Opened => None,
        }
    }

    /// The worker, once it is known, to change.
    pub fn live_mut(&mut self) -> Option<&mut Live> {
        match &mut self.phase {
            Phase::Live(live) => Some(live),
            Phase::Dialing | Phase::Opened => None,
        }
    }
}

/// All workers.
#[derive(Clone, Debug)]
pub struct Roster {
    /// Room on a worker beyond its slots.
    ahead: u32,
    posts: BTreeMap<Endpoint, Post>,
    sessions: BTreeMap<SessionId, Session>,
    by_worker: BTreeMap<WorkerId, SessionId>,
    rotation: Rotation,
    /// Room or rotation grew since this was last taken: waiting work may go.
    grew: bool,
}

impl Roster {
    /// Knows nobody yet.
    pub fn new(ahead: u32) -> Self {
        Self {
            ahead,
            posts: BTreeMap::new(),
            sessions: BTreeMap::new(),
            by_worker: BTreeMap::new(),
            rotation: Rotation::default(),
            grew: false,
        }
    }

    /// An address's record, made when it is new.
    pub fn post_mut(&mut self, endpoint: &Endpoint) -> &mut Post {
        self.posts.entry(endpoint.clone()).or_default()
    }

    /// An address's record.
    pub fn post(&self, endpoint: &Endpoint) -> Option<&Post> {
        self.posts.get(endpoint)
    }

    /// All addresses.
    pub fn posts(&self) -> impl Iterator<Item = (&Endpoint, &Post)> {
        self.posts.iter()
    }

    /// Forgets an address that is neither listed nor has a session.
    pub fn forget_post(&mut self, endpoint: &Endpoint) {
        self.posts.remove(endpoint);
    }

    /// Adds a session.
    pub fn add(&mut self, id: SessionId, session: Session) {
        self.sessions.insert(id, session);
    }

    /// A session.
    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id)
    }

    /// A session, to change.
    pub fn session_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    /// All sessions.
    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }

    /// A session's worker, once it is known.
    pub fn live(&self, id: SessionId) -> Option<&Live> {
        self.sessions.get(&id)?.live()
    }

    /// A session's worker, once it is known, to change. `refresh` after what may change its room.
    pub fn live_mut(&mut self, id: SessionId) -> Option<&mut Live> {
        self.sessions.get_mut(&id)?.live_mut()
    }

    /// The session of a worker of this name.
    pub fn session_of(&self, worker: &WorkerId) -> Option<SessionId> {
        self.by_worker.get(worker).copied()
    }

    /// A session's worker is known from now on.
    pub fn introduce(&mut self, id: SessionId, live: Live) {
        self.by_worker.insert(live.worker.clone(), id);
        if let Some(session) = self.sessions.get_mut(&id) {
            session.phase = Phase::Live(Box::new(live));
        }
    }

    /// Takes a session out of every table.
    pub fn remove(&mut self, id: SessionId) -> Option<Session> {
        self.leave_rotation(id);
        let session = self.sessions.remove(&id)?;
        if let Some(live) = session.live() {
            self.by_worker.remove(&live.worker);
        }
        if let Some(post) = self.posts.get_mut(&session.endpoint) {
            post.session = None;
        }
        Some(session)
    }

    /// Brings rotation and room up to date with a session's record.
    pub fn refresh(&mut self, id: SessionId) {
        let Some(session) = self.sessions.get(&id) else { return };
        let listed = session.listed;
        let Some(live) = session.live() else { return };
        let room = live.room(self.ahead);
        match (listed && live.accepts(), live.seat) {
            (true, Some(seat)) => self.grew |= self.rotation.set_room(seat, room),
            (true, None) => {
                let seat = self.rotation.join(live.node, id, room);
                self.live_mut(id).expect("looked up above").seat = Some(seat);
                self.grew = true;
            }
            (false, _) => self.leave_rotation(id),
        }
    }

    fn leave_rotation(&mut self, id: SessionId) {
        let Some(seat) = self.live_mut(id).and_then(|live| live.seat.take()) else { return };
        if let Some(moved) = self.rotation.leave(seat) {
            self.live_mut(moved).expect("a seat belongs to a live session").seat = Some(seat);
        }
        // Work that avoids the workers that stay may now have nobody else to wait for.
        self.grew = true;
    }

    /// The workers in rotation.
    pub fn rotation(&self) -> &Rotation {
        &self.rotation
    }

    /// Whether room or rotation grew since the last call.
    pub fn take_grew(&mut self) -> bool {
        std::mem::take(&mut self.grew)
    }

    /// How the worker at an address stands.
    pub fn standing(&self, post: &Post) -> Standing {
        let session = post.session.and_then(|id| self.session(id));
        match session.map(|session| (session.live(), session)) {
            Some((Some(live), _)) if live.drains() => Standing::Draining,
            Some((Some(live), _)) if live.accepts() && post.listed => Standing::Accepting,
            Some((Some(_), _)) => Standing::NotAccepting,
            Some((None, _)) => Standing::Connecting,
            None if post.away_since.is_some() => Standing::Lost,
            None => Standing::Connecting,
        }
    }
}
