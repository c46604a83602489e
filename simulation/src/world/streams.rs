//! What travels between API nodes and workers: dialling, messages, the ends of streams, and what a
//! cut link or a dead machine makes of them.
//!
//! A pipe keeps order and loses nothing while its stream lives. A cut link holds everything back; a
//! sender whose bytes nobody acknowledges gives its stream up after a while. An end that closes
//! says so, if that can be heard; if not, the other end is half-open until it is silent for too
//! long or sends something that is answered with a reset.

use core_workcoord::coordinator::Input as ApiInput;
use core_workcoord::id::SessionId;
use core_workcoord::intake::Input as WorkerInput;
use core_workcoord::message::{ApiMessage, WorkerMessage};

use super::World;
use crate::SimBug;
use crate::agenda::Event;
use crate::checker::CloseFacts;
use crate::network::{End, Parcel, Pipe, Stream, Way};
use crate::rng::chance;
use crate::story::SECOND;

/// How long a sender waits for its bytes to be acknowledged.
const STUCK_FOR: u64 = 10 * SECOND;

impl Stream {
    fn first_arrival(&self, way: Way) -> Option<u64> {
        match way {
            Way::ToWorker => self.to_worker.first_arrival(),
            Way::ToApi => self.to_api.first_arrival(),
        }
    }

    pub(super) fn stuck_since(&mut self, way: Way) -> &mut Option<u64> {
        match way {
            Way::ToWorker => &mut self.to_worker.stuck_since,
            Way::ToApi => &mut self.to_api.stuck_since,
        }
    }

    fn armed(&mut self, way: Way) -> &mut bool {
        match way {
            Way::ToWorker => &mut self.to_worker.armed,
            Way::ToApi => &mut self.to_api.armed,
        }
    }
}

