//! What a worker is told, and what it says.

use core_workcoord::id::{RunId, SessionId};
use core_workcoord::intake::Input;
use core_workcoord::message::{ApiMessage, FailureCode, WorkRef, WorkerMessage};
use core_workcoord::moment::Moment;

use super::books::{Beats, Piece, PiecePhase, WorkerBook, WorkerSession, WorkerStep};
use super::{Checker, Promise};
use crate::describe;
use crate::small_map::SmallMap;
use crate::violation::About;
use crate::worker_node::{File, Run};

impl WorkerBook {
    pub(super) fn piece(&mut self, session: SessionId, work: WorkRef) -> Option<&mut Piece> {
        self.pieces.iter_mut().find(|piece| piece.session == session && piece.work == work)
    }

    pub(super) fn piece_of_run(&mut self, run: RunId) -> Option<&mut Piece> {
        self.pieces.iter_mut().find(|piece| piece.run == Some(run))
    }

    /// Accepted work that waits for a slot.
    pub(super) fn queued(&self) -> usize {
        let waits = |piece: &&Piece| {
            piece.phase == PiecePhase::Accepted && self.sessions.contains(piece.session)
        };
        self.pieces.iter().filter(waits).count()
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
                let record = WorkerSession {
                    introduced: false,
                    last_heard,
                    last_beat,
                    beats: Beats::default(),
                    passed_over: 0,
                    refused: false,
                    told: None,
                };
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
            Input::Disk(report) => {
                book.disk_full = !report.room;
                book.step.changes_admission = true;
            }
            Input::Malformed { .. } => {}
        }
    }

    fn worker_hears(&mut self, worker: u32, session: SessionId, message: &ApiMessage) {
        let book = &mut self.workers[worker as usize];
        let clock = book.clock;
        let Some(record) = book.sessions.get_mut(session) else { return };
        record.last_heard = clock;
        match message {
            ApiMessage::Heartbeat(beat) => {
                record.beats.hear(*beat);
                book.step.matters = false;
            }
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
        if let WorkerMessage::Rejected(_) = message
            && let Some(record) = book.sessions.get_mut(session)
        {
            record.refused = true;
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
        let (draining, disk_full) = (book.drains_since.is_some(), book.disk_full);
        let Some(record) = book.sessions.get_mut(session) else { return };
        match message {
            WorkerMessage::Heartbeat(beat) => {
                record.last_beat = clock;
                let counted = record.beats.say(*beat);
                book.step.beat = Some(session);
                self.hold(Promise::HeartbeatsOnTime, counted, About::worker(worker), || {
                    format!("worker-{worker} sends {beat:?} on {session}, which does not follow")
                });
            }
            WorkerMessage::Status(status) => {
                record.told = Some((status.queued, status.running));
                let refused = std::mem::take(&mut record.refused);
                let room = status.queued + status.running < limit;
                let calls = refused && status.accepting_work && !room && !changes;
                let accepts = !draining && !disk_full;
                let truth = status.accepting_work == accepts && status.draining == draining;
                self.hold(Promise::WorkerTellsTruth, truth, About::worker(worker), || {
                    format!(
                        "worker-{worker} says {status:?}: draining {draining}, full {disk_full}"
                    )
                });
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
}
