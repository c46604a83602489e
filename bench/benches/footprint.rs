//! Figures that are not times: bytes per queued item beyond its spec, the share of keys that move
//! when a worker leaves, and the spread of load under a Zipf distribution of keys.

#![expect(clippy::cast_possible_truncation, reason = "small figures, on machines of 64 bits")]

use core_workcoord::assign::{Node, Pick, Room, Rotation};
use core_workcoord::id::{AffinityKey, SessionId, WorkerId};
use peak_alloc::PeakAlloc;
use tributary_bench::Pool;
use xxhash_rust::xxh3::xxh3_64;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

fn main() {
    bytes_per_item();
    moved_keys();
    spread();
}

fn bytes_per_item() {
    println!("bytes per queued item beyond its spec (aim: 512 or less)");
    for (queries, items) in [(1, 100_000), (200, 500), (20_000, 5)] {
        let mut pool = Pool::new(0);
        let before = ALLOCATED.current_usage();
        (0..queries).for_each(|_| pool.submit(items));
        let each = (ALLOCATED.current_usage() - before) / (queries * items) as usize;
        println!("  {queries:>6} queries of {items:>6} items: {each:>4} bytes an item");
        drop(pool);
    }
}

fn rotation(workers: u64) -> Rotation {
    let mut rotation = Rotation::default();
    for i in 0..workers {
        let worker = WorkerId::new(&format!("worker-{i}")).expect("a plain name");
        rotation.join(Node::of(&worker), SessionId(i), Room::Slot);
    }
    rotation
}

fn picked(rotation: &Rotation, key: u64) -> SessionId {
    match rotation.choose(AffinityKey(xxh3_64(&key.to_le_bytes())), &[]) {
        Pick::Take { session, .. } => session,
        Pick::Wait | Pick::NoRoom => panic!("everybody has room"),
    }
}

fn moved_keys() {
    println!("share of keys that move when one of N workers leaves (aim: 1/N within 10 %)");
    for workers in [10_u64, 100, 1_000] {
        let keys = 2_000 * workers;
        let all = rotation(workers);
        let mut owned = vec![0_u64; workers as usize];
        (0..keys).for_each(|key| owned[picked(&all, key).0 as usize] += 1);
        let share = |keys_owned: u64| keys_owned as f64 * workers as f64 / keys as f64;
        let least = share(owned.iter().min().copied().unwrap_or(0));
        let most = share(owned.iter().max().copied().unwrap_or(0));
        // The keys that move are the leaver's and no others.
        let leaver = workers as usize / 2;
        let mut rest = all.clone();
        rest.leave(leaver);
        let strays = (0..keys.min(200_000)).filter(|key| {
            let before = picked(&all, *key);
            before != picked(&rest, *key) && before != SessionId(leaver as u64)
        });
        println!(
            "  N = {workers:>5}: {least:.3} to {most:.3} times 1/N, whoever leaves; {} others move",
            strays.count()
        );
    }
}

/// Keys drawn with Zipf's law (exponent 1 over 10,000 keys), 1,000 items a round: how the busiest
/// worker compares with the average, with room unlimited and with room for the average and a fifth.
fn spread() {
    println!("load of the busiest worker in units of the average, Zipf keys, 20,000 items");
    let weights: Vec<f64> = (1..=10_000).map(|rank| 1.0 / f64::from(rank)).collect();
    let total: f64 = weights.iter().sum();
    let draw = |i: u64| {
        let mut left = (xxh3_64(&i.to_le_bytes()) as f64 / u64::MAX as f64) * total;
        let rank = weights.iter().position(|weight| {
            left -= weight;
            left <= 0.0
        });
        rank.unwrap_or(0) as u64
    };
    let items: Vec<u64> = (0..20_000).map(draw).collect();
    for workers in [10_u64, 100] {
        let average = items.len() as u64 / workers;
        for (name, limit) in [("unlimited", u64::MAX), ("limited", average + average / 5)] {
            let mut rotation = rotation(workers);
            let mut load = vec![0_u64; workers as usize];
            let mut first = 0;
            for key in &items {
                let pick = rotation.choose(AffinityKey(xxh3_64(&key.to_le_bytes())), &[]);
                let Pick::Take { session, first_choice } = pick else {
                    panic!("room for everybody")
                };
                first += u64::from(first_choice);
                let seat = session.0 as usize;
                load[seat] += 1;
                if load[seat] >= limit {
                    rotation.set_room(seat, Room::None);
                }
            }
            let busiest = load.iter().max().copied().unwrap_or(0) as f64 / average as f64;
            let hits = first as f64 / items.len() as f64;
            println!(
                "  N = {workers:>4}, room {name:<9}: busiest {busiest:.2}, first choice {hits:.3}"
            );
        }
    }
}
