//! Placement on its own: a worker that leaves moves its own keys and no others, keys spread evenly,
//! a hot key spills, and the order of joining is of no matter. The crate `rendezvous_hash` stands
//! beside it where the same can be asked of both.

use std::collections::BTreeMap;

use core_workcoord::assign::{Node, Pick, Room, Rotation};
use core_workcoord::id::{AffinityKey, SessionId, WorkerId};
use proptest::prelude::{Just, Strategy, any};
use proptest::sample::select;
use rendezvous_hash::{DefaultNodeHasher, IdNode, RendezvousNodes};

use super::{cases, check};

fn node(worker: u64) -> Node {
    Node::of(&WorkerId::new(&format!("worker-{worker}")).expect("a plain name"))
}

fn rotation(workers: impl IntoIterator<Item = (u64, Room)>) -> Rotation {
    let mut rotation = Rotation::default();
    for (worker, room) in workers {
        rotation.join(node(worker), SessionId(worker), room);
    }
    rotation
}

/// Workers zero up to `n`, all with a free slot.
fn all_free(n: u64) -> Rotation {
    rotation((0..n).map(|worker| (worker, Room::Slot)))
}

/// The worker a key meets.
#[track_caller]
fn owner(rotation: &Rotation, key: u64) -> u64 {
    match rotation.choose(AffinityKey(key), &[]) {
        Pick::Take { session, first_choice: true } => session.0,
        pick => panic!("key {key} does not meet its first choice: {pick:?}"),
    }
}

/// All candidates of a key, best first: whoever is chosen is taken away, then the next one asked.
fn ranking(workers: &[u64], key: u64) -> Vec<u64> {
    let mut left = workers.to_vec();
    let mut ranked = Vec::new();
    while !left.is_empty() {
        let best = owner(&rotation(left.iter().map(|worker| (*worker, Room::Slot))), key);
        left.retain(|worker| *worker != best);
        ranked.push(best);
    }
    ranked
}

/// How many of the keys each worker has.
fn shares(rotation: &Rotation, keys: u64) -> BTreeMap<u64, u64> {
    let mut shares = BTreeMap::new();
    (0..keys).for_each(|key| *shares.entry(owner(rotation, key)).or_default() += 1);
    shares
}

#[test]
fn a_worker_that_leaves_moves_its_own_keys_and_no_others() {
    for workers in [2, 10, 100] {
        let before = all_free(workers);
        for gone in [0, workers / 2, workers - 1] {
            let stay = (0..workers).filter(|worker| *worker != gone);
            let after = rotation(stay.map(|worker| (worker, Room::Slot)));
            for key in 0..2_000 {
                let (old, new) = (owner(&before, key), owner(&after, key));
                assert_eq!(old == gone, old != new, "key {key} of worker {old} went to {new}");
            }
        }
    }
}

type OtherCrate = RendezvousNodes<IdNode<u64>, DefaultNodeHasher>;

fn other_crate(workers: std::ops::Range<u64>) -> OtherCrate {
    let mut nodes = RendezvousNodes::default();
    workers.for_each(|worker| assert!(nodes.insert(IdNode::new(worker)).is_none()));
    nodes
}

#[test]
fn the_other_crate_moves_keys_by_the_same_rule() {
    for workers in [10_u64, 100] {
        let before = other_crate(0..workers);
        let after = other_crate(1..workers);
        let ours = (all_free(workers), rotation((1..workers).map(|worker| (worker, Room::Slot))));
        let (mut moved, mut moved_here) = (0, 0);
        for key in 0..10_000_u64 {
            let first = |nodes: &OtherCrate| nodes.calc_candidates(&key).next().map(|node| **node);
            let (old, new) = (first(&before), first(&after));
            assert_eq!(old == Some(0), old != new);
            moved += u64::from(old != new);
            moved_here += u64::from(owner(&ours.0, key) != owner(&ours.1, key));
        }
        // The same share within the noise of ten thousand keys.
        let fair = 10_000 / workers;
        let near = |count: u64| count.abs_diff(fair) <= fair / 3;
        assert!(near(moved) && near(moved_here), "{moved} and {moved_here}, fair is {fair}");
    }
}

