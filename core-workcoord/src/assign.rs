//! Chooses the worker for a work item: rendezvous hashing of the affinity key over the workers in
//! rotation, and the first candidate that has room.
//!
//! Wanted: equal keys meet the same worker; a worker that leaves moves only its own keys; a hot key
//! spills to its next candidates instead of queueing behind itself; the choice depends on the
//! roster and nothing else. The highest score among the workers with room *is* the first candidate
//! with room, so one pass over a dense table does it all, without sorting.

use xxhash_rust::xxh3::xxh3_64;

use crate::id::{AffinityKey, SessionId, WorkerId};

/// A worker's hash, taken once. Stands for the worker wherever it is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Node(u64);

impl Node {
    /// Hashes a worker's stable name.
    pub fn of(worker: &WorkerId) -> Self {
        Self(xxh3_64(worker.as_str().as_bytes()))
    }
}

/// How much room a worker has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Room {
    /// None: full, or it refused and has not spoken since.
    None,
    /// Its slots are taken; its local queue takes more.
    Ahead,
    /// A slot is free.
    Slot,
}

/// One worker in rotation.
#[derive(Clone, Copy, Debug)]
pub struct Seat {
    node: Node,
    session: SessionId,
    room: Room,
}

/// What the choice came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// This one.
    Take {
        /// The chosen worker's session.
        session: SessionId,
        /// It is the key's first choice among all workers in rotation.
        first_choice: bool,
    },
    /// Those with room are to be avoided; another in rotation will have room later.
    Wait,
    /// Nobody in rotation has room.
    NoRoom,
}

/// The workers in rotation, as a dense table. Its order is of no meaning.
#[derive(Clone, Debug, Default)]
pub struct Rotation {
    seats: Vec<Seat>,
    roomy: usize,
}

