//! The one task that owns the intake: takes what happened, in order, and carries out what the intake
//! decides. Nothing here waits for a disk, a leaf or a peer, so heartbeats are answered at once
//! however busy the worker is.

mod figures;
mod tell;

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use core_workcoord::artifact::Artifact;
use core_workcoord::id::{RunId, SessionId, WorkId};
use core_workcoord::intake::{Action, DiskReport, Input, Intake};
use core_workcoord::message::{ApiMessage, AssignWork, WorkerMessage};
use core_workcoord::moment::Moment;
pub(crate) use figures::{Figures, View};
use tokio::sync::{mpsc, oneshot};
use tonic::Status;
use tracing::{info, warn};
use tributary_process::clock::{Clock, unix_nanos};
use tributary_proto::lanes::NotSent;

use crate::artifacts::ArtifactId;
use crate::custodian::Custodian;
use crate::execute::Assignment;
use crate::holdings::{Held, Holdings};
use crate::session::{Line, status_of};
use crate::slots::{Outcome, Slots};

/// Events taken at once before the clock is looked at again.
const BATCH: usize = 64;

/// Something that happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// An API node opened a stream.
    Opened { session: SessionId, token: String, line: Line },
    /// It said something.
    Told { session: SessionId, message: ApiMessage },
    /// It said something that is no message.
    Malformed { session: SessionId },
    /// Its stream is over.
    Ended { session: SessionId },
    /// A run ended.
    RunEnded { run: RunId, outcome: Outcome },
    /// The store evicted an artifact.
    Lost(ArtifactId),
    /// How the disk is.
    Disk(DiskReport),
    /// Leave.
    Drain,
    /// Somebody wants to see how things are.
    Look(oneshot::Sender<Box<View>>),
}

/// The owner of the intake.
pub(crate) struct Desk {
    intake: Intake,
    clock: Clock,
    artifact_base_url: String,
    slots: Slots,
    custodian: Custodian,
    lines: BTreeMap<SessionId, Line>,
    /// What runs, or was told to stop and has not.
    runs: BTreeMap<RunId, (SessionId, WorkId)>,
    holdings: Holdings,
    figures: Figures,
    /// Whether the drain ended clean, once it has ended.
    exit: Option<bool>,
}

impl Desk {
    pub(crate) fn new(
        intake: Intake,
        artifact_base_url: String,
        slots: Slots,
        custodian: Custodian,
    ) -> Self {
        Self {
            intake,
            clock: Clock::start(),
            artifact_base_url,
            slots,
            custodian,
            lines: BTreeMap::new(),
            runs: BTreeMap::new(),
            holdings: Holdings::default(),
            figures: Figures::default(),
            exit: None,
        }
    }

