//! Seeds simulated per second and core: 60 simulated seconds of 3 API nodes, 12 workers and 40
//! queries, with faults and with every check. Aim: 50 or more.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tributary_simulation::{Options, Story, run};

/// Seeds of the usual size in which something goes wrong.
fn stories() -> Vec<Story> {
    let usual = |story: &Story| {
        let shape = &story.shape;
        (shape.apis, shape.workers, story.queries.len()) == (3, 12, 40) && !shape.quiet
    };
    (0..).map(Story::of).filter(usual).take(50).collect()
}

fn seeds(c: &mut Criterion) {
    let mut group = c.benchmark_group("simulation");
    let stories = stories();
    group.throughput(Throughput::Elements(stories.len() as u64));
    group.sample_size(10);
    let options = Options { to_the_end: true, ..Options::default() };
    group.bench_function("50 seeds of 60 s, 3 API nodes, 12 workers, 40 queries", |b| {
        b.iter(|| {
            for story in &stories {
                let report = run(story, &options);
                assert!(report.violation.is_none(), "seed {}", story.seed);
                assert!(report.tally.simulated_nanos >= 59_000_000_000, "it goes on to the end");
                black_box(report.fingerprint);
            }
        });
    });
    group.finish();
}

criterion_group!(benches, seeds);
criterion_main!(benches);
