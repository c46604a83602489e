//! Links between API nodes and workers, streams over them, and the two ordered pipes of a stream.
//! Keeps who is connected to whom and what is on its way; `world/streams.rs` moves it.

use std::collections::VecDeque;

use core_workcoord::id::SessionId;
use core_workcoord::message::{ApiMessage, WorkerMessage};

use crate::rng::{Lane, Purpose, draw, within};
use crate::story::MS;

/// Which way a message travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    ToWorker,
    ToApi,
}

impl Way {
    pub(crate) const BOTH: [Self; 2] = [Self::ToWorker, Self::ToApi];

    fn index(self) -> usize {
        match self {
            Self::ToWorker => 0,
            Self::ToApi => 1,
        }
    }
}

/// The wire between one API's machine and one worker's.
#[derive(Debug, Default)]
pub(crate) struct Link {
    cuts: [u16; 2],
    slows: [u16; 2],
    slowest: [u64; 2],
    drawn: [u64; 2],
    /// Until when each way was disturbed; far in the future while it is.
    disturbed_until: [u64; 2],
    /// How many faults corrupt what is fetched over it.
    pub(crate) corrupting: u16,
    /// Streams that are not over.
    pub(crate) streams: Vec<u32>,
}

/// A time after every story.
pub(crate) const FOREVER: u64 = u64::MAX;

impl Link {
    pub(crate) fn is_cut(&self, way: Way) -> bool {
        self.cuts[way.index()] > 0
    }

    /// Whether a way was cut or slow at any time since `since`.
    pub(crate) fn was_disturbed(&self, way: Way, since: u64) -> bool {
        self.disturbed_until[way.index()] >= since
    }

    pub(crate) fn cut(&mut self, way: Way) {
        self.cuts[way.index()] += 1;
        self.disturbed_until[way.index()] = FOREVER;
    }

    /// Takes one cut back. Says whether the way is whole again.
    pub(crate) fn mend(&mut self, way: Way, now: u64) -> bool {
        let at = way.index();
        self.cuts[at] = self.cuts[at].saturating_sub(1);
        self.calm(at, now);
        self.cuts[at] == 0
    }

    pub(crate) fn slow(&mut self, way: Way, slowest: u64) {
        let at = way.index();
        self.slows[at] += 1;
        self.slowest[at] = self.slowest[at].max(slowest);
        self.disturbed_until[at] = FOREVER;
    }

    pub(crate) fn speed_up(&mut self, way: Way, now: u64) {
        let at = way.index();
        self.slows[at] = self.slows[at].saturating_sub(1);
        if self.slows[at] == 0 {
            // What was sent before still arrives late.
            self.calm(at, now + self.slowest[at]);
            self.slowest[at] = 0;
        }
    }

    fn calm(&mut self, at: usize, until: u64) {
        if self.cuts[at] == 0 && self.slows[at] == 0 {
            self.disturbed_until[at] = until;
        }
    }

    /// Ends every disturbance.
    pub(crate) fn heal(&mut self, now: u64) {
        for at in 0..2 {
            if self.disturbed_until[at] == FOREVER {
                self.disturbed_until[at] = now + self.slowest[at];
            }
        }
        self.cuts = [0; 2];
        self.slows = [0; 2];
        self.slowest = [0; 2];
        self.corrupting = 0;
    }
}

/// How far one end of a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Not open yet.
    Opening,
    Open,
    Closed,
}

/// What travels in a pipe.
#[derive(Clone, Debug)]
pub(crate) enum Parcel<M> {
    /// The stream is asked for, or is there.
    Open,
    Message(M),
    /// Bytes that are no message.
    Malformed,
    /// The other end is closed.
    Closed,
}

/// One direction of a stream.
#[derive(Debug)]
pub(crate) struct Pipe<M> {
    parcels: VecDeque<(u64, Parcel<M>)>,
    last_arrival: u64,
    /// An event for the first parcel is noted.
    pub(crate) armed: bool,
    /// Since when its first parcel can't go on.
    pub(crate) stuck_since: Option<u64>,
    /// Messages handed to it by the sender.
    pub(crate) said: u64,
    /// Messages the receiver took from it.
    pub(crate) heard: u64,
    /// Messages that are in it now.
    pub(crate) in_flight: u64,
}

