//! What a worker decides about runs, files and streams, judged action by action.

use core_workcoord::id::{RunId, SessionId};
use core_workcoord::intake::CloseReason;
use core_workcoord::message::{AssignWork, WorkRef};

use super::books::{Piece, PiecePhase, WorkerBook};
use super::{Checker, CloseFacts, Promise};
use crate::violation::About;
use crate::worker_node::{File, Run};

impl Checker {
    /// A worker starts a run.
    pub(crate) fn worker_starts(
        &mut self,
        worker: u32,
        run: RunId,
        session: SessionId,
        assign: &AssignWork,
    ) {
        let work = WorkRef { work_id: assign.work_id, attempt: assign.attempt };
        let about = About::worker(worker).work(work.work_id);
        let book = &mut self.workers[worker as usize];
        book.step.matters = true;
        let welcome = book.sessions.contains(session)
            && book.drains_since.is_none()
            && !book.cancels.contains(&(session, work));
        let piece = book.piece(session, work).filter(|piece| piece.phase == PiecePhase::Accepted);
        let accepted = piece.is_some();
        if let Some(piece) = piece {
            piece.phase = PiecePhase::Starting;
            piece.run = Some(run);
        }
        self.tally.runs += 1;
        self.judge_turns(worker, session);
        self.hold(Promise::ReasonForEverything, welcome && accepted, about, || {
            format!("worker-{worker} starts {work:?} of {session} as {run} without reason")
        });
    }

    /// Whose turn it is, when several sessions have work waiting.
    fn judge_turns(&mut self, worker: u32, session: SessionId) {
        let WorkerBook { sessions, pieces, .. } = &mut self.workers[worker as usize];
        let most = u32::try_from(2 * sessions.len() + 2).expect("sessions are few");
        let mut starved = None;
        for (id, record) in sessions.iter_mut() {
            let waits = |piece: &Piece| piece.session == id && piece.phase == PiecePhase::Accepted;
            if id == session || !pieces.iter().any(waits) {
                record.passed_over = 0;
                continue;
            }
            record.passed_over += 1;
            if record.passed_over > most {
                starved = Some((id, record.passed_over));
            }
        }
        self.hold(Promise::FairSlots, starved.is_none(), About::worker(worker), || {
            format!("worker-{worker} passes a session over, again and again: {starved:?}")
        });
    }

    /// A worker tells a run to stop.
    pub(crate) fn worker_stops(&mut self, worker: u32, run: RunId, record: Option<&Run>) {
        let about = About::worker(worker);
        let book = &mut self.workers[worker as usize];
        book.step.matters = true;
        book.step.stopped_any = true;
        let clock = book.clock;
        let late = book.piece_of_run(run).is_some_and(|piece| clock >= piece.deadline);
        let reason = record.is_some_and(|record| {
            let over = !book.sessions.contains(record.session);
            let cancelled = book.cancels.contains(&(record.session, record.work));
            if late && !over && !cancelled {
                book.step.out_of_time.push(run);
            }
            !record.told_to_stop && (over || cancelled || late)
        });
        self.hold(Promise::ReasonForEverything, reason, about, || {
            format!("worker-{worker} stops {run} without reason: {record:?}")
        });
    }

    /// A worker removes an artifact.
    pub(crate) fn worker_deletes(&mut self, worker: u32, run: RunId, file: Option<&File>) {
        let config = &self.shape.intake;
        let (ttl, after_ack) = (config.artifact_ttl, config.artifact_ttl_after_ack);
        let book = &mut self.workers[worker as usize];
        book.step.matters = true;
        let clock = book.clock;
        let stopping = book.step.run_over == Some((run, true));
        let expired = book.piece_of_run(run).is_some_and(|piece| match piece.phase {
            PiecePhase::Acked => clock >= piece.since + after_ack,
            PiecePhase::Ready => clock >= piece.since + ttl,
            // It was done before it noticed that it should stop.
            PiecePhase::Committed | PiecePhase::Over => stopping,
            PiecePhase::Told
            | PiecePhase::Accepted
            | PiecePhase::Starting
            | PiecePhase::Started => false,
        });
        let reason = file.is_some_and(|file| {
            let over = !book.sessions.contains(file.session);
            let cancelled = book.cancels.contains(&(file.session, file.work));
            over || cancelled || expired
        });
        self.hold(Promise::ReasonForEverything, reason, About::worker(worker), || {
            format!("worker-{worker} removes the artifact of {run} without reason: {file:?}")
        });
    }

    /// A worker closes a session, for a reason.
    pub(crate) fn worker_closes(
        &mut self,
        worker: u32,
        session: SessionId,
        reason: CloseReason,
        facts: CloseFacts,
    ) {
        let book = &mut self.workers[worker as usize];
        book.step.matters = true;
        let full = book.sessions.len() > self.shape.intake.max_sessions as usize;
        let newer = book.step.hello.is_some_and(|hello| hello != session);
        let justified = match reason {
            CloseReason::TooManySessions => full,
            CloseReason::HelloTimeout | CloseReason::Silent => {
                facts.disturbed || facts.tainted || !facts.both_open
            }
            CloseReason::Violation(_) => facts.tainted,
            CloseReason::Superseded => newer,
            CloseReason::Drained => book.drains_since.is_some(),
        };
        let quiet = self.shape.quiet;
        self.hold(Promise::NoFalseLoss, justified && !quiet, About::worker(worker), || {
            format!("worker-{worker} gives {session} up as {reason:?} without cause: {facts:?}")
        });
        self.worker_session_over(worker, session);
    }

    /// A worker leaves.
    pub(crate) fn worker_exits(&mut self, worker: u32, clean: bool, running: usize) {
        let book = &self.workers[worker as usize];
        let cut_short = running > 0 || book.step.stopped_any;
        let timeout = self.shape.intake.drain_timeout;
        let justified = book.drains_since.is_some_and(|since| match clean {
            true => !cut_short,
            false => book.clock >= since + timeout,
        });
        self.tally.exits += 1;
        self.tally.clean_exits += u64::from(clean);
        self.hold(Promise::ReasonForEverything, justified, About::worker(worker), || {
            format!("worker-{worker} leaves (clean: {clean}) with {running} running")
        });
    }
}