#[test]
fn every_worker_has_its_share_of_the_keys() {
    for (workers, keys) in [(10, 200_000), (100, 1_000_000)] {
        let fair = keys / workers;
        for (worker, share) in shares(&all_free(workers), keys) {
            let off = share.abs_diff(fair);
            assert!(off * 10 <= fair, "worker {worker} has {share} keys, {fair} would be fair");
        }
    }
}

#[test]
fn keys_that_differ_in_one_bit_do_not_stay_together() {
    let rotation = all_free(16);
    for bit in 0..64 {
        let together = (0..4_000_u64).filter(|key| {
            let key = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            owner(&rotation, key) == owner(&rotation, key ^ (1 << bit))
        });
        let together = together.count();
        assert!((150..350).contains(&together), "bit {bit}: {together} of 4000; 250 are fair");
    }
}

#[test]
fn the_order_of_joining_is_of_no_matter() {
    let orders = Just((0..12_u64).collect::<Vec<_>>()).prop_shuffle();
    let straight = all_free(12);
    check(cases(100), 13, &(orders, any::<u64>()), |(order, key)| {
        let shuffled = rotation(order.into_iter().map(|worker| (worker, Room::Slot)));
        assert_eq!(owner(&shuffled, key), owner(&straight, key));
    });
}

#[test]
fn the_choice_is_the_best_ranked_worker_with_the_most_room() {
    let room = select(vec![Room::None, Room::Ahead, Room::Slot]);
    let rooms = proptest::collection::vec(room, 1..8);
    let avoid = proptest::collection::vec(0..8_u64, 0..4);
    check(cases(400), 14, &(rooms, avoid, any::<u64>()), |(rooms, avoid, key)| {
        let workers: Vec<u64> = (0..rooms.len() as u64).collect();
        let ranked = ranking(&workers, key);
        let rotation = rotation(workers.iter().copied().zip(rooms.iter().copied()));
        let room_of = |worker: u64| rooms[usize::try_from(worker).expect("a few workers")];
        let best = |allowed: &dyn Fn(u64) -> bool| {
            [Room::Slot, Room::Ahead].into_iter().find_map(|room| {
                let candidates = ranked.iter().copied();
                candidates.filter(|worker| allowed(*worker)).find(|worker| room_of(*worker) == room)
            })
        };
        let took = |pick: Pick| match pick {
            Pick::Take { session, first_choice } => {
                assert_eq!(first_choice, session.0 == ranked[0]);
                Some(session.0)
            }
            Pick::Wait | Pick::NoRoom => None,
        };
        let key = AffinityKey(key);
        assert_eq!(took(rotation.choose(key, &[])), best(&|_| true));
        assert_eq!(rotation.has_room(), best(&|_| true).is_some());

        let nodes: Vec<Node> = avoid.iter().map(|worker| node(*worker)).collect();
        let other = |worker: u64| !avoid.contains(&worker);
        assert_eq!(took(rotation.choose_other(key, &nodes)), best(&other));
        // Those to avoid are taken only when there is nobody else, room or not.
        let pick = rotation.choose(key, &nodes);
        if workers.iter().any(|worker| other(*worker)) {
            assert_eq!(took(pick), best(&other));
            assert!(avoid.is_empty() || pick != Pick::NoRoom, "another one will have room later");
        } else {
            assert_eq!(took(pick), best(&|_| true));
        }
    });
}

/// What can happen to a rotation.
#[derive(Clone, Debug)]
enum Change {
    Join(u64, Room),
    Leave(u64),
    SetRoom(u64, Room),
}

