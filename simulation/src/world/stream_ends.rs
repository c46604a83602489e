//! How streams end, half end, and go on: closed by a process, given up by a driver, reset by the
//! network, held back by a cut and released again.

use super::World;
use crate::agenda::Event;
use crate::network::{End, Parcel, Way};

impl World<'_> {
    /// The API's driver ends a stream by itself and tells its coordinator.
    pub(super) fn api_driver_gives_up(&mut self, stream: u32) {
        let it = self.net.stream(stream);
        let (api, life, session) = (it.api, it.api_life, it.api_session.0);
        self.tally.driver_closes += 1;
        self.close_api_end(stream, true);
        self.agenda.note(self.now, Event::ApiStreamEnded { api, life, session });
    }

    /// The worker's driver ends a stream by itself and tells its intake.
    pub(super) fn worker_driver_gives_up(&mut self, stream: u32) {
        let it = self.net.stream(stream);
        let (worker, life, session) = (it.worker, it.worker_life, it.worker_session.0);
        self.tally.driver_closes += 1;
        self.close_worker_end(stream, true);
        self.agenda.note(self.now, Event::WorkerStreamEnded { worker, life, session });
    }

    /// The API's end closes. Unless the machine is gone the other end is told, after what was said
    /// before or instead of it.
    pub(super) fn close_api_end(&mut self, stream: u32, told: bool) {
        let (api, worker) = (self.net.stream(stream).api, self.net.stream(stream).worker);
        let luck = self.net.delay(api, worker, Way::ToWorker);
        let cut = self.net.link(api, worker).is_cut(Way::ToWorker);
        let it = self.net.stream_mut(stream);
        if it.api_end == End::Closed {
            return;
        }
        it.api_end = End::Closed;
        it.to_api.empty();
        it.to_api.armed = false;
        let abrupt = !told || luck.is_multiple_of(2);
        if abrupt {
            it.to_worker.empty();
            if it.worker_end == End::Opening {
                it.worker_end = End::Closed;
            }
        }
        let lost = !told || (cut && luck % 4 < 2);
        if it.worker_end != End::Closed && !lost {
            self.post_to_worker(stream, Parcel::Closed);
        }
        self.net.forget_if_over(stream);
    }

    /// The worker's end closes.
    pub(super) fn close_worker_end(&mut self, stream: u32, told: bool) {
        let (api, worker) = (self.net.stream(stream).api, self.net.stream(stream).worker);
        let luck = self.net.delay(api, worker, Way::ToApi);
        let cut = self.net.link(api, worker).is_cut(Way::ToApi);
        let it = self.net.stream_mut(stream);
        if it.worker_end == End::Closed {
            return;
        }
        it.worker_end = End::Closed;
        it.to_worker.empty();
        it.to_worker.armed = false;
        if !told || luck.is_multiple_of(2) {
            it.to_api.empty();
        }
        let lost = !told || (cut && luck % 4 < 2);
        if it.api_end != End::Closed && !lost {
            self.post_to_api(stream, Parcel::Closed);
        }
        self.net.forget_if_over(stream);
    }

    /// A pipe has been stuck for long: its sender gives the stream up.
    pub(super) fn pipe_stuck(&mut self, stream: u32, way: Way, since: u64) {
        let it = self.net.stream_mut(stream);
        if *it.stuck_since(way) != Some(since) {
            return;
        }
        let end = if way == Way::ToWorker { it.api_end } else { it.worker_end };
        if end == End::Closed {
            // The sender is gone as well: its machine stops trying.
            match way {
                Way::ToWorker => it.to_worker.empty(),
                Way::ToApi => it.to_api.empty(),
            }
            if it.worker_end == End::Opening {
                it.worker_end = End::Closed;
            }
            return self.net.forget_if_over(stream);
        }
        match way {
            Way::ToWorker => self.api_driver_gives_up(stream),
            Way::ToApi => self.worker_driver_gives_up(stream),
        }
    }

    /// The link is reset: both ends hear of it.
    pub(super) fn reset_streams(&mut self, api: u32, worker: u32) {
        for stream in self.net.link(api, worker).streams.clone() {
            let it = self.net.stream_mut(stream);
            it.reset = true;
            it.to_worker.empty();
            it.to_api.empty();
            if it.worker_end == End::Opening {
                it.worker_end = End::Closed;
            }
            let (api_open, worker_open) = (it.api_end != End::Closed, it.worker_end == End::Open);
            if worker_open {
                self.post_to_worker(stream, Parcel::Closed);
            }
            if api_open {
                self.post_to_api(stream, Parcel::Closed);
            }
        }
    }

    /// What waited goes on, where it can.
    pub(super) fn unstick_link(&mut self, api: u32, worker: u32) {
        for at in 0..self.net.link(api, worker).streams.len() {
            let stream = self.net.link(api, worker).streams[at];
            for way in Way::BOTH {
                let cut = self.net.link(api, worker).is_cut(way);
                if cut || self.nobody_there(stream, way) {
                    continue;
                }
                let arrival = self.now + self.net.delay(api, worker, way);
                let it = self.net.stream_mut(stream);
                if it.stuck_since(way).is_some() {
                    match way {
                        Way::ToWorker => it.to_worker.unstick(arrival),
                        Way::ToApi => it.to_api.unstick(arrival),
                    }
                    self.arm_pipe(stream, way);
                }
            }
        }
    }

    pub(super) fn unstick_api(&mut self, api: u32) {
        for worker in (0_u32..).take(self.workers.len()) {
            self.unstick_link(api, worker);
        }
    }

    pub(super) fn unstick_worker(&mut self, worker: u32) {
        for api in (0_u32..).take(self.apis.len()) {
            self.unstick_link(api, worker);
        }
    }
}
