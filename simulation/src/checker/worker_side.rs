//! What a worker is told, what it says, and what must hold for it between any two steps.

use core_workcoord::id::{RunId, SessionId};
use core_workcoord::intake::{Input, Intake};
use core_workcoord::message::{ApiMessage, FailureCode, RejectReason, WorkRef, WorkerMessage};
use core_workcoord::moment::Moment;

use super::books::{Piece, PiecePhase, WorkerBook, WorkerSession, WorkerStep};
use super::{Checker, Promise};
use crate::describe;
use crate::small_map::SmallMap;
use crate::story::SECOND;
use crate::violation::About;
use crate::worker_node::{File, Run};

impl WorkerBook {
    pub(super) fn piece(&mut self, session: SessionId, work: WorkRef) -> Option<&mut Piece> {
        self.pieces.iter_mut().find(|piece| piece.session == session && piece.work == work)
    }

    pub(super) fn piece_of_run(&mut self, run: RunId) -> Option<&mut Piece> {
        self.pieces.iter_mut().find(|piece| piece.run == Some(run))
    }

    fn forget(&mut self, session: SessionId, work: WorkRef) {
        self.pieces.retain(|piece| piece.session != session || piece.work != work);
    }
}

impl Checker {
    /// A new life of a worker.
    pub(crate) fn worker_begins(&mut self, worker: u32) {
        self.workers[worker as usize] = WorkerBook::default();
    }

    /// A worker dies, and its books with it.
    pub(crate) fn worker_dies(&mut self, worker: u32) {
        self.tally.worker_deaths += 1;
        self.worker_begins(worker);
    }

    /// A worker is about to handle an input.
    pub(crate) fn worker_told(&mut self, worker: u32, clock: Moment, input: &Input) {
        let book = &mut self.workers[worker as usize];
        book.clock = book.clock.max(clock);
        let mut ended = std::mem::take(&mut book.step.ended);
        let mut out_of_time = std::mem::take(&mut book.step.out_of_time);
        ended.clear();
        out_of_time.clear();
        book.step = WorkerStep { matters: true, ended, out_of_time, ..WorkerStep::default() };
        match input {
            Input::Message { session, message } => self.worker_hears(worker, *session, message),
            Input::StreamOpened { session, .. } => {
                let (last_heard, last_beat) = (book.clock, book.clock);
                let (introduced, refused) = (false, false);
                let record = WorkerSession { introduced, last_heard, last_beat, refused };
                book.sessions.insert(*session, record);
            }
            Input::StreamClosed { session } => self.worker_session_over(worker, *session),
            Input::RunFinished { run, artifact } => {
                let clock = book.clock;
                book.step.run_over = Some((*run, true));
                if let Some(piece) = book.piece_of_run(*run)
                    && piece.phase == PiecePhase::Started
                {
                    piece.phase = PiecePhase::Committed;
                    piece.checksum = Some(artifact.checksum);
                    piece.since = clock;
                }
            }
            Input::RunFailed { run, .. } | Input::RunStopped { run } => {
                book.step.run_over = Some((*run, false));
            }
            Input::ArtifactEvicted { run } => {
                if let Some(piece) = book.piece_of_run(*run)
                    && piece.phase == PiecePhase::Ready
                {
                    book.step.evicted = Some(*run);
                }
            }
            Input::Drain => {
                book.drains_since.get_or_insert(book.clock);
                book.step.changes_admission = true;
            }
            Input::Tick => book.step.is_tick = true,
            Input::Disk(_) => book.step.changes_admission = true,
            Input::Malformed { .. } => {}
        }
    }

    fn worker_hears(&mut self, worker: u32, session: SessionId, message: &ApiMessage) {
        let book = &mut self.workers[worker as usize];
        let clock = book.clock;
        let Some(record) = book.sessions.get_mut(session) else { return };
        record.last_heard = clock;
        match message {
            ApiMessage::Heartbeat(_) => book.step.matters = false,
            ApiMessage::Hello(_) => {
                record.introduced = true;
                record.last_beat = clock;
                book.step.hello = Some(session);
            }
            ApiMessage::AssignWork(assign) => {
                let work = WorkRef { work_id: assign.work_id, attempt: assign.attempt };
                book.step.assigned = Some(session);
                book.pieces.push(Piece {
                    session,
                    work,
                    phase: PiecePhase::Told,
                    run: None,
                    deadline: clock + assign.deadline,
                    checksum: None,
                    since: clock,
                });
            }
            ApiMessage::CancelWork(cancel) => {
                let work = WorkRef { work_id: cancel.work_id, attempt: cancel.attempt };
                book.cancels.push((session, work));
            }
            ApiMessage::ArtifactAck(ack) => {
                let acked = book.pieces.iter_mut().find(|piece| {
                    piece.session == session
                        && piece.work.work_id == ack.work_id
                        && piece.phase == PiecePhase::Ready
                        && piece.checksum == Some(ack.checksum)
                });
                if let Some(piece) = acked {
                    piece.phase = PiecePhase::Acked;
                    piece.since = clock;
                }
            }
        }
    }

    /// A session is over for a worker.
    pub(super) fn worker_session_over(&mut self, worker: u32, session: SessionId) {
        let book = &mut self.workers[worker as usize];
        if book.sessions.remove(session).is_none() {
            return;
        }
        book.cancels.retain(|(other, _)| *other != session);
        book.step.ended.push(session);
    }