#[test]
fn seats_stay_with_their_sessions_however_workers_come_and_go() {
    let room = || select(vec![Room::None, Room::Ahead, Room::Slot]);
    let change = proptest::prop_oneof![
        (0..10_u64, room()).prop_map(|(worker, room)| Change::Join(worker, room)),
        (0..10_u64).prop_map(Change::Leave),
        (0..10_u64, room()).prop_map(|(worker, room)| Change::SetRoom(worker, room)),
    ];
    check(cases(300), 15, &proptest::collection::vec(change, 1..80), |changes| {
        let mut rotation = Rotation::default();
        let mut seats: BTreeMap<u64, (usize, Room)> = BTreeMap::new();
        for change in changes {
            match change {
                Change::Join(worker, room) if !seats.contains_key(&worker) => {
                    let seat = rotation.join(node(worker), SessionId(worker), room);
                    seats.insert(worker, (seat, room));
                }
                Change::Leave(worker) => {
                    let Some((seat, _)) = seats.remove(&worker) else { continue };
                    if let Some(moved) = rotation.leave(seat) {
                        seats.get_mut(&moved.0).expect("a seat that is taken").0 = seat;
                    }
                }
                Change::SetRoom(worker, room) => {
                    let Some(entry) = seats.get_mut(&worker) else { continue };
                    assert_eq!(rotation.set_room(entry.0, room), room > entry.1, "it has grown");
                    entry.1 = room;
                }
                Change::Join(..) => {}
            }
            for (worker, (seat, room)) in &seats {
                assert_eq!(rotation.session(*seat), Some(SessionId(*worker)));
                assert_eq!(rotation.room(*seat), *room);
            }
            let roomy = seats.values().filter(|(_, room)| *room > Room::None).count();
            assert_eq!((rotation.len(), rotation.roomy()), (seats.len(), roomy));
            assert_eq!((rotation.is_empty(), rotation.has_room()), (seats.is_empty(), roomy > 0));
            assert_eq!(rotation.session(seats.len()), None);
        }
    });
}

/// Keys as people ask for them: the k-th most wanted one is wanted 1/k as often as the first.
fn zipf_keys(kinds: u32, draws: usize) -> Vec<u64> {
    let weights: Vec<f64> = (1..=kinds).map(|rank| 1.0 / f64::from(rank)).collect();
    let total: f64 = weights.iter().sum();
    let mut dice = 7_u64;
    let mut draw = || {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut at = f64::from(u32::try_from(dice >> 32).expect("32 bits are left"))
            / f64::from(u32::MAX)
            * total;
        let found = weights.iter().position(|weight| {
            at -= weight;
            at <= 0.0
        });
        found.unwrap_or(0) as u64
    };
    (0..draws).map(|_| draw()).collect()
}

#[test]
fn hot_keys_spread_over_the_workers_that_have_room() {
    const WORKERS: usize = 10;
    const SLOTS: usize = 4;
    let keys = zipf_keys(1_000, 20_000);
    let mut rotation = all_free(WORKERS as u64);
    let (mut load, mut served, mut at_home) = ([0; WORKERS], [0; WORKERS], [0; WORKERS]);
    let mut under_way = std::collections::VecDeque::new();
    let (free, mut first_choices) = (all_free(WORKERS as u64), 0);
    let room = |load: usize| if load < SLOTS { Room::Slot } else { Room::None };
    for key in &keys {
        // Seven of ten slots are taken at any moment; what began first ends first.
        if under_way.len() == WORKERS * SLOTS * 7 / 10 {
            let done: usize = under_way.pop_front().expect("it is full");
            load[done] -= 1;
            rotation.set_room(done, room(load[done]));
        }
        let Pick::Take { session, first_choice } = rotation.choose(AffinityKey(*key), &[]) else {
            panic!("there is room")
        };
        let worker = usize::try_from(session.0).expect("a few workers");
        load[worker] += 1;
        assert!(load[worker] <= SLOTS, "worker {worker} has {} on {SLOTS} slots", load[worker]);
        rotation.set_room(worker, room(load[worker]));
        under_way.push_back(worker);
        served[worker] += 1;
        first_choices += usize::from(first_choice);
        at_home[usize::try_from(owner(&free, *key)).expect("a few workers")] += 1;
    }
    let fair = keys.len() / WORKERS;
    let most = |counts: [usize; WORKERS]| counts.into_iter().max().unwrap_or(0);
    assert!(most(at_home) > fair * 3 / 2, "the keys are hot: {at_home:?}");
    assert!(most(served) <= fair * 29 / 20, "and spread all the same: {served:?}");
    assert!(first_choices > keys.len() / 2, "most meet their own worker: {first_choices}");
}