impl<M> Default for Pipe<M> {
    fn default() -> Self {
        Self {
            parcels: VecDeque::new(),
            last_arrival: 0,
            armed: false,
            stuck_since: None,
            said: 0,
            heard: 0,
            in_flight: 0,
        }
    }
}

impl<M> Pipe<M> {
    /// Puts a parcel in; it arrives no earlier than those before it.
    pub(crate) fn put(&mut self, arrival: u64, parcel: Parcel<M>) {
        self.last_arrival = self.last_arrival.max(arrival);
        self.in_flight += u64::from(matches!(parcel, Parcel::Message(_)));
        self.parcels.push_back((self.last_arrival, parcel));
    }

    /// Puts a message in ahead of those that `may_wait`, back to the first that may not.
    pub(crate) fn put_ahead(&mut self, arrival: u64, message: M, may_wait: impl Fn(&M) -> bool) {
        let waits = |(_, parcel): &&(u64, Parcel<M>)| match parcel {
            Parcel::Message(message) => may_wait(message),
            Parcel::Open | Parcel::Malformed | Parcel::Closed => false,
        };
        let at = self.parcels.len() - self.parcels.iter().rev().take_while(waits).count();
        let Some((next, _)) = self.parcels.get(at) else {
            return self.put(arrival, Parcel::Message(message));
        };
        let before = at.checked_sub(1).map_or(0, |before| self.parcels[before].0);
        let arrival = arrival.max(before).min(*next);
        self.in_flight += 1;
        self.parcels.insert(at, (arrival, Parcel::Message(message)));
    }

    /// When the first parcel arrives.
    pub(crate) fn first_arrival(&self) -> Option<u64> {
        self.parcels.front().map(|(arrival, _)| *arrival)
    }

    /// Takes the first parcel out.
    pub(crate) fn take(&mut self) -> Option<Parcel<M>> {
        let (_, parcel) = self.parcels.pop_front()?;
        if matches!(parcel, Parcel::Message(_)) {
            self.in_flight -= 1;
            self.heard += 1;
        }
        Some(parcel)
    }

    /// Swaps the last two messages, which a real stream never does.
    pub(crate) fn swap_last(&mut self) {
        let len = self.parcels.len();
        if len >= 2 {
            let (before, after) = (self.parcels[len - 2].0, self.parcels[len - 1].0);
            self.parcels.swap(len - 2, len - 1);
            self.parcels[len - 2].0 = before;
            self.parcels[len - 1].0 = after;
        }
    }

    /// Moves the arrival of everything in it, when a stuck pipe goes on.
    pub(crate) fn unstick(&mut self, arrival: u64) {
        self.stuck_since = None;
        self.last_arrival = self.last_arrival.max(arrival);
        for (at, _) in &mut self.parcels {
            *at = (*at).max(arrival);
        }
    }

    /// Drops what nobody will hear, now that the sender's end is closed; that it is closed may
    /// still be on its way.
    pub(crate) fn drop_unheard(&mut self) {
        self.parcels.retain(|(_, parcel)| matches!(parcel, Parcel::Closed));
        self.in_flight = 0;
    }

    /// Drops what is in it.
    pub(crate) fn empty(&mut self) {
        self.parcels.clear();
        self.in_flight = 0;
        self.stuck_since = None;
    }
}

/// One life of a control stream, seen from outside.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) api: u32,
    pub(crate) api_life: u32,
    pub(crate) worker: u32,
    pub(crate) worker_life: u32,
    pub(crate) endpoint: u32,
    pub(crate) api_session: SessionId,
    pub(crate) worker_session: SessionId,
    pub(crate) api_end: End,
    pub(crate) worker_end: End,
    pub(crate) to_worker: Pipe<ApiMessage>,
    pub(crate) to_api: Pipe<WorkerMessage>,
    /// One of its ends lied, or was lied to.
    pub(crate) tainted: bool,
    /// It was reset: what was in it is lost, and both ends will hear of it.
    pub(crate) reset: bool,
}

/// All links and streams.
#[derive(Debug)]
pub(crate) struct Network {
    seed: u64,
    workers: usize,
    links: Vec<Link>,
    pub(crate) streams: Vec<Stream>,
}

