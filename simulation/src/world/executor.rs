//! A worker's executor: runs that take their time, stop when told to, and leave a file, a failure or a
//! dead process. Exactly one answer for each.

use core_workcoord::id::{RunId, SessionId};
use core_workcoord::intake::Input;
use core_workcoord::message::{AssignWork, Failure, FailureCode, WorkRef};

use super::World;
use crate::SimBug;
use crate::agenda::Event;
use crate::content::{self, Wrong};
use crate::rng::{Lane, Purpose, chance, draw, mix, within};
use crate::story::{Ending, MS, SECOND};
use crate::worker_node::{File, Run, RunEnd};

impl World<'_> {
    pub(super) fn start_run(
        &mut self,
        worker: u32,
        run: RunId,
        session: SessionId,
        work: &AssignWork,
    ) {
        let seed = self.story.seed;
        let place = content::read_spec(&work.spec).and_then(|(number, item)| {
            let query = self.places.get(number as usize).copied().flatten()?;
            Some((query, item))
        });
        let item = place.and_then(|(query, item)| self.story.item(query as usize, item));
        let node = &mut self.workers[worker as usize];
        let (query, number) = place.unwrap_or((u32::MAX, 0));
        let luck = mix(seed
            ^ (u64::from(query) << 32 | u64::from(number))
            ^ u64::from(work.attempt.0) << 56);
        // Work of a lying API that no story knows runs for a while all the same.
        let run_time = item.map_or(10 * MS, |item| item.run_time) * node.slowness();
        let run_time = run_time + within(luck, 0, MS);
        let failing = self.story.shape.failing_runs_per_mille;
        let mut end = match item.map_or(Ending::Works, |item| item.ending) {
            Ending::KillsWorker => RunEnd::KillsWorker,
            Ending::FailsForGood => RunEnd::FailsForGood,
            Ending::Works | Ending::TooLarge if chance(mix(luck), failing.into()) => {
                RunEnd::StoreUnavailable
            }
            Ending::Works | Ending::TooLarge => RunEnd::Works,
        };
        let deadline = u64::try_from(work.deadline.as_nanos()).unwrap_or(u64::MAX);
        let mut ends_at = self.now.saturating_add(run_time);
        if run_time > deadline && end != RunEnd::KillsWorker {
            (end, ends_at) = (RunEnd::Deadline, self.now.saturating_add(deadline));
        }
        let life = node.process.life;
        if end == RunEnd::KillsWorker {
            let at = self.now + within(luck, MS, 20 * MS);
            self.agenda.note(at, Event::RunKills { worker, life, run: run.0 });
            ends_at = at + SECOND;
        }
        let work = WorkRef { work_id: work.work_id, attempt: work.attempt };
        node.runs.insert(
            run,
            Run {
                session,
                work,
                query,
                item: number,
                ends_at,
                end,
                told_to_stop: false,
                stops_at: None,
            },
        );
        self.agenda.note(ends_at, Event::RunEnds { worker, life, run: run.0 });
    }

    pub(super) fn stop_run(&mut self, worker: u32, run: RunId) {
        let node = &mut self.workers[worker as usize];
        let life = node.process.life;
        let Some(record) = node.runs.get_mut(run) else { return };
        if std::mem::replace(&mut record.told_to_stop, true) {
            return;
        }
        if self.options.sim_bug == Some(SimBug::StopNotTold) {
            record.ends_at = u64::MAX;
            return;
        }
        let luck = draw(self.story.seed, Lane::new(Purpose::StopTime, worker as usize), run.0);
        let mut stops_at = self.now + within(luck, 0, 5 * MS);
        if self.options.sim_bug == Some(SimBug::StopIgnored) {
            stops_at += 10 * SECOND;
        }
        // It may still be done before it notices.
        if record.ends_at > stops_at {
            record.stops_at = Some(stops_at);
            record.ends_at = stops_at;
            self.agenda.note(stops_at, Event::RunEnds { worker, life, run: run.0 });
        }
    }

    /// A run is over: exactly one answer for each.
    pub(super) fn run_ends(&mut self, worker: u32, life: u32, run: u64) {
        let seed = self.story.seed;
        let id = RunId(run);
        let node = &mut self.workers[worker as usize];
        if node.process.life != life || node.machine.is_none() {
            return;
        }
        if node.process.is_hung() {
            node.process.deferred.push(Event::RunEnds { worker, life, run });
            return;
        }
        let Some(record) = node.runs.get(id).copied().filter(|it| it.ends_at <= self.now) else {
            return;
        };
        if self.options.sim_bug != Some(SimBug::RunToldTwice) || run % 16 != 7 {
            node.runs.remove(id);
        } else if let Some(record) = node.runs.get_mut(id) {
            record.ends_at = self.now + MS;
            self.agenda.note(self.now + MS, Event::RunEnds { worker, life, run });
        }
        if record.stops_at.is_some_and(|stops_at| stops_at <= self.now) {
            return self.step_worker(worker, Input::RunStopped { run: id });
        }
        let luck = draw(seed, Lane::new(Purpose::RunEnding, worker as usize), run);
        let trouble = &node.trouble;
        let end = match record.end {
            RunEnd::Works if trouble.disk_full > 0 => RunEnd::DiskFull,
            RunEnd::Works if trouble.store_errors > 0 && chance(luck, 600) => {
                RunEnd::StoreUnavailable
            }
            end => end,
        };
        let failed = |code, retryable, message: &str| Input::RunFailed {
            run: id,
            failure: Failure { code, retryable, message: message.into() },
        };
        let input = match end {
            RunEnd::Works => {
                let number = self.story.queries.get(record.query as usize).map_or(0, |q| q.number);
                let sum = content::right_checksum(number, record.item);
                let size_bytes = self
                    .story
                    .item(record.query as usize, record.item)
                    .map_or(1_000, |item| item.size_bytes);
                let bytes = match trouble.disk_corrupt {
                    0 => sum,
                    _ => content::wrong(sum, Wrong::OnDisk),
                };
                let file = File { session: record.session, work: record.work, bytes, size_bytes };
                let base_url = self.endpoints.base_url(node.endpoint);
                node.files.insert(id, file);
                let artifact = Box::new(content::artifact(&base_url, id, sum, size_bytes));
                Input::RunFinished { run: id, artifact }
            }
            RunEnd::FailsForGood => {
                failed(FailureCode::SegmentMissing, false, "a segment is missing")
            }
            RunEnd::StoreUnavailable => {
                failed(FailureCode::StoreUnavailable, true, "no answer from the store")
            }
            RunEnd::DiskFull => failed(FailureCode::DiskFull, true, "no space left"),
            RunEnd::Deadline => failed(FailureCode::Deadline, true, "out of time"),
            RunEnd::KillsWorker => failed(FailureCode::Internal, true, "about to die"),
        };
        self.step_worker(worker, input);
    }

    /// A poisonous item kills its worker, if it still runs there.
    pub(super) fn run_kills(&mut self, worker: u32, life: u32, run: u64) {
        let node = &mut self.workers[worker as usize];
        let alive = node.process.life == life && node.machine.is_some();
        if !alive || !node.runs.contains(RunId(run)) {
            return;
        }
        if node.process.is_hung() {
            node.process.deferred.push(Event::RunKills { worker, life, run });
            return;
        }
        let luck = draw(self.story.seed, Lane::new(Purpose::Restart, worker as usize), life.into());
        self.tally.poison_kills += 1;
        self.kill_worker(worker, true, false);
        self.agenda.note(self.now + within(luck, 200 * MS, 1_500 * MS), Event::WorkerUp { worker });
    }
}
