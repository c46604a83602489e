//! The cost of one choice among N workers, beside the crate `rendezvous_hash`. Aim: 10 µs or less at
//! 1,000 workers.

use std::hash::{Hash, Hasher};
use std::hint::black_box;

use core_workcoord::assign::{Node, Room, Rotation};
use core_workcoord::id::{AffinityKey, SessionId, WorkerId};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rendezvous_hash::{IdNode, NodeHasher, RendezvousNodes};
use xxhash_rust::xxh3::Xxh3;

/// The crate with a pinned hasher: its default one may change between releases of Rust.
struct Pinned;

impl NodeHasher<String> for Pinned {
    fn hash<T: Hash>(&self, node: &String, item: &T) -> u64 {
        let mut hasher = Xxh3::new();
        item.hash(&mut hasher);
        node.hash(&mut hasher);
        hasher.finish()
    }
}

fn worker(i: u64) -> WorkerId {
    WorkerId::new(&format!("worker-{i}")).expect("a plain name")
}

fn rotation(workers: u64, room: impl Fn(u64) -> Room) -> Rotation {
    let mut rotation = Rotation::default();
    for i in 0..workers {
        rotation.join(Node::of(&worker(i)), SessionId(i), room(i));
    }
    rotation
}

fn choose(c: &mut Criterion) {
    let mut group = c.benchmark_group("choose");
    for workers in [10, 100, 1_000] {
        let all = rotation(workers, |_| Room::Slot);
        let last = rotation(workers, |i| if i + 1 == workers { Room::Ahead } else { Room::None });
        let mut key = 0_u64;
        let mut next = || {
            key = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
            AffinityKey(key)
        };
        group.bench_function(BenchmarkId::new("all have room", workers), |b| {
            b.iter(|| black_box(all.choose(next(), &[])));
        });
        group.bench_function(BenchmarkId::new("one has room", workers), |b| {
            b.iter(|| black_box(last.choose(next(), &[])));
        });
        let mut oracle = RendezvousNodes::new(Pinned);
        for i in 0..workers {
            oracle.insert(IdNode::new(worker(i).to_string()));
        }
        group.bench_function(BenchmarkId::new("crate rendezvous_hash", workers), |b| {
            b.iter(|| black_box(oracle.calc_candidates(&next().0).next().map(|node| node.len())));
        });
    }
    group.finish();
}

criterion_group!(benches, choose);
criterion_main!(benches);