/// Mixes a key with a node into a score (the finaliser of splitmix64).
fn score(key: AffinityKey, node: Node) -> u64 {
    let mut x = key.0 ^ node.0;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Rotation {
    /// Puts a worker into rotation; gives its seat.
    pub fn join(&mut self, node: Node, session: SessionId, room: Room) -> usize {
        self.seats.push(Seat { node, session, room });
        self.roomy += usize::from(room > Room::None);
        self.seats.len() - 1
    }

    /// Takes a worker out. Gives the session whose seat moved to `seat`, if one did.
    pub fn leave(&mut self, seat: usize) -> Option<SessionId> {
        let gone = self.seats.swap_remove(seat);
        self.roomy -= usize::from(gone.room > Room::None);
        self.seats.get(seat).map(|moved| moved.session)
    }

    /// Notes a worker's room. Says whether it has more than before.
    pub fn set_room(&mut self, seat: usize, room: Room) -> bool {
        let before = std::mem::replace(&mut self.seats[seat].room, room);
        self.roomy -= usize::from(before > Room::None);
        self.roomy += usize::from(room > Room::None);
        room > before
    }

    /// A worker's room.
    pub fn room(&self, seat: usize) -> Room {
        self.seats[seat].room
    }

    /// Whose seat this is.
    pub fn session(&self, seat: usize) -> Option<SessionId> {
        self.seats.get(seat).map(|seat| seat.session)
    }

    /// Whether any worker has room.
    pub fn has_room(&self) -> bool {
        self.roomy > 0
    }

    /// How many workers have room.
    pub fn roomy(&self) -> usize {
        self.roomy
    }

    /// How many workers are in rotation.
    pub fn len(&self) -> usize {
        self.seats.len()
    }

    /// Whether no worker is in rotation.
    pub fn is_empty(&self) -> bool {
        self.seats.is_empty()
    }

    /// Chooses for a key. A free slot anywhere is better than the queue of a better candidate.
    ///
    /// Workers in `avoid` are chosen only when nobody else is in rotation: the work failed there,
    /// and waiting for another worker is better than spending its attempts on the same one.
    pub fn choose(&self, key: AffinityKey, avoid: &[Node]) -> Pick {
        if !avoid.is_empty() && self.seats.iter().any(|seat| !avoid.contains(&seat.node)) {
            return self.choose_among(key, |seat| !avoid.contains(&seat.node), Pick::Wait);
        }
        self.choose_among(key, |_| true, Pick::NoRoom)
    }

    /// Chooses a second worker for a key, never one of `taken`.
    pub fn choose_other(&self, key: AffinityKey, taken: &[Node]) -> Pick {
        self.choose_among(key, |seat| !taken.contains(&seat.node), Pick::NoRoom)
    }

    fn choose_among(&self, key: AffinityKey, allowed: impl Fn(&Seat) -> bool, none: Pick) -> Pick {
        let mut first = 0;
        let mut best: Option<(Room, u64, SessionId)> = None;
        for seat in &self.seats {
            let score = score(key, seat.node);
            first = first.max(score);
            let candidate = (seat.room, score, seat.session);
            if seat.room > Room::None && Some(candidate) > best && allowed(seat) {
                best = Some(candidate);
            }
        }
        match best {
            Some((_, score, session)) => Pick::Take { session, first_choice: score == first },
            None => none,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::hash::{Hash, Hasher};

    use proptest::prelude::*;
    use rendezvous_hash::{IdNode, NodeHasher, RendezvousNodes};

    use super::*;

    /// Our score inside the crate `rendezvous_hash`, which sorts every node for every pick.
    struct OurScore;

    /// Keeps the one number that is written to it.
    #[derive(Default)]
    struct Keep(u64);

    impl Hasher for Keep {
        fn write(&mut self, _: &[u8]) {
            unreachable!("keys are numbers")
        }
        fn write_u64(&mut self, number: u64) {
            self.0 = number;
        }
        fn finish(&self) -> u64 {
            self.0
        }
    }

    impl NodeHasher<u64> for OurScore {
        fn hash<T: Hash>(&self, node: &u64, key: &T) -> u64 {
            let mut keep = Keep::default();
            key.hash(&mut keep);
            score(AffinityKey(keep.0), Node(*node))
        }
    }

    fn node(i: u64) -> Node {
        Node::of(&WorkerId::new(&format!("worker-{i}")).unwrap())
    }

    proptest! {
        #[test]
        fn the_pick_is_the_oracles_first_candidate_with_room(
            rooms in prop::collection::vec(0..3_u8, 1..40),
            keys in prop::collection::vec(any::<u64>(), 1..20),
        ) {
            let rooms: Vec<_> = rooms
                .iter()
                .map(|room| [Room::None, Room::Ahead, Room::Slot][usize::from(*room)])
                .collect();
            let mut rotation = Rotation::default();
            let mut oracle = RendezvousNodes::new(OurScore);
            for (i, room) in (0..).zip(&rooms) {
                rotation.join(node(i), SessionId(i), *room);
                oracle.insert(IdNode::new(node(i).0));
            }
            for key in keys {
                let order: Vec<u64> = oracle
                    .calc_candidates(&key)
                    .map(|found| (0..).find(|i| node(*i).0 == **found).unwrap())
                    .collect();
                let with = |room| order.iter().find(|i| rooms[usize::try_from(**i).unwrap()] == room);
                let expected = with(Room::Slot).or_else(|| with(Room::Ahead));
                let pick = rotation.choose(AffinityKey(key), &[]);
                match expected {
                    Some(i) => prop_assert_eq!(
                        pick,
                        Pick::Take { session: SessionId(*i), first_choice: *i == order[0] }
                    ),
                    None => prop_assert_eq!(pick, Pick::NoRoom),
                }
            }
        }
    }

    #[test]
    fn a_worker_to_avoid_is_waited_for_only_while_another_is_there() {
        let mut rotation = Rotation::default();
        let bad = rotation.join(node(1), SessionId(1), Room::Slot);
        let key = AffinityKey(7);
        let take = |i| Pick::Take { session: SessionId(i), first_choice: true };
        assert_eq!(rotation.choose(key, &[node(1)]), take(1), "nobody else is there");
        let good = rotation.join(node(2), SessionId(2), Room::None);
        assert_eq!(rotation.choose(key, &[node(1)]), Pick::Wait);
        assert!(rotation.set_room(good, Room::Slot));
        assert!(matches!(
            rotation.choose(key, &[node(1)]),
            Pick::Take { session: SessionId(2), .. }
        ));
        assert_eq!(rotation.choose_other(key, &[node(1), node(2)]), Pick::NoRoom);
        assert_eq!(rotation.leave(bad), Some(SessionId(2)), "the last seat moves into the gap");
        assert_eq!((rotation.len(), rotation.roomy(), rotation.is_empty()), (1, 1, false));
    }
}
