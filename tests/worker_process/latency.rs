//! How soon a worker answers while real leaves keep every core busy: cancellations, and heartbeats
//! with a slow disk besides. Figures are printed; what is asserted leaves room for a busy machine and
//! an unoptimised build, and the aims are held against an optimised one on a quiet machine.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use core_workcoord::message::{ApiMessage, Heartbeat, WorkerMessage};
use tokio::task::JoinSet;
use tokio_stream::StreamExt;
use tributary_integration::differential::dice::Dice;
use tributary_integration::worker_suite::api::{Api, work};
use tributary_integration::worker_suite::field::Field;
use tributary_integration::worker_suite::figures::Times;
use tributary_integration::worker_suite::process::WorkerProcess;

use super::{comes_to_rest, count_of, worker_on};

/// Far beyond the aims: what half of the answers must come within, whatever else the machine does.
const AT_MOST: Duration = Duration::from_secs(3);

fn cores() -> u32 {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(cores).expect("machines are smaller")
}

/// Keeps so many slots busy until it is dropped: an item that comes to its end is followed by
/// another.
async fn keep_busy(worker: &WorkerProcess, field: &Field, slots: u32) -> JoinSet<()> {
    let endless = field.endless();
    let mut api = Api::greeted(worker.grpc, "api-busy", 1).await;
    for item in 0..slots {
        api.start(item, endless.spec(item)).await;
    }
    let mut busy = JoinSet::new();
    busy.spawn(async move {
        for item in slots.. {
            let artifact = loop {
                let ended = tokio::time::timeout(Duration::from_secs(600), api.said.next()).await;
                match ended.expect("it ends some day").expect("the stream is open") {
                    Ok(WorkerMessage::Ready(ready)) => break ready,
                    Ok(WorkerMessage::Failed(failed)) => panic!("{failed:?}"),
                    Ok(_) => {}
                    Err(error) => panic!("{error}"),
                }
            };
            api.acknowledge(artifact.work.work_id.item, &artifact.artifact).await;
            api.assign(item, endless.spec(item)).await;
        }
    });
    busy
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_takes_effect_at_once_wherever_the_leaf_is() {
    let rounds = count_of("TRIBUTARY_LATENCY_ROUNDS", 20);
    let field = Field::sown();
    let slots = cores().max(2);
    let worker = worker_on(&field, &[&format!("execution.slots={slots}")]);
    let busy = keep_busy(&worker, &field, slots - 1).await;
    let mut api = Api::greeted(worker.grpc, "api-cancels", 1).await;
    let mut dice = Dice::new(1, 1);
    let mut item = 0;
    for (what, job, wait_max_ms) in [
        ("many series", field.busy(), 300),
        ("one series with long windows", field.long(), 300),
        ("a large artifact", field.large(), 2_000),
    ] {
        let (mut times, mut too_late) = (Vec::new(), 0);
        while times.len() < rounds as usize {
            item += 1;
            api.start(item, job.spec(item)).await;
            let wait = dice.between(0, wait_max_ms).unsigned_abs();
            tokio::time::sleep(Duration::from_millis(wait)).await;
            let begun = Instant::now();
            api.cancel(item).await;
            loop {
                match api.answer().await {
                    WorkerMessage::Ready(_) => too_late += 1,
                    WorkerMessage::Cancelled(cancelled) => {
                        assert_eq!(cancelled, work(item));
                        times.push(begun.elapsed());
                        break;
                    }
                    other => panic!("{other:?}\n{}", worker.log()),
                }
            }
        }
        let times = Times::new(times);
        println!("cancelled in {what}: {times} ({too_late} were ready before)");
        assert!(times.at(500) < AT_MOST, "{what}: {times}");
    }
    drop((api, busy));
    comes_to_rest(&worker).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_are_answered_while_every_core_is_busy_and_the_disk_is_slow() {
    let rounds = count_of("TRIBUTARY_LATENCY_ROUNDS", 20);
    let field = Field::sown();
    let slots = cores() + 1;
    let worker = worker_on(&field, &[&format!("execution.slots={slots}")]);
    let busy = keep_busy(&worker, &field, slots - 1).await;
    // The last slot writes one large artifact after the other, while others flood the same disk.
    let large = field.large();
    let mut writes = Api::greeted(worker.grpc, "api-writes", 1).await;
    let writing = tokio::spawn(async move {
        for item in 0.. {
            writes.start(item, large.spec(item)).await;
            let artifact = writes.ready(item).await;
            writes.acknowledge(item, &artifact).await;
        }
    });
    let floods = [0, 1].map(|n| Flood::begin(field.cache(&format!("flood-{n}"))));
    let mut api = Api::greeted(worker.grpc, "api-beats", 1).await;
    api.fall_silent();
    let mut times = Vec::new();
    // Beyond those that the greeting may have sent.
    for seq in 1_000..1_000 + u64::from(rounds) * 5 {
        let begun = Instant::now();
        api.tell(ApiMessage::Heartbeat(Heartbeat { seq, ..Heartbeat::default() })).await;
        loop {
            if let WorkerMessage::Heartbeat(beat) = api.hear_anything().await
                && beat.echo_seq == seq
            {
                break;
            }
        }
        times.push(begun.elapsed());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let times = Times::new(times);
    let written: u64 = floods.into_iter().map(Flood::end).sum();
    println!("heartbeats while {} MiB were written and synced: {times}", written >> 20);
    assert!(times.at(500) < AT_MOST, "{times}");
    writing.abort();
    assert!(writing.await.is_err_and(|error| error.is_cancelled()), "the writer went well");
    drop((api, busy));
    comes_to_rest(&worker).await;
}

/// A thread that writes to a file and syncs it, again and again: the disk under it is slow for
/// everybody, without any privilege.
struct Flood {
    over: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Flood {
    fn begin(path: PathBuf) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let block = vec![0x5a; 4 << 20];
            let mut written = 0;
            while !told.load(Ordering::Relaxed) {
                let mut file = File::create(&path).expect("the folder takes it");
                for _ in 0..8 {
                    file.write_all(&block).expect("the disk has room");
                    file.sync_all().expect("the disk takes it");
                    written += block.len() as u64;
                }
            }
            written
        });
        Self { over, thread }
    }

    fn end(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("it only writes")
    }
}