    /// Serves until the worker has drained. Gives whether nothing was cut short, and the custodian,
    /// who may still have something to put away.
    pub(crate) async fn serve(mut self, mut events: mpsc::Receiver<Event>) -> (bool, Custodian) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let (clock, due) = (self.clock, self.intake.poll_timeout());
            tokio::select! {
                biased;
                () = clock.sleep_until(due) => self.step(Input::Tick),
                taken = events.recv_many(&mut batch, BATCH) => {
                    if taken == 0 {
                        // Nobody is left who could tell anything.
                        return (false, self.custodian);
                    }
                    for event in batch.drain(..) {
                        self.take(event);
                    }
                }
            }
            if let Some(clean) = self.exit {
                return (clean, self.custodian);
            }
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Opened { session, token, line } => {
                tell::opened(session, line.peer);
                self.lines.insert(session, line);
                self.step(Input::StreamOpened { session, token });
            }
            Event::Told { session, message } => {
                self.note(session, &message);
                self.step(Input::Message { session, message });
            }
            Event::Malformed { session } => self.step(Input::Malformed { session }),
            Event::Ended { session } => {
                // A stream that was closed from here is over for the intake already.
                if self.hang_up(session, None) {
                    info!(%session, "stream ended");
                    self.step(Input::StreamClosed { session });
                }
            }
            Event::RunEnded { run, outcome } => self.run_ended(run, outcome),
            Event::Lost(artifact) => {
                for run in self.holdings.lose(&artifact) {
                    self.step(Input::ArtifactEvicted { run });
                }
            }
            Event::Disk(report) => self.step(Input::Disk(report)),
            Event::Drain => {
                info!("draining");
                self.step(Input::Drain);
            }
            Event::Look(answer) => {
                let snapshot = self.intake.snapshot(self.now());
                let (counts, times) = (self.intake.counts().clone(), self.intake.times().clone());
                let figures = self.figures.clone();
                // Whoever asked may have gone.
                drop(answer.send(Box::new(View { snapshot, counts, times, figures })));
            }
        }
    }

    /// What the intake is told but does not tell back.
    fn note(&mut self, session: SessionId, message: &ApiMessage) {
        match message {
            ApiMessage::ArtifactAck(ack) => {
                let named = self.holdings.acknowledge(session, ack.work_id, ack.checksum);
                if let Some((holder, held)) = named {
                    self.figures.ready_to_ack.observe(held.since.elapsed());
                    self.custodian.acknowledge(held.artifact.clone(), holder);
                }
            }
            ApiMessage::CancelWork(cancel) => tell::cancel(session, cancel),
            ApiMessage::Hello(hello) => tell::hello(session, hello),
            ApiMessage::AssignWork(_) | ApiMessage::Heartbeat(_) => {}
        }
    }

    fn run_ended(&mut self, run: RunId, outcome: Outcome) {
        self.slots.ended(run);
        let Some((session, work_id)) = self.runs.remove(&run) else { return };
        self.figures.count(&outcome);
        let input = match outcome {
            Outcome::Finished(finished) => {
                let held = Held {
                    artifact: finished.artifact.clone(),
                    session,
                    work_id,
                    checksum: finished.checksum,
                    since: Instant::now(),
                    acknowledged: false,
                };
                self.holdings.insert(run, held);
                let artifact = Artifact {
                    url: format!("{}{}", self.artifact_base_url, finished.artifact),
                    size_bytes: finished.size_bytes,
                    checksum: finished.checksum,
                    row_count: finished.row_count,
                    min_ts: finished.min_ts,
                    max_ts: finished.max_ts,
                    parquet_schema_version: finished.parquet_schema_version,
                };
                Input::RunFinished { run, artifact: Box::new(artifact) }
            }
            Outcome::Failed(failure) => Input::RunFailed { run, failure },
            Outcome::Stopped => Input::RunStopped { run },
        };
        self.step(input);
    }

    /// Tells the intake something and does what it decides.
    fn step(&mut self, input: Input) {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now = self.now();
            self.intake.handle(now, input);
            while let Some(action) = self.intake.poll_action() {
                if let Some(consequence) = self.carry_out(action) {
                    inputs.push_back(consequence);
                }
            }
        }
    }

    /// Does one thing. Gives what the intake has to be told of it.
    fn carry_out(&mut self, action: Action) -> Option<Input> {
        match action {
            Action::Send { session, message } => return self.send(session, message),
            Action::Close { session, reason } => {
                tell::closing(session, reason);
                self.figures.closed(reason);
                self.hang_up(session, Some(status_of(reason)));
            }
            Action::Start { run, session, work } => self.start(run, session, *work),
            Action::Stop { run } => self.slots.stop(run),
            Action::Delete { run } => {
                if let Some((holder, held)) = self.holdings.remove(run) {
                    self.custodian.release(held.artifact, holder);
                }
            }
            Action::Exit { clean } => {
                info!(clean, "drained");
                self.exit = Some(clean);
            }
        }
        None
    }

    fn start(&mut self, run: RunId, session: SessionId, work: AssignWork) {
        let span = tell::run_span(session, &work);
        self.runs.insert(run, (session, work.work_id));
        let deadline = Instant::now().checked_add(work.deadline);
        self.slots.begin(Assignment { run, session, work, deadline }, span);
    }

    /// Sends a message. A peer that reads too slowly for its queue is hung up on: it can recover from
    /// that, and from a message that never came it could not.
    fn send(&mut self, session: SessionId, mut message: WorkerMessage) -> Option<Input> {
        if let WorkerMessage::Heartbeat(beat) = &mut message {
            beat.sent_unix_nanos = unix_nanos();
        }
        tell::answer(session, &message);
        let line = self.lines.get(&session)?;
        match line.outbound.try_send(message) {
            // Where the stream is over, its reader says so in its turn.
            Ok(()) | Err(NotSent::Closed) => None,
            Err(NotSent::Full(_)) => {
                warn!(%session, "an API node reads too slowly and is hung up on");
                self.figures.slow_readers += 1;
                let reason = Status::resource_exhausted("messages are read too slowly");
                self.hang_up(session, Some(reason));
                Some(Input::StreamClosed { session })
            }
        }
    }

    /// Ends a stream on this side. False if it had ended before.
    fn hang_up(&mut self, session: SessionId, reason: Option<Status>) -> bool {
        let Some(line) = self.lines.remove(&session) else { return false };
        if let Some(reason) = reason {
            line.outbound.end_with(reason);
        }
        line.over.cancel();
        self.custodian.dismiss(session);
        true
    }

    fn now(&self) -> Moment {
        self.clock.now()
    }
}
