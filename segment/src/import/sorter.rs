//! The thread that sorts full buffers and puts them aside as runs, while the next one fills.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use tributary_promql::Labels;

use super::ImportOptions;
use super::buffer::SampleBuffer;
use super::run::{Run, RunWriter};

/// A buffer to sort, and the labels of the series that were new in it.
struct Full {
    buffer: SampleBuffer,
    labels: Vec<Labels>,
}

/// The sorting thread, as seen from the one that reads.
///
/// There are two buffers: one that fills and one that is sorted or waits. Who has a full buffer
/// before the other is sorted waits for it.
pub(super) struct Sorter {
    full: Option<SyncSender<Full>>,
    empty: Receiver<SampleBuffer>,
    thread: Option<JoinHandle<io::Result<Sorted>>>,
}

/// What the thread leaves when all is sorted.
#[derive(Default)]
pub(super) struct Sorted {
    /// Labels of all series, by number.
    pub(super) labels: Vec<Labels>,
    /// Each series' place in the order of shard and labels.
    pub(super) ranks: Vec<u32>,
    pub(super) shards: Vec<u32>,
    /// Oldest first.
    pub(super) runs: Vec<Run>,
}

impl Sorter {
    /// Starts the thread, with the second buffer.
    pub(super) fn start(options: &ImportOptions, capacity: usize) -> Self {
        let (full, full_buffers) = sync_channel::<Full>(1);
        let (give_back, empty) = sync_channel(2);
        let second = SampleBuffer::with_capacity(capacity);
        give_back.send(second).expect("the receiver is right here");
        let job = Job {
            block_ms: options.block_ms,
            shard_count: options.shards,
            directory: options.temporary_directory.clone(),
            sorted: Sorted::default(),
        };
        let thread = std::thread::spawn(move || job.run(&full_buffers, &give_back));
        Self { full: Some(full), empty, thread: Some(thread) }
    }

    /// Hands over a full buffer and takes an empty one.
    pub(super) fn exchange(
        &mut self,
        buffer: SampleBuffer,
        labels: Vec<Labels>,
    ) -> io::Result<SampleBuffer> {
        let sent =
            self.full.as_ref().is_some_and(|full| full.send(Full { buffer, labels }).is_ok());
        match self.empty.recv() {
            Ok(empty) if sent => Ok(empty),
            // The thread has ended before its time, which only an error makes it do.
            _ => Err(self.join().err().unwrap_or_else(|| io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Waits until all is sorted.
    pub(super) fn finish(&mut self) -> io::Result<Sorted> {
        self.join()
    }

    fn join(&mut self) -> io::Result<Sorted> {
        self.full = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }
}

impl Drop for Sorter {
    fn drop(&mut self) {
        // The thread ends once nobody can send; its runs go with its result.
        self.full = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Job {
    block_ms: i64,
    shard_count: u32,
    directory: PathBuf,
    sorted: Sorted,
}

impl Job {
    fn run(
        mut self,
        full: &Receiver<Full>,
        give_back: &SyncSender<SampleBuffer>,
    ) -> io::Result<Sorted> {
        for Full { mut buffer, labels } in full {
            self.sorted.add(labels, self.shard_count);
            if !buffer.is_empty() {
                let run = self.write_run(&buffer)?;
                self.sorted.runs.push(run);
            }
            buffer.clear();
            // At the end nobody waits for it any more.
            let _ = give_back.send(buffer);
        }
        Ok(self.sorted)
    }

    fn write_run(&self, buffer: &SampleBuffer) -> io::Result<Run> {
        let mut run = RunWriter::create(&self.directory)?;
        let (mut ts, mut values) = (Vec::new(), Vec::new());
        buffer.for_each_group(&self.sorted.ranks, self.block_ms, |group| {
            ts.clear();
            values.clear();
            group.read(&mut ts, &mut values);
            let section = (group.block, self.sorted.shards[group.series as usize]);
            run.series(section, group.series, &ts, &values)
        })?;
        run.finish()
    }
}

impl Sorted {
    /// Takes new series and ranks all of them anew. An earlier order stays right: ranks of known
    /// series keep their order among each other.
    fn add(&mut self, labels: Vec<Labels>, shards: u32) {
        if labels.is_empty() {
            return;
        }
        self.shards.extend(labels.iter().map(|labels| labels.shard(shards)));
        self.labels.extend(labels);
        let mut order: Vec<u32> =
            (0..u32::try_from(self.labels.len()).expect("series are limited")).collect();
        order.sort_unstable_by(|a, b| {
            let (a, b) = (*a as usize, *b as usize);
            let by_shard = self.shards[a].cmp(&self.shards[b]);
            by_shard.then_with(|| self.labels[a].series_cmp(&self.labels[b]))
        });
        self.ranks.resize(self.labels.len(), 0);
        for (rank, series) in (0..).zip(order) {
            self.ranks[series as usize] = rank;
        }
    }
}