impl World<'_> {
    pub(super) fn dial(&mut self, api: u32, session: SessionId, endpoint: u32) {
        let id = u32::try_from(self.net.streams.len()).expect("a story dials thousands of times");
        let worker = crate::endpoints::Endpoints::worker_of(endpoint);
        self.net.streams.push(Stream {
            api,
            api_life: self.apis[api as usize].process.life,
            worker,
            worker_life: 0,
            endpoint,
            api_session: session,
            worker_session: SessionId(0),
            api_end: End::Opening,
            worker_end: End::Opening,
            to_worker: Pipe::default(),
            to_api: Pipe::default(),
            tainted: false,
            reset: false,
        });
        self.net.link_mut(api, worker).streams.push(id);
        self.apis[api as usize].sessions.insert(session, id);
        self.post_to_worker(id, Parcel::Open);
    }

    pub(super) fn post_to_worker(&mut self, stream: u32, parcel: Parcel<ApiMessage>) {
        let (api, worker) = (self.net.stream(stream).api, self.net.stream(stream).worker);
        let arrival = self.now + self.net.delay(api, worker, Way::ToWorker);
        self.net.stream_mut(stream).to_worker.put(arrival, parcel);
        self.arm_pipe(stream, Way::ToWorker);
    }

    pub(super) fn post_to_api(&mut self, stream: u32, parcel: Parcel<WorkerMessage>) {
        let (api, worker) = (self.net.stream(stream).api, self.net.stream(stream).worker);
        let arrival = self.now + self.net.delay(api, worker, Way::ToApi);
        self.net.stream_mut(stream).to_api.put(arrival, parcel);
        self.arm_pipe(stream, Way::ToApi);
    }

    pub(super) fn arm_pipe(&mut self, stream: u32, way: Way) {
        let it = self.net.stream_mut(stream);
        if *it.armed(way) || it.stuck_since(way).is_some() {
            return;
        }
        if let Some(first) = it.first_arrival(way) {
            *it.armed(way) = true;
            self.agenda.note(first.max(self.now), Event::Pipe { stream, way });
        }
    }

    /// Says something to a worker, as the API's driver does: a full buffer closes the stream.
    pub(super) fn say_to_worker(&mut self, stream: u32, parcel: Parcel<ApiMessage>) {
        let limit = self.story.shape.pipe_limit as u64;
        let it = self.net.stream_mut(stream);
        if it.api_end != End::Open {
            return;
        }
        it.to_worker.said += u64::from(matches!(parcel, Parcel::Message(_)));
        if it.to_worker.in_flight >= limit {
            if self.options.sim_bug == Some(SimBug::DropOnFullBuffer) {
                return;
            }
            return self.api_driver_gives_up(stream);
        }
        match parcel {
            Parcel::Message(beat @ ApiMessage::Heartbeat(_))
                if self.story.shape.heartbeats_first =>
            {
                let (api, worker) = (it.api, it.worker);
                let arrival = self.now + self.net.delay(api, worker, Way::ToWorker);
                let may_wait = |message: &ApiMessage| !matches!(message, ApiMessage::Hello(_));
                self.net.stream_mut(stream).to_worker.put_ahead(arrival, beat, may_wait);
                self.arm_pipe(stream, Way::ToWorker);
            }
            parcel => self.post_to_worker(stream, parcel),
        }
    }

    /// Says something to an API node, as the worker's driver does.
    pub(super) fn say_to_api(&mut self, stream: u32, parcel: Parcel<WorkerMessage>) {
        let limit = self.story.shape.pipe_limit as u64;
        let it = self.net.stream_mut(stream);
        if it.worker_end != End::Open {
            return;
        }
        it.to_api.said += u64::from(matches!(parcel, Parcel::Message(_)));
        if it.to_api.in_flight >= limit {
            if self.options.sim_bug == Some(SimBug::DropOnFullBuffer) {
                return;
            }
            return self.worker_driver_gives_up(stream);
        }
        match parcel {
            Parcel::Message(beat @ WorkerMessage::Heartbeat(_))
                if self.story.shape.heartbeats_first =>
            {
                let (api, worker) = (it.api, it.worker);
                let arrival = self.now + self.net.delay(api, worker, Way::ToApi);
                let may_wait =
                    |message: &WorkerMessage| !matches!(message, WorkerMessage::Welcome(_));
                self.net.stream_mut(stream).to_api.put_ahead(arrival, beat, may_wait);
                self.arm_pipe(stream, Way::ToApi);
            }
            parcel => self.post_to_api(stream, parcel),
        }
        if self.options.sim_bug == Some(SimBug::MessagesSwapped) {
            let it = self.net.stream_mut(stream);
            if it.to_api.said % 32 == 9 {
                it.to_api.swap_last();
            }
        }
    }

    /// Whether nobody is at the place a way of a stream leads to, not even to refuse.
    pub(super) fn nobody_there(&self, stream: u32, way: Way) -> bool {
        let it = self.net.stream(stream);
        match way {
            Way::ToApi => self.apis[it.api as usize].vanished,
            Way::ToWorker => {
                let worker = &self.workers[it.worker as usize];
                // Half of the addresses that were moved away from do not even refuse.
                let deserted = worker.endpoint != it.endpoint && it.endpoint % 2 == 1;
                worker.vanished || deserted
            }
        }
    }

    /// The first parcel of a pipe may have arrived.
    pub(super) fn pipe_due(&mut self, stream: u32, way: Way) {
        *self.net.stream_mut(stream).armed(way) = false;
        while self.checker.violation().is_none() {
            let it = self.net.stream_mut(stream);
            let Some(first) = it.first_arrival(way) else { return };
            if it.stuck_since(way).is_some() {
                return;
            }
            if first > self.now {
                return self.arm_pipe(stream, way);
            }
            let (api, worker) = (it.api, it.worker);
            if self.net.link(api, worker).is_cut(way) || self.nobody_there(stream, way) {
                let since = self.now;
                *self.net.stream_mut(stream).stuck_since(way) = Some(since);
                self.agenda.note(since + STUCK_FOR, Event::Stuck { stream, way, since });
                return;
            }
            let process = match way {
                Way::ToWorker => &mut self.workers[worker as usize].process,
                Way::ToApi => &mut self.apis[api as usize].process,
            };
            if process.is_hung() {
                process.deferred.push(Event::Pipe { stream, way });
                *self.net.stream_mut(stream).armed(way) = true;
                return;
            }
            match way {
                Way::ToWorker => self.arrive_at_worker(stream),
                Way::ToApi => self.arrive_at_api(stream),
            }
        }
    }

    fn arrive_at_worker(&mut self, stream: u32) {
        let it = self.net.stream_mut(stream);
        let (worker, session, end) = (it.worker, it.worker_session, it.worker_end);
        let Some(parcel) = it.to_worker.take() else { return };
        match (parcel, end) {
            (Parcel::Open, End::Opening) => self.accept(stream),
            (Parcel::Message(message), End::Open) => {
                self.step_worker(worker, WorkerInput::Message { session, message });
            }
            (Parcel::Malformed, End::Open) => {
                self.step_worker(worker, WorkerInput::Malformed { session });
            }
            (Parcel::Closed, End::Open) => {
                it.worker_end = End::Closed;
                it.to_api.drop_unheard();
                self.net.forget_if_over(stream);
                self.workers[worker as usize].sessions.remove(session);
                self.step_worker(worker, WorkerInput::StreamClosed { session });
            }
            (Parcel::Closed, End::Opening | End::Closed) => {
                it.worker_end = End::Closed;
                self.net.forget_if_over(stream);
            }
            (Parcel::Open | Parcel::Message(_) | Parcel::Malformed, End::Opening | End::Closed) => {
                self.refuse_to_api(stream);
            }
            (Parcel::Open, End::Open) => {}
        }
    }

    fn arrive_at_api(&mut self, stream: u32) {
        let it = self.net.stream_mut(stream);
        let (api, session, end) = (it.api, it.api_session, it.api_end);
        let Some(parcel) = it.to_api.take() else { return };
        match (parcel, end) {
            (Parcel::Open, End::Opening) => {
                it.api_end = End::Open;
                self.step_api(api, ApiInput::StreamOpened { session });
            }
            (Parcel::Message(message), End::Open) => {
                self.step_api(api, ApiInput::Message { session, message });
            }
            (Parcel::Malformed, End::Open) => {
                self.step_api(api, ApiInput::Malformed { session });
            }
            (Parcel::Closed, End::Opening | End::Open) => {
                it.api_end = End::Closed;
                it.to_worker.drop_unheard();
                self.net.forget_if_over(stream);
                if self.options.sim_bug != Some(SimBug::ClosedNotTold) {
                    self.apis[api as usize].sessions.remove(session);
                    self.step_api(api, ApiInput::StreamClosed { session });
                }
            }
            (Parcel::Closed, End::Closed) => self.net.forget_if_over(stream),
            (Parcel::Open | Parcel::Message(_) | Parcel::Malformed, End::Closed) => {
                // A process that knows nothing of the stream resets it.
                if self.net.stream(stream).worker_end == End::Open {
                    self.post_to_worker(stream, Parcel::Closed);
                }
            }
            (Parcel::Open, End::Open) | (Parcel::Message(_) | Parcel::Malformed, End::Opening) => {}
        }
    }

    fn refuse_to_api(&mut self, stream: u32) {
        let it = self.net.stream_mut(stream);
        it.worker_end = End::Closed;
        if it.api_end != End::Closed {
            self.post_to_api(stream, Parcel::Closed);
        }
    }

    /// A worker takes a connection, or does not.
    fn accept(&mut self, stream: u32) {
        let it = self.net.stream_mut(stream);
        let node = &mut self.workers[it.worker as usize];
        if node.machine.is_none() || node.endpoint != it.endpoint {
            return self.refuse_to_api(stream);
        }
        if node.trouble.open_hangs > 0 {
            it.worker_end = End::Closed;
            return;
        }
        node.sessions_begun += 1;
        let session = SessionId(node.sessions_begun);
        it.worker_session = session;
        it.worker_life = node.process.life;
        it.worker_end = End::Open;
        it.tainted |= node.tainted;
        node.sessions.insert(session, stream);
        let worker = it.worker;
        self.post_to_api(stream, Parcel::Open);
        let token = format!("token-{worker}-{}", session.0);
        self.step_worker(worker, WorkerInput::StreamOpened { session, token });
    }

    /// What a judge of a closed stream needs to know.
    pub(super) fn close_facts(&self, stream: u32) -> CloseFacts {
        let it = self.net.stream(stream);
        let link = self.net.link(it.api, it.worker);
        let timeout = self.story.shape.coordinator.answer_timeout.as_nanos();
        let since = self.now.saturating_sub(u64::try_from(timeout).unwrap_or(0) + SECOND);
        let api = &self.apis[it.api as usize];
        let worker = &self.workers[it.worker as usize];
        CloseFacts {
            disturbed: Way::BOTH.iter().any(|way| link.was_disturbed(*way, since))
                || api.process.was_disturbed(since)
                || worker.process.was_disturbed(since)
                || self.nobody_there(stream, Way::ToWorker)
                || worker.trouble.open_hangs > 0,
            both_open: it.api_end == End::Open && it.worker_end == End::Open,
            tainted: it.tainted || api.tainted || worker.tainted,
        }
    }

    /// Nothing that was said on a living stream is lost.
    pub(super) fn check_pipes(&mut self) {
        for (id, it) in (0_u32..).zip(&self.net.streams) {
            if it.api_end == End::Open && it.worker_end == End::Open && !it.reset {
                let whole = it.to_worker.said == it.to_worker.heard + it.to_worker.in_flight
                    && it.to_api.said == it.to_api.heard + it.to_api.in_flight;
                self.checker.nothing_lost(whole, id, it.api, it.worker, it.api_session);
            }
        }
    }

    /// A draw for a lie.
    pub(super) fn lies_now(&self, luck: u64) -> bool {
        chance(luck, 250)
    }
}