    /// A worker says something.
    pub(crate) fn worker_says(
        &mut self,
        worker: u32,
        session: SessionId,
        message: &WorkerMessage,
        runs: &SmallMap<RunId, Run>,
        files: &SmallMap<RunId, File>,
    ) {
        let book = &mut self.workers[worker as usize];
        let introduced = book.sessions.get(session).is_some_and(|record| record.introduced);
        let about = About::worker(worker);
        self.hold(Promise::SpeaksOnOpenSessions, introduced, about, || {
            format!("worker-{worker} says {message:?} on {session}, which is over or unknown")
        });
        let book = &mut self.workers[worker as usize];
        let about = match describe::work_of_worker_message(message) {
            Some(work) => about.work(work.work_id),
            None => return self.worker_says_of_itself(worker, session, message),
        };
        book.step.matters = true;
        let (is_tick, run_over) = (book.step.is_tick, book.step.run_over);
        let draining = book.drains_since.is_some();
        if let WorkerMessage::Rejected(rejected) = message
            && let Some(record) = book.sessions.get_mut(session)
        {
            record.refused |= rejected.reason == RejectReason::Full;
        }
        let mut say = |work: WorkRef, from: &[PiecePhase], to: PiecePhase| {
            let piece = book.piece(session, work)?;
            let was = piece.phase;
            piece.phase = to;
            from.contains(&was).then_some(*piece)
        };
        use PiecePhase as P;
        let holds = match message {
            WorkerMessage::Accepted(work) => {
                say(*work, &[P::Told], P::Accepted).is_some() && !draining
            }
            WorkerMessage::Started(work) => say(*work, &[P::Starting], P::Started).is_some(),
            WorkerMessage::Rejected(rejected) => {
                let told = say(rejected.work, &[P::Told], P::Over).is_some();
                book.forget(session, rejected.work);
                told
            }
            WorkerMessage::Ready(ready) => {
                say(ready.work, &[P::Committed], P::Ready).is_some_and(|piece| {
                    piece.checksum == Some(ready.artifact.checksum)
                        && piece.run.is_some_and(|run| files.contains(run))
                })
            }
            WorkerMessage::Failed(failed) => {
                let late = failed.failure.code == FailureCode::Deadline && is_tick;
                say(failed.work, &[P::Accepted, P::Started], P::Over).is_some_and(|piece| {
                    let ended = piece.run.is_some() && piece.run == run_over.map(|(run, _)| run);
                    ended || (late && book.clock >= piece.deadline)
                })
            }
            WorkerMessage::ArtifactLost(work) => say(*work, &[P::Ready], P::Over)
                .is_some_and(|piece| piece.run.is_some_and(|run| !files.contains(run))),
            WorkerMessage::Cancelled(work) => {
                return self.worker_confirms(worker, session, *work, runs, files);
            }
            WorkerMessage::Welcome(_) | WorkerMessage::Heartbeat(_) | WorkerMessage::Status(_) => {
                true
            }
        };
        self.hold(Promise::WorkerTellsTruth, holds, about, || {
            format!("worker-{worker} says {message:?}, which is not what happened")
        });
    }

    /// A worker speaks of itself. To one that it refused for want of room it does so only when there
    /// is room again, or whether work is welcome at all has changed.
    fn worker_says_of_itself(&mut self, worker: u32, session: SessionId, message: &WorkerMessage) {
        let limit = self.shape.intake.slots + self.shape.intake.queue_limit;
        let book = &mut self.workers[worker as usize];
        let (clock, changes) = (book.clock, book.step.changes_admission);
        let Some(record) = book.sessions.get_mut(session) else { return };
        match message {
            WorkerMessage::Heartbeat(_) => record.last_beat = clock,
            WorkerMessage::Status(status) => {
                let refused = std::mem::take(&mut record.refused);
                let room = status.queued + status.running < limit;
                let calls = refused && status.accepting_work && !room && !changes;
                self.hold(Promise::NoPingPong, !calls, About::worker(worker), || {
                    format!("worker-{worker} calls {session} back, which it refused, without room")
                });
            }
            _ => {}
        }
    }

    fn worker_confirms(
        &mut self,
        worker: u32,
        session: SessionId,
        work: WorkRef,
        runs: &SmallMap<RunId, Run>,
        files: &SmallMap<RunId, File>,
    ) {
        let about = About::worker(worker).work(work.work_id);
        let book = &mut self.workers[worker as usize];
        let asked = book.cancels.iter().position(|cancel| *cancel == (session, work));
        let asked = asked.map(|at| book.cancels.swap_remove(at)).is_some();
        self.hold(Promise::CancelsOnce, asked, about, || {
            format!(
                "worker-{worker} confirms {work:?}, which nobody asked for or it confirmed before"
            )
        });
        let is_it = |of: SessionId, other: WorkRef| of == session && other == work;
        let gone = !runs.iter().any(|(_, run)| is_it(run.session, run.work))
            && !files.iter().any(|(_, file)| is_it(file.session, file.work));
        self.hold(Promise::CancelledIsGone, gone, about, || {
            format!("worker-{worker} confirms {work:?}, of which something is left")
        });
        self.workers[worker as usize].forget(session, work);
    }

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
        let queued = book.pieces.iter().filter(|piece| {
            piece.phase == PiecePhase::Accepted && book.sessions.contains(piece.session)
        });
        let (queued, running) = (queued.count(), runs.len());
        let draining = book.drains_since.is_some();
        let kept = running <= slots
            && running + queued <= slots + limit
            && (queued == 0 || running == slots || draining);
        self.hold(Promise::Slots, kept, About::worker(worker), || {
            format!("worker-{worker} runs {running} in {slots} slots, {queued} wait in a queue of {limit}")
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
