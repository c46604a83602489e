//! What must hold for a worker between any two steps.

use core_workcoord::id::{RunId, SessionId};
use core_workcoord::intake::Intake;

use super::books::{Piece, PiecePhase};
use super::{Checker, Promise};
use crate::small_map::SmallMap;
use crate::story::SECOND;
use crate::violation::About;
use crate::worker_node::{File, Run};

impl Checker {
    /// A worker has handled an input and everything it decided was carried out.
    pub(crate) fn worker_stepped(
        &mut self,
        worker: u32,
        machine: &Intake,
        runs: &SmallMap<RunId, Run>,
        files: &SmallMap<RunId, File>,
    ) {
        let about = About::worker(worker);
        if self.workers[worker as usize].step.is_tick {
            self.judge_worker_silence(worker);
        }
        // A tick may first send a heartbeat and then do something else that was due.
        let step = &self.workers[worker as usize].step;
        if let Some(session) = step.beat.filter(|_| !step.is_tick) {
            self.judge_status(worker, session, runs.len());
        }
        if !self.workers[worker as usize].step.matters {
            return;
        }
        let same_files = machine.artifacts().filter(|run| files.contains(*run)).count();
        let same_runs = machine.runs().filter(|run| runs.contains(*run)).count();
        let matches = same_files == files.len()
            && same_runs == runs.len()
            && machine.artifacts().count() == files.len()
            && machine.runs().count() == runs.len();
        self.hold(Promise::BooksMatchDisk, matches, about, || {
            let (believed, running) = (machine.artifacts().count(), machine.runs().count());
            format!(
                "worker-{worker} has {} files and {} runs, and believes in {believed} and {running}",
                files.len(),
                runs.len()
            )
        });
        self.judge_slots(worker, runs);
        self.judge_answers(worker);
        self.judge_ended_sessions(worker, runs, files);
        let book = &mut self.workers[worker as usize];
        let sessions = &book.sessions;
        // What is over and gone from the executor needs no record.
        book.pieces.retain(|piece| {
            let there = piece.run.is_some_and(|run| runs.contains(run) || files.contains(run));
            let waits = matches!(piece.phase, PiecePhase::Told | PiecePhase::Accepted);
            there || (waits && sessions.contains(piece.session))
        });
    }

    fn judge_slots(&mut self, worker: u32, runs: &SmallMap<RunId, Run>) {
        let (slots, limit) =
            (self.shape.intake.slots as usize, self.shape.intake.queue_limit as usize);
        let book = &self.workers[worker as usize];
        let (queued, running) = (book.queued(), runs.len());
        let most_sessions = self.shape.intake.max_sessions as usize;
        let draining = book.drains_since.is_some();
        let kept = running <= slots
            && book.sessions.len() <= most_sessions
            && running + queued <= slots + limit
            && (queued == 0 || running == slots || draining);
        self.hold(Promise::Slots, kept, About::worker(worker), || {
            format!("worker-{worker} runs {running} in {slots} slots, {queued} wait in a queue of {limit}")
        });
    }

    /// Whether an API that has just heard a heartbeat knows how much waits and runs.
    fn judge_status(&mut self, worker: u32, session: SessionId, running: usize) {
        let book = &self.workers[worker as usize];
        let Some(record) = book.sessions.get(session) else { return };
        let (queued, told) = (book.queued(), record.told);
        let fresh =
            told.is_some_and(|(waits, runs)| waits as usize == queued && runs as usize == running);
        self.hold(Promise::StatusIsFresh, fresh || record.refused, About::worker(worker), || {
            format!("worker-{worker} told {session} {told:?} of {queued} queued, {running} running")
        });
    }

    /// What was assigned is answered; what was evicted is told.
    fn judge_answers(&mut self, worker: u32) {
        let book = &mut self.workers[worker as usize];
        let evicted = book.step.evicted.and_then(|run| book.piece_of_run(run).copied());
        let untold = evicted.is_some_and(|piece| piece.phase == PiecePhase::Ready);
        self.hold(Promise::WorkerTellsTruth, !untold, About::worker(worker), || {
            format!("worker-{worker} does not tell that an artifact was evicted: {evicted:?}")
        });
        let book = &self.workers[worker as usize];
        let silent = book.step.out_of_time.iter().copied().find(|run| {
            let is_it = |piece: &&Piece| piece.run == Some(*run);
            book.pieces.iter().find(is_it).is_some_and(|piece| piece.phase != PiecePhase::Over)
        });
        self.hold(Promise::WorkerTellsTruth, silent.is_none(), About::worker(worker), || {
            format!("worker-{worker} does not tell that the time for {silent:?} was up")
        });
        let book = &self.workers[worker as usize];
        let unanswered = book.step.assigned.is_some_and(|session| {
            book.sessions.contains(session)
                && book.pieces.iter().any(|piece| piece.phase == PiecePhase::Told)
        });
        self.hold(Promise::AnswersAtOnce, !unanswered, About::worker(worker), || {
            format!("worker-{worker} neither accepts nor rejects what it was just assigned")
        });
    }

    fn judge_ended_sessions(
        &mut self,
        worker: u32,
        runs: &SmallMap<RunId, Run>,
        files: &SmallMap<RunId, File>,
    ) {
        for at in 0..self.workers[worker as usize].step.ended.len() {
            let session = self.workers[worker as usize].step.ended[at];
            let runs_on = runs.iter().any(|(_, run)| run.session == session && !run.told_to_stop);
            let kept = files.iter().any(|(_, file)| file.session == session);
            self.hold(Promise::SessionEndCleans, !runs_on && !kept, About::worker(worker), || {
                format!("worker-{worker} lost {session} and leaves something of it")
            });
        }
    }

    fn judge_worker_silence(&mut self, worker: u32) {
        let timeout =
            u64::try_from(self.shape.intake.heartbeat_timeout.as_nanos()).unwrap_or(u64::MAX);
        let book = &self.workers[worker as usize];
        let silent = book
            .sessions
            .iter()
            .find(|(_, it)| it.last_heard.0.saturating_add(timeout + SECOND) < book.clock.0);
        if let Some((session, _)) = silent {
            self.hold(Promise::SilenceIsLoss, false, About::worker(worker), || {
                format!("worker-{worker} keeps {session}, which is silent")
            });
        }
        let interval =
            u64::try_from(self.shape.intake.heartbeat_interval.as_nanos()).unwrap_or(u64::MAX);
        let book = &self.workers[worker as usize];
        let late = book.sessions.iter().find(|(_, it)| {
            it.introduced && it.last_beat.0.saturating_add(interval + SECOND / 2) < book.clock.0
        });
        if let Some((session, _)) = late {
            self.hold(Promise::HeartbeatsOnTime, false, About::worker(worker), || {
                format!("worker-{worker} is late with its heartbeat on {session}")
            });
        }
    }
}
