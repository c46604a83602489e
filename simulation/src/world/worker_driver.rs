//! What a worker process does for its intake: hands it what happened, carries out what it decides,
//! keeps its timer, runs the work and keeps the files.

use core_workcoord::id::{SessionId, WorkerId};
use core_workcoord::intake::{Action, DiskReport, Identity, Input, Intake};
use core_workcoord::journal::Header;
use core_workcoord::message::WorkerMessage;

use super::World;
use crate::SimBug;
use crate::agenda::Event;
use crate::checker::CloseFacts;
use crate::endpoints::Endpoints;
use crate::journal::Node;
use crate::rng::{Lane, Purpose, draw, within};
use crate::story::MS;
use crate::violation::{About, Check};
use crate::{brief, describe};

impl World<'_> {
    /// A new life of a worker, unless it lives already or must not.
    pub(super) fn start_worker(&mut self, worker: u32) {
        let at = worker as usize;
        let node = &mut self.workers[at];
        if node.machine.is_some() || node.trouble.parked > 0 {
            return;
        }
        let life = node.process.life + 1;
        node.lose_everything(self.now, self.options.sim_bug == Some(SimBug::FileLeftAfterCrash));
        if std::mem::take(&mut node.vanished) {
            node.process.disturb(self.now);
        }
        let endpoint = node.endpoint;
        let identity = Identity {
            worker_id: WorkerId::new(&format!("worker-{worker}")).expect("it is short and plain"),
            version: String::from("simulated"),
            artifact_base_url: self.endpoints.base_url(endpoint),
        };
        let config = self.story.shape.intake.clone();
        if self.options.journal {
            let header = Header::Intake { config: config.clone(), identity: identity.clone() };
            self.journals.begin(Node::Worker(worker), life, &header);
        }
        let mut machine = Intake::new(config, identity).expect("stories are configured well");
        if let Some(prepare) = self.options.prepare_intake {
            prepare(&mut machine);
        }
        self.workers[at].machine = Some(machine);
        self.trace.say(self.now, About::worker(worker), || {
            format!("worker-{worker} begins life {life} at {}", self.endpoints.name(endpoint))
        });
        self.checker.worker_begins(worker);
        self.unstick_worker(worker);
        self.report_disk(worker);
        self.list(endpoint, true);
    }

    /// A worker process is gone, with everything it had.
    pub(super) fn kill_worker(&mut self, worker: u32, told: bool, moves: bool) {
        let at = worker as usize;
        if self.workers[at].machine.is_none() {
            return;
        }
        self.trace.say(self.now, About::worker(worker), || format!("worker-{worker} dies"));
        self.checker.worker_dies(worker);
        let node = &mut self.workers[at];
        let streams: Vec<u32> = node.sessions.iter().map(|(_, stream)| *stream).collect();
        for event in node.process.take_parcels() {
            self.agenda.note(self.now, event);
        }
        node.lose_everything(self.now, self.options.sim_bug == Some(SimBug::FileLeftAfterCrash));
        node.vanished = !told;
        let endpoint = node.endpoint;
        for stream in streams {
            self.close_worker_end(stream, told);
        }
        if moves {
            self.workers[at].endpoint = Endpoints::next(endpoint);
            self.list(endpoint, false);
        }
    }

    /// Hands an input to an intake and does what it decides.
    pub(super) fn step_worker(&mut self, worker: u32, input: Input) {
        let at = worker as usize;
        let node = &mut self.workers[at];
        let Some(machine) = node.machine.as_mut() else { return };
        if self.checker.violation().is_some() {
            return;
        }
        let apis = self.apis.len();
        let clock = node.process.read_clock(self.story.seed, apis + at, self.now);
        self.trace.say(self.now, describe::about_worker_input(worker, &input), || {
            format!("worker-{worker} ← {}", brief::worker_input(&input))
        });
        self.checker.worker_told(worker, clock, &input);
        let told = (!self.options.from_outside_only || self.options.journal).then(|| input.clone());
        machine.handle(clock, input);
        if let Some(told) = told.as_ref().filter(|_| !self.options.from_outside_only) {
            let audit = machine.audit_input(told);
            self.note_broken(Check::Intake, audit, describe::about_worker_input(worker, told));
        }
        let (mut leaves, mut decided) = (false, Vec::new());
        while let Some(action) = self.workers[at].machine.as_mut().and_then(Intake::poll_action) {
            self.tally.actions += 1;
            self.stamp(describe::word_of_worker_action(&action));
            self.trace.say(self.now, describe::about_worker_action(worker, &action), || {
                format!("worker-{worker}   → {}", brief::worker_action(&action))
            });
            leaves |= matches!(action, Action::Exit { .. });
            if self.options.journal {
                decided.push(action.clone());
            }
            self.carry_out_for_worker(worker, action);
        }
        if let Some(told) = told.filter(|_| self.options.journal) {
            self.journals.worker_step(worker, clock, &told, &decided);
        }
        let node = &self.workers[at];
        if let Some(machine) = &node.machine {
            self.checker.worker_stepped(worker, machine, &node.runs, &node.files);
        }
        if leaves {
            self.left(worker);
        } else {
            self.arm_worker(worker);
        }
    }

    fn carry_out_for_worker(&mut self, worker: u32, action: Action) {
        let node = &mut self.workers[worker as usize];
        match action {
            Action::Send { session, message } => {
                self.checker.worker_says(worker, session, &message, &node.runs, &node.files);
                if self.options.sim_bug == Some(SimBug::HeartbeatBehindWork)
                    && matches!(message, WorkerMessage::Heartbeat(_))
                    && !node.runs.is_empty()
                {
                    return;
                }
                self.send_from_worker(worker, session, message);
            }
            Action::Close { session, reason } => {
                let facts = match node.sessions.get(session).copied() {
                    Some(stream) => self.close_facts(stream),
                    None => CloseFacts::default(),
                };
                self.checker.worker_closes(worker, session, reason, facts);
                self.worker_closes(worker, session);
            }
            Action::Start { run, session, work } => {
                self.checker.worker_starts(worker, run, session, &work);
                self.start_run(worker, run, session, &work);
            }
            Action::Stop { run } => {
                self.checker.worker_stops(worker, run, node.runs.get(run));
                self.stop_run(worker, run);
            }
            Action::Delete { run } => {
                self.checker.worker_deletes(worker, run, node.files.get(run));
                if self.options.sim_bug != Some(SimBug::DeleteForgotten) {
                    node.files.remove(run);
                }
            }
            Action::Exit { clean } => {
                self.checker.worker_exits(worker, clean, node.runs.len());
            }
        }
    }

    fn worker_closes(&mut self, worker: u32, session: SessionId) {
        let node = &mut self.workers[worker as usize];
        let Some(stream) = node.sessions.remove(session) else { return };
        let life = node.process.life;
        self.close_worker_end(stream, true);
        // A driver may notice the end of a stream that it was about to close itself.
        let luck =
            draw(self.story.seed, Lane::new(Purpose::Late, 1_000 + worker as usize), session.0);
        if luck & 7 == 0 {
            let at = self.now + within(luck, 0, MS);
            self.agenda.note(at, Event::WorkerStreamEnded { worker, life, session: session.0 });
        }
    }

    /// The driver says that a stream is over.
    pub(super) fn worker_stream_ended(&mut self, worker: u32, life: u32, session: u64) {
        let node = &mut self.workers[worker as usize];
        if node.process.life != life || node.machine.is_none() {
            return;
        }
        if node.process.is_hung() {
            node.process.deferred.push(Event::WorkerStreamEnded { worker, life, session });
            return;
        }
        node.sessions.remove(SessionId(session));
        self.step_worker(worker, Input::StreamClosed { session: SessionId(session) });
    }

    pub(super) fn arm_worker(&mut self, worker: u32) {
        let at = worker as usize;
        let node = &mut self.workers[at];
        let Some(due) = node.machine.as_ref().and_then(Intake::poll_timeout) else { return };
        let due = node.process.time_of(due).max(self.now);
        if node.process.tick_at.is_some_and(|noted| noted <= due) {
            return;
        }
        let luck = draw(self.story.seed, Lane::new(Purpose::Timer, 1_000 + at), due);
        let late = within(luck, 0, MS / 2);
        node.process.tick_at = Some(due + late);
        self.agenda.note(due + late, Event::WorkerTick { worker });
    }

    pub(super) fn worker_tick(&mut self, worker: u32) {
        let node = &mut self.workers[worker as usize];
        let Some(machine) = &node.machine else { return };
        if node.process.tick_at != Some(self.now) {
            return;
        }
        if node.process.is_hung() {
            node.process.deferred.push(Event::WorkerTick { worker });
            return;
        }
        node.process.tick_at = None;
        let clock = node.process.clock(self.now);
        if machine.poll_timeout().is_some_and(|due| due <= clock) {
            let ticks = node.process.ticks(self.now);
            self.checker.timer_helps(ticks, About::worker(worker));
            self.step_worker(worker, Input::Tick);
        }
        self.arm_worker(worker);
    }

    /// Tells the intake how the disk is.
    pub(super) fn report_disk(&mut self, worker: u32) {
        let node = &self.workers[worker as usize];
        let spool_bytes = node.files.iter().map(|(_, file)| file.size_bytes).sum();
        let room = node.trouble.disk_full == 0;
        let free_bytes = if room { 1 << 30 } else { 0 };
        let report = DiskReport { room, spool_bytes, cache_bytes: 0, free_bytes };
        self.step_worker(worker, Input::Disk(report));
    }

    /// A worker is asked to leave.
    pub(super) fn ask_to_leave(&mut self, worker: u32, life: u32) {
        let node = &mut self.workers[worker as usize];
        if node.process.life != life || node.machine.is_none() {
            return;
        }
        if node.process.is_hung() {
            node.process.deferred.push(Event::WorkerDrains { worker, life });
            return;
        }
        self.step_worker(worker, Input::Drain);
    }

    /// A worker has left; it comes back after a while.
    fn left(&mut self, worker: u32) {
        let away_for = self.workers[worker as usize].away_for;
        self.kill_worker(worker, true, false);
        self.list(self.workers[worker as usize].endpoint, false);
        self.agenda.note(self.now + away_for, Event::WorkerUp { worker });
    }
}
