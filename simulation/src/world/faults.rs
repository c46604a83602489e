//! What goes wrong, how it ends, and how everything heals.

use core_workcoord::id::RunId;
use core_workcoord::intake::Input;

use super::World;
use crate::agenda::Event;
use crate::content::{self, Wrong};
use crate::endpoints::Endpoints;
use crate::fault::FaultKind;
use crate::network::Way;
use crate::rng::{Lane, Purpose, draw, within};
use crate::story::MS;
use crate::violation::About;
use crate::worker_node::RunEnd;

/// The pause between two looks of a disk manager that evicts.
const EVICT_EVERY: u64 = 60 * MS;

fn ways(to_worker: bool, to_api: bool) -> impl Iterator<Item = Way> {
    [(to_worker, Way::ToWorker), (to_api, Way::ToApi)]
        .into_iter()
        .filter(|(on, _)| *on)
        .map(|(_, way)| way)
}

impl World<'_> {
    /// Whether a fault's target is there.
    fn has_target(&self, kind: &FaultKind) -> bool {
        kind.api().is_none_or(|api| (api as usize) < self.apis.len())
            && kind.worker().is_none_or(|worker| (worker as usize) < self.workers.len())
    }

    pub(super) fn fault_begins(&mut self, index: u32) {
        let story = self.story;
        let fault = &story.faults[index as usize];
        if self.healed || !self.has_target(&fault.kind) {
            return;
        }
        let about =
            About { api: fault.kind.api(), worker: fault.kind.worker(), ..About::default() };
        self.trace.say(self.now, about, || format!("FAULT {:?}", fault.kind));
        self.tally.faults[fault.kind.index()] += 1;
        let over = self.now + fault.lasts;
        self.agenda.note(over, Event::FaultOver { fault: index });
        match fault.kind {
            FaultKind::WorkerCrash { worker, moves } => self.kill_worker(worker, true, moves),
            FaultKind::WorkerVanish { worker, moves } => self.kill_worker(worker, false, moves),
            FaultKind::WorkerHang { worker } => {
                let node = &mut self.workers[worker as usize];
                if node.machine.is_some() {
                    node.process.hang();
                }
            }
            FaultKind::WorkerDrain { worker } => self.drain_worker(worker, fault.lasts),
            FaultKind::WorkerSlow { worker, factor } => {
                self.workers[worker as usize].trouble.slow.push(factor);
            }
            FaultKind::DiskFull { worker } => self.fill_disk(worker),
            FaultKind::Evictions { worker } => {
                self.agenda.note(self.now, Event::Evict { worker, fault: index });
            }
            FaultKind::DiskCorrupt { worker } => {
                let node = &mut self.workers[worker as usize];
                node.trouble.disk_corrupt += 1;
                for file in node.files.values_mut() {
                    file.bytes = content::wrong(file.bytes, Wrong::OnDisk);
                }
            }
            FaultKind::StoreErrors { worker } => {
                self.workers[worker as usize].trouble.store_errors += 1;
            }
            FaultKind::FetchErrors { worker } => {
                self.workers[worker as usize].trouble.fetch_errors += 1;
            }
            FaultKind::WorkerLies { worker, lie } => {
                self.workers[worker as usize].trouble.lie = Some(lie);
            }
            FaultKind::OpenHangs { worker } => {
                self.workers[worker as usize].trouble.open_hangs += 1;
            }
            FaultKind::ApiCrash { api } => self.kill_api(api, true),
            FaultKind::ApiVanish { api } => self.kill_api(api, false),
            FaultKind::ApiHang { api } => {
                let node = &mut self.apis[api as usize];
                if node.machine.is_some() {
                    node.process.hang();
                }
            }
            FaultKind::ApiLies { api, lie } => self.apis[api as usize].lie = Some(lie),
            FaultKind::LinkCut { api, worker, to_worker, to_api } => {
                ways(to_worker, to_api).for_each(|way| self.net.link_mut(api, worker).cut(way));
            }
            FaultKind::WorkerIsolated { worker, to_worker, to_api } => {
                for api in (0_u32..).take(self.apis.len()) {
                    ways(to_worker, to_api).for_each(|way| self.net.link_mut(api, worker).cut(way));
                }
            }
            FaultKind::ApiIsolated { api, to_worker, to_api } => {
                for worker in (0_u32..).take(self.workers.len()) {
                    ways(to_worker, to_api).for_each(|way| self.net.link_mut(api, worker).cut(way));
                }
            }
            FaultKind::LinkSlow { api, worker, slowest_ms } => {
                for way in Way::BOTH {
                    self.net.link_mut(api, worker).slow(way, u64::from(slowest_ms) * MS);
                }
            }
            FaultKind::StreamReset { api, worker } => self.reset_streams(api, worker),
            FaultKind::WireCorrupt { api, worker } => {
                self.net.link_mut(api, worker).corrupting += 1;
            }
            FaultKind::ApiClockStep { api, by_ms } => {
                self.apis[api as usize].process.step_clock(u64::from(by_ms) * MS, self.now);
                self.arm_api(api);
            }
            FaultKind::WorkerClockStep { worker, by_ms } => {
                self.workers[worker as usize].process.step_clock(u64::from(by_ms) * MS, self.now);
                self.arm_worker(worker);
            }
            FaultKind::DiscoveryOutage { api } => {
                self.apis[api as usize].discovery_outages += 1;
            }
            FaultKind::DiscoveryFlap { api, worker } => {
                let endpoint = self.workers[worker as usize].endpoint;
                self.apis[api as usize].hidden.push(endpoint);
                self.note_discovery(api, endpoint);
            }
            FaultKind::ScaleToZero => {
                for worker in (0_u32..).take(self.workers.len()) {
                    self.drain_worker(worker, 0);
                    self.workers[worker as usize].trouble.parked += 1;
                }
            }
            FaultKind::ScaleUp => {
                let workers = u32::try_from(self.workers.len()).expect("a pool is small");
                (self.story.shape.workers..workers).for_each(|worker| self.start_worker(worker));
            }
        }
    }

    pub(super) fn fault_ends(&mut self, index: u32) {
        let story = self.story;
        let kind = &story.faults[index as usize].kind;
        // Healing has ended it already.
        if self.healed {
            return;
        }
        match *kind {
            FaultKind::WorkerCrash { worker, .. } | FaultKind::WorkerVanish { worker, .. } => {
                self.restart_worker(worker);
            }
            FaultKind::WorkerHang { worker } => self.wake_worker(worker, false),
            FaultKind::WorkerSlow { worker, factor } => {
                let slow = &mut self.workers[worker as usize].trouble.slow;
                if let Some(at) = slow.iter().position(|it| *it == factor) {
                    slow.swap_remove(at);
                }
            }
            FaultKind::DiskFull { worker } => {
                self.workers[worker as usize].trouble.disk_full -= 1;
                self.report_disk(worker);
            }
            FaultKind::DiskCorrupt { worker } => {
                self.workers[worker as usize].trouble.disk_corrupt -= 1;
            }
            FaultKind::StoreErrors { worker } => {
                self.workers[worker as usize].trouble.store_errors -= 1;
            }
            FaultKind::FetchErrors { worker } => {
                self.workers[worker as usize].trouble.fetch_errors -= 1;
            }
            FaultKind::WorkerLies { worker, .. } => self.reform_worker(worker),
            FaultKind::OpenHangs { worker } => {
                let node = &mut self.workers[worker as usize];
                node.trouble.open_hangs -= 1;
                node.process.disturb(self.now);
            }
            FaultKind::ApiCrash { api } | FaultKind::ApiVanish { api } => self.start_api(api),
            FaultKind::ApiHang { api } => self.wake_api(api, false),
            FaultKind::ApiLies { api, .. } => self.reform_api(api),
            FaultKind::LinkCut { api, worker, to_worker, to_api } => {
                self.mend(api, worker, to_worker, to_api);
            }
            FaultKind::WorkerIsolated { worker, to_worker, to_api } => {
                (0_u32..)
                    .take(self.apis.len())
                    .for_each(|api| self.mend(api, worker, to_worker, to_api));
            }
            FaultKind::ApiIsolated { api, to_worker, to_api } => {
                for worker in (0_u32..).take(self.workers.len()) {
                    self.mend(api, worker, to_worker, to_api);
                }
            }
            FaultKind::LinkSlow { api, worker, .. } => {
                let now = self.now;
                Way::BOTH.iter().for_each(|way| self.net.link_mut(api, worker).speed_up(*way, now));
            }
            FaultKind::WireCorrupt { api, worker } => {
                self.net.link_mut(api, worker).corrupting -= 1;
            }
            FaultKind::DiscoveryOutage { api } => {
                let node = &mut self.apis[api as usize];
                node.discovery_outages -= 1;
                self.discover_all(api);
            }
            FaultKind::DiscoveryFlap { api, worker } => self.unhide(api, worker),
            FaultKind::ScaleToZero => {
                for worker in (0_u32..).take(self.workers.len()) {
                    let parked = &mut self.workers[worker as usize].trouble.parked;
                    *parked -= 1;
                    self.restart_worker(worker);
                }
            }
            FaultKind::WorkerDrain { .. }
            | FaultKind::Evictions { .. }
            | FaultKind::StreamReset { .. }
            | FaultKind::ApiClockStep { .. }
            | FaultKind::WorkerClockStep { .. }
            | FaultKind::ScaleUp => {}
        }
    }

    /// Starts a worker that has been there before.
    fn restart_worker(&mut self, worker: u32) {
        if self.workers[worker as usize].process.life > 0 {
            self.start_worker(worker);
        }
    }

    fn mend(&mut self, api: u32, worker: u32, to_worker: bool, to_api: bool) {
        let now = self.now;
        ways(to_worker, to_api).for_each(|way| {
            self.net.link_mut(api, worker).mend(way, now);
        });
        self.unstick_link(api, worker);
    }

    fn unhide(&mut self, api: u32, worker: u32) {
        let hidden = &mut self.apis[api as usize].hidden;
        if let Some(at) = hidden.iter().position(|it| Endpoints::worker_of(*it) == worker) {
            let endpoint = hidden.swap_remove(at);
            self.note_discovery(api, endpoint);
        }
    }

    /// A worker is asked to leave, about when discovery drops it.
    fn drain_worker(&mut self, worker: u32, away_for: u64) {
        let node = &mut self.workers[worker as usize];
        if node.machine.is_none() || node.draining {
            return;
        }
        node.draining = true;
        node.away_for = away_for.max(MS);
        let (endpoint, life) = (node.endpoint, node.process.life);
        let luck =
            draw(self.story.seed, Lane::new(Purpose::Restart, 500 + worker as usize), self.now);
        let at = self.now + within(luck, 0, 400 * MS);
        self.agenda.note(at, Event::WorkerDrains { worker, life });
        self.list(endpoint, false);
    }

    /// The disk is full: what runs fails soon, and new work is not welcome.
    fn fill_disk(&mut self, worker: u32) {
        let node = &mut self.workers[worker as usize];
        node.trouble.disk_full += 1;
        let life = node.process.life;
        let soon = self.now + 5 * MS;
        let running: Vec<RunId> = node.runs.iter().map(|(run, _)| run).collect();
        for run in running {
            let record = node.runs.get_mut(run).expect("just listed");
            if record.end == RunEnd::Works && record.ends_at > soon && !record.told_to_stop {
                record.end = RunEnd::DiskFull;
                record.ends_at = soon;
                self.agenda.note(soon, Event::RunEnds { worker, life, run: run.0 });
            }
        }
        if !self.workers[worker as usize].process.is_hung() {
            self.report_disk(worker);
        }
    }

    /// A disk manager removes one artifact, if there is one, and looks again later.
    pub(super) fn evict(&mut self, worker: u32, fault: u32) {
        let it = &self.story.faults[fault as usize];
        if self.healed || self.now >= it.at + it.lasts {
            return;
        }
        self.agenda.note(self.now + EVICT_EVERY, Event::Evict { worker, fault });
        let node = &mut self.workers[worker as usize];
        if node.machine.is_none() || node.process.is_hung() || node.files.is_empty() {
            return;
        }
        let luck = draw(self.story.seed, Lane::new(Purpose::Eviction, worker as usize), self.now);
        let last = node.files.len() as u64 - 1;
        let chosen = usize::try_from(within(luck, 0, last)).expect("it is below a length");
        let run = node.files.iter().nth(chosen).map(|(run, _)| run).expect("it is below a length");
        node.files.remove(run);
        self.tally.evictions += 1;
        self.step_worker(worker, Input::ArtifactEvicted { run });
    }

    fn wake_worker(&mut self, worker: u32, for_good: bool) {
        let process = &mut self.workers[worker as usize].process;
        let woke = if for_good { process.wake_for_good(self.now) } else { process.wake(self.now) };
        if woke {
            let events = process.take_deferred(self.now);
            self.note_again(events);
            // What the disk did meanwhile is noticed now.
            self.report_disk(worker);
        }
    }

    fn wake_api(&mut self, api: u32, for_good: bool) {
        let process = &mut self.apis[api as usize].process;
        let woke = if for_good { process.wake_for_good(self.now) } else { process.wake(self.now) };
        if woke {
            let events = process.take_deferred(self.now);
            self.note_again(events);
        }
    }

    /// A process goes on: what came while it stood still happens now. Whether its timer or its
    /// sockets are looked at first is a matter of luck.
    fn note_again(&mut self, mut events: Vec<Event>) {
        let luck = draw(self.story.seed, Lane::new(Purpose::Resume, 0), self.now);
        let is_tick =
            |event: &Event| matches!(event, Event::ApiTick { .. } | Event::WorkerTick { .. });
        if luck & 1 == 0 {
            events.sort_by_key(|event| !is_tick(event));
        }
        for event in events {
            self.agenda.note(self.now, event);
        }
    }

    /// A worker that lied is restarted.
    fn reform_worker(&mut self, worker: u32) {
        self.workers[worker as usize].trouble.lie = None;
        if self.workers[worker as usize].tainted {
            self.kill_worker(worker, true, false);
            self.agenda.note(self.now + 100 * MS, Event::WorkerUp { worker });
        }
    }

    /// An API node that lied is restarted.
    fn reform_api(&mut self, api: u32) {
        self.apis[api as usize].lie = None;
        if self.apis[api as usize].tainted {
            self.kill_api(api, true);
            self.agenda.note(self.now + 100 * MS, Event::ApiUp { api });
        }
    }

    /// Every fault is over: links are whole, processes are up, clocks are steady, disks are fine,
    /// discovery is complete.
    pub(super) fn heal(&mut self) {
        self.healed = true;
        self.trace.say(self.now, About::default(), || String::from("HEALED"));
        let now = self.now;
        self.net.links_mut().for_each(|link| link.heal(now));
        for worker in (0_u32..).take(self.workers.len()) {
            self.wake_worker(worker, true);
            self.reform_worker(worker);
            let node = &mut self.workers[worker as usize];
            let was_hanging = node.trouble.open_hangs > 0;
            node.trouble = crate::worker_node::Trouble::default();
            if was_hanging {
                node.process.disturb(now);
            }
            if node.process.life > 0 {
                node.away_for = 200 * MS;
                self.agenda.note(now, Event::WorkerUp { worker });
            }
            self.report_disk(worker);
            self.unstick_worker(worker);
        }
        for api in (0_u32..).take(self.apis.len()) {
            self.wake_api(api, true);
            self.reform_api(api);
            let node = &mut self.apis[api as usize];
            node.discovery_outages = 0;
            node.hidden.clear();
            self.agenda.note(now, Event::ApiUp { api });
            self.discover_all(api);
        }
    }
}
