//! Inputs handled per second: whole lives of work items, from the queue to done, with a full queue
//! and a large pool. Aim: 1,000,000 inputs per second and core at 1,000 workers.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tributary_bench::Pool;

const QUEUED: u32 = 100_000;
const QUERY: u32 = 500;

/// A pool with a full queue.
fn full(workers: u32) -> Pool {
    let mut pool = Pool::new(workers);
    while pool.coordinator.snapshot(Default::default()).queued < QUEUED {
        pool.submit(QUERY);
    }
    pool
}

fn lives(c: &mut Criterion) {
    let mut group = c.benchmark_group("inputs");
    group.measurement_time(Duration::from_secs(8));
    for workers in [10, 100, 1_000] {
        let mut pool = full(workers);
        let mut owed = pool.complete;
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::new("whole lives, 100k queued", workers), |b| {
            b.iter_custom(|inputs| {
                let mut spent = Duration::ZERO;
                let mut left = usize::try_from(inputs).expect("a number of inputs");
                while left > 0 {
                    // New queries keep the queue full; they are inputs too, but rare.
                    while owed < pool.complete {
                        pool.submit(QUERY);
                        owed += 1;
                    }
                    let start = Instant::now();
                    left -= pool.run(left.min(10_000));
                    spent += start.elapsed();
                }
                spent
            });
        });
    }
    group.finish();
}

fn heartbeats(c: &mut Criterion) {
    let mut group = c.benchmark_group("inputs");
    let mut pool = Pool::new(1_000);
    group.throughput(Throughput::Elements(1_001));
    group.bench_function("one second of heartbeats, 1,000 workers", |b| {
        b.iter(|| {
            pool.pass(Duration::from_secs(1));
            black_box(pool.run(1_000));
        });
    });
    group.finish();
}

criterion_group!(benches, lives, heartbeats);
criterion_main!(benches);
