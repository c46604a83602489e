//! Runs many seeds on several threads. What comes out does not depend on how many.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::report::Report;
use crate::story::Story;
use crate::summary::Summary;
use crate::{Options, run};

/// Seeds that are finished together: between two rounds the threads meet, so that the first
/// failing seed is the first whatever the threads did.
const ROUND: u64 = 256;

/// Runs `count` seeds beginning with `from`. `on_progress` hears how many are done. With
/// `stop_at_first` nothing counts after the first seed that breaks a promise.
pub fn run_seeds(
    from: u64,
    count: u64,
    threads: usize,
    on_progress: impl Fn(u64) + Sync,
    stop_at_first: bool,
) -> Summary {
    run_seeds_with(from, count, threads, on_progress, stop_at_first, &Options::default())
}

/// As [`run_seeds`], with options.
pub fn run_seeds_with(
    from: u64,
    count: u64,
    threads: usize,
    on_progress: impl Fn(u64) + Sync,
    stop_at_first: bool,
    options: &Options<'_>,
) -> Summary {
    let mut summary = Summary::new(from);
    let done = AtomicU64::new(0);
    let mut begun = 0;
    while begun < count {
        let round = ROUND.min(count - begun);
        let reports = run_round(from + begun, round, threads, options, || {
            on_progress(done.fetch_add(1, Ordering::Relaxed) + 1);
        });
        for report in &reports {
            summary.add(report);
            if stop_at_first && report.violation.is_some() {
                return summary;
            }
        }
        begun += round;
    }
    summary
}

/// Runs one round; gives the reports in the order of their seeds.
fn run_round(
    from: u64,
    count: u64,
    threads: usize,
    options: &Options<'_>,
    on_done: impl Fn() + Sync,
) -> Vec<Report> {
    let next = AtomicU64::new(0);
    let reports = Mutex::new(Vec::new());
    let work = || {
        let mut mine = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                break;
            }
            mine.push(run(&Story::of(from.wrapping_add(at)), options));
            on_done();
        }
        reports.lock().expect("nobody panics while holding it").append(&mut mine);
    };
    if threads <= 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    let mut reports = reports.into_inner().expect("nobody panics while holding it");
    reports.sort_by_key(|report| report.seed.wrapping_sub(from));
    reports
}