impl Network {
    pub(crate) fn new(seed: u64, apis: usize, workers: usize) -> Self {
        let links = (0..apis * workers).map(|_| Link::default()).collect();
        Self { seed, workers, links, streams: Vec::with_capacity(128) }
    }

    fn place(&self, api: u32, worker: u32) -> usize {
        api as usize * self.workers + worker as usize
    }

    pub(crate) fn link(&self, api: u32, worker: u32) -> &Link {
        &self.links[self.place(api, worker)]
    }

    pub(crate) fn link_mut(&mut self, api: u32, worker: u32) -> &mut Link {
        let place = self.place(api, worker);
        &mut self.links[place]
    }

    pub(crate) fn links_mut(&mut self) -> impl Iterator<Item = &mut Link> {
        self.links.iter_mut()
    }

    /// The time the next message takes on this way of this link.
    pub(crate) fn delay(&mut self, api: u32, worker: u32, way: Way) -> u64 {
        let place = self.place(api, worker);
        let link = &mut self.links[place];
        let at = way.index();
        link.drawn[at] += 1;
        let luck = draw(self.seed, Lane::new(Purpose::Delay, place * 2 + at), link.drawn[at]);
        match link.slows[at] {
            0 => within(luck, MS / 10, 2 * MS),
            _ => within(luck, MS / 10, link.slowest[at].max(2 * MS)),
        }
    }

    pub(crate) fn stream(&self, stream: u32) -> &Stream {
        &self.streams[stream as usize]
    }

    pub(crate) fn stream_mut(&mut self, stream: u32) -> &mut Stream {
        &mut self.streams[stream as usize]
    }

    /// Lets go of a stream whose ends are both closed.
    pub(crate) fn forget_if_over(&mut self, stream: u32) {
        let it = &mut self.streams[stream as usize];
        if it.api_end == End::Closed && it.worker_end == End::Closed {
            it.to_worker = Pipe::default();
            it.to_api = Pipe::default();
            let (api, worker) = (it.api, it.worker);
            self.link_mut(api, worker).streams.retain(|other| *other != stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_keeps_order_even_when_a_later_parcel_is_faster() {
        let mut pipe = Pipe::default();
        pipe.put(50, Parcel::Message(1));
        pipe.put(20, Parcel::Message(2));
        assert_eq!(pipe.first_arrival(), Some(50));
        assert!(matches!(pipe.take(), Some(Parcel::Message(1))));
        assert_eq!(pipe.first_arrival(), Some(50));
        pipe.unstick(70);
        assert_eq!(pipe.first_arrival(), Some(70));
        assert_eq!((pipe.in_flight, pipe.heard), (1, 1));
    }

    #[test]
    fn what_may_go_ahead_passes_only_what_may_wait() {
        let mut pipe = Pipe::default();
        pipe.put(10, Parcel::Open);
        pipe.put(20, Parcel::Message(100));
        pipe.put(30, Parcel::Message(1));
        pipe.put(40, Parcel::Message(2));
        pipe.put_ahead(35, 7, |message| *message < 100);
        let order: Vec<_> = std::iter::from_fn(|| {
            let at = pipe.first_arrival()?;
            Some((at, pipe.take()?))
        })
        .filter_map(|(at, parcel)| match parcel {
            Parcel::Message(message) => Some((at, message)),
            _ => None,
        })
        .collect();
        assert_eq!(order, [(20, 100), (30, 7), (30, 1), (40, 2)]);
        assert_eq!((pipe.in_flight, pipe.heard), (0, 4));
    }

    #[test]
    fn a_way_is_whole_when_every_cut_is_mended() {
        let mut link = Link::default();
        link.cut(Way::ToApi);
        link.cut(Way::ToApi);
        assert!(!link.mend(Way::ToApi, 10));
        assert!(link.is_cut(Way::ToApi) && link.was_disturbed(Way::ToApi, 1_000));
        assert!(link.mend(Way::ToApi, 20));
        assert!(link.was_disturbed(Way::ToApi, 20) && !link.was_disturbed(Way::ToApi, 21));
        assert!(!link.was_disturbed(Way::ToWorker, 1));
    }
}
