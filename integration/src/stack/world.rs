//! Tells a story: hosts and network from its seed, faults at their times, until everything is well
//! again, every client has its end, and everything that was made is forgotten.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use turmoil::Sim;

use super::book::{Book, Verdict};
use super::fault::{Fault, Kind};
use super::hosts::{ApiKnobs, Scene, Tampering, WorkerKnobs, api, api_name, worker, worker_name};
use super::judge;
use super::material::Material;
use super::story::{Client, HEALED, Manner, Story};
use super::watch::{Heard, Watch, keep_panics, panics};

/// The network moves in steps of this length.
const TICK: Duration = Duration::from_millis(10);

/// Messages take at least this long.
const LATENCY: Duration = Duration::from_millis(1);

/// A lagging link takes this long for every message.
const LAG: Duration = Duration::from_millis(400);

/// Added to every run of a slow worker, in milliseconds.
const SLOW_MS: u64 = 1_500;

/// After its end everything that was made is gone this soon: the longest time an artifact is kept,
/// and some more.
const QUIET: Duration = Duration::from_secs(8);

/// No story takes longer.
const LONGEST: Duration = Duration::from_secs(90);

/// The numbers of the clients that ask when all is well again begin here, those of each API node at
/// its own hundred.
const PROBES: usize = 1_000;

/// How much of a story is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Errors alone.
    Errors,
    /// Everything, down to the messages on the network, to be compared.
    Everything,
    /// What the product says, printed.
    Aloud,
    /// Everything, printed.
    EverythingAloud,
}

/// Tells the story of a seed and judges it.
pub fn run(seed: u64, material: &Arc<Material>, tampering: &Tampering, listen: Listen) -> Verdict {
    keep_panics();
    let heard = Arc::new(Mutex::new(Heard::default()));
    let level = match listen {
        Listen::Errors => LevelFilter::ERROR,
        Listen::Everything | Listen::EverythingAloud => LevelFilter::TRACE,
        Listen::Aloud => LevelFilter::DEBUG,
    };
    let print = matches!(listen, Listen::Aloud | Listen::EverythingAloud);
    let watch = Watch { heard: Arc::clone(&heard), level, print };
    let _watching = tracing::subscriber::set_default(watch);
    let story = Story::of(seed, material.questions.len());
    let scene = Arc::new(Scene {
        apis: (0..story.apis).map(|_| ApiKnobs::default()).collect(),
        workers: (0..story.workers).map(|_| WorkerKnobs::default()).collect(),
        material: Arc::clone(material),
        tampering: tampering.clone(),
        book: Book::default(),
        story,
    });
    let book = scene.book.clone();
    let mut world = World::new(Arc::clone(&scene));
    let mut verdict = Verdict::default();
    let told = catch_unwind(AssertUnwindSafe(|| world.tell(&mut verdict)));
    let now = world.sim.elapsed();
    match told {
        Ok(Ok(())) => {}
        Ok(Err(error)) => book.violation(now, &format!("a host ends by itself: {error}")),
        Err(_) => book.violation(now, "the story can't be told to its end"),
    }
    // Dropped here, so that what hosts say at their end is heard.
    drop(world);
    for panic in panics() {
        book.violation(now, &format!("a panic: {panic}"));
    }
    let heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    for error in &heard.errors {
        book.violation(now, &format!("an error in the log:{error}"));
    }
    let mut kinds: BTreeMap<Kind, u32> = BTreeMap::new();
    for kind in scene.story.kinds() {
        *kinds.entry(kind).or_default() += 1;
    }
    let pages = book.open();
    Verdict { faults: kinds, ends: verdict.ends, ..Verdict::of(seed, &pages, heard.hash(), now) }
}

/// The questions that an API node is asked when all is well again.
pub(super) fn probes(story: &Story, questions: usize, api: usize) -> Vec<(usize, Client)> {
    let seed = usize::try_from(story.seed % 1_000_003).expect("it is small");
    let probe = |number: usize| {
        let client = Client {
            at: Duration::ZERO,
            api,
            question: (seed + number) % questions,
            timeout: Duration::from_secs(10),
            manner: Manner::Reads,
        };
        (PROBES + api * 100 + number, client)
    };
    (0..3).map(probe).collect()
}

struct World {
    sim: Sim<'static>,
    scene: Arc<Scene>,
    /// Faults that are going on, and where they end.
    going_on: Vec<Fault>,
    begun: usize,
}

impl World {
    fn new(scene: Arc<Scene>) -> Self {
        let mut sim = turmoil::Builder::new()
            .rng_seed(scene.story.seed)
            .tick_duration(TICK)
            .simulation_duration(LONGEST * 2)
            .min_message_latency(LATENCY)
            .max_message_latency(scene.story.latency)
            .enable_random_order()
            .tcp_capacity(1 << 16)
            .build();
        for number in 0..scene.story.workers {
            let scene = Arc::clone(&scene);
            sim.host(worker_name(number), move || worker(Arc::clone(&scene), number));
        }
        for number in 0..scene.story.apis {
            let scene = Arc::clone(&scene);
            sim.host(api_name(number), move || api(Arc::clone(&scene), number));
        }
        Self { sim, scene, going_on: Vec::new(), begun: 0 }
    }

    fn tell(&mut self, verdict: &mut Verdict) -> turmoil::Result {
        while self.sim.elapsed() < HEALED {
            self.faults();
            self.step()?;
        }
        self.heal();
        let story = &self.scene.story;
        let mut clients: Vec<(usize, Client)> = story.clients.iter().copied().enumerate().collect();
        self.until_ended(&clients)?;
        // All workers are found again within the longest pause between two dials.
        self.rest(Duration::from_secs(8))?;
        self.note("all is well again");
        for number in 0..self.scene.story.apis {
            self.scene.apis[number].probe.notify_one();
        }
        self.rest(TICK * 4)?;
        let questions = self.scene.material.questions.len();
        for number in 0..self.scene.story.apis {
            clients.extend(probes(&self.scene.story, questions, number));
        }
        self.until_ended(&clients)?;
        self.rest(QUIET)?;
        self.scene.apis.iter().for_each(|api| api.look.notify_one());
        self.scene.workers.iter().for_each(|worker| worker.look.notify_one());
        self.rest(TICK * 4)?;
        let now = self.sim.elapsed();
        judge::clients(&self.scene, &clients, now, verdict);
        self.probes_are_answered(&clients, now);
        let story = &self.scene.story;
        let hosts = (0..story.apis).map(api_name).chain((0..story.workers).map(worker_name));
        judge::leftovers(&self.scene, hosts, now);
        Ok(())
    }

    fn step(&mut self) -> turmoil::Result {
        self.sim.step()?;
        for number in 0..self.scene.story.workers {
            // A process that has come to its end takes its sockets with it.
            if self.scene.workers[number].has_left.swap(false, Ordering::Relaxed) {
                self.sim.crash(worker_name(number));
            }
        }
        for number in 0..self.scene.story.apis {
            if self.scene.apis[number].has_left.swap(false, Ordering::Relaxed) {
                self.sim.crash(api_name(number));
            }
        }
        Ok(())
    }

    fn rest(&mut self, span: Duration) -> turmoil::Result {
        let until = self.sim.elapsed() + span;
        while self.sim.elapsed() < until {
            self.step()?;
        }
        Ok(())
    }

    /// Goes on until every client has an end, or should have had one long ago.
    fn until_ended(&mut self, clients: &[(usize, Client)]) -> turmoil::Result {
        while self.sim.elapsed() < LONGEST && self.some_wait(clients) {
            self.step()?;
        }
        Ok(())
    }

    fn some_wait(&self, clients: &[(usize, Client)]) -> bool {
        let pages = self.scene.book.open();
        clients.iter().any(|(number, client)| {
            let entry = pages.clients.get(number);
            let life = self.scene.apis[client.api].lives.load(Ordering::Relaxed);
            entry.is_some_and(|entry| entry.end.is_none() && entry.life == life)
        })
    }

    /// When all is well, there is no reason for anything but an answer.
    fn probes_are_answered(&self, clients: &[(usize, Client)], now: Duration) {
        for (number, _) in clients.iter().filter(|(number, _)| *number >= PROBES) {
            let entry = self.scene.book.open().clients.get(number).cloned();
            let end = entry.and_then(|entry| entry.end);
            if !matches!(end, Some((_, super::book::End::Answered))) {
                let words = format!("client {number} is not answered though all is well: {end:?}");
                self.scene.book.violation(now, &words);
            }
        }
    }

    fn note(&self, words: &str) {
        self.scene.book.note(self.sim.elapsed(), words);
    }

    /// Ends and begins what is due.
    fn faults(&mut self) {
        let now = self.sim.elapsed();
        let (over, going_on) = self.going_on.iter().partition(|fault| fault.ends() <= now);
        self.going_on = going_on;
        for fault in Vec::<Fault>::from_iter(over) {
            self.end(&fault);
        }
        while let Some(fault) = self.scene.story.faults.get(self.begun).copied()
            && fault.at <= now
        {
            self.begun += 1;
            self.note(&fault.to_string());
            self.begin(&fault);
            self.going_on.push(fault);
        }
    }

    fn begin(&mut self, fault: &Fault) {
        let (api, worker) = (api_name(fault.api), worker_name(fault.worker));
        let knobs = &self.scene.workers[fault.worker];
        match fault.kind {
            Kind::WorkerKilled => self.sim.crash(worker),
            Kind::AllWorkersKilled => {
                for number in 0..self.scene.story.workers {
                    self.sim.crash(worker_name(number));
                }
            }
            Kind::WorkerDrained => knobs.drain.notify_one(),
            Kind::ApiKilled => self.sim.crash(api),
            Kind::ApiLeaves => self.scene.apis[fault.api].leave.notify_one(),
            Kind::Cut => self.sim.partition(api, worker),
            Kind::CutToWorker => self.sim.partition_oneway(api, worker),
            Kind::CutToApi => self.sim.partition_oneway(worker, api),
            Kind::WorkerIsolated => {
                for number in 0..self.scene.story.apis {
                    self.sim.partition(api_name(number), worker.clone());
                }
            }
            Kind::Held => self.sim.hold(api, worker),
            Kind::Lagging => self.sim.set_link_latency(api, worker, LAG),
            Kind::RunsSlow => knobs.slow_ms.store(SLOW_MS, Ordering::Relaxed),
            Kind::RunsFail => _ = knobs.failures.fetch_add(fault.times, Ordering::Relaxed),
            Kind::Evicted | Kind::Deleted | Kind::Flipped | Kind::DiskFull => {
                let Some(spool) = knobs.spool() else { return };
                match fault.kind {
                    Kind::Evicted => _ = spool.evict(),
                    Kind::Deleted => _ = spool.delete(),
                    Kind::Flipped => spool.flip(fault.times),
                    _ => spool.set_full(true),
                }
            }
        }
    }

    fn end(&mut self, fault: &Fault) {
        let (api, worker) = (api_name(fault.api), worker_name(fault.worker));
        let knobs = &self.scene.workers[fault.worker];
        match fault.kind {
            Kind::WorkerKilled => self.come_back(&worker),
            Kind::AllWorkersKilled => {
                for number in 0..self.scene.story.workers {
                    self.come_back(&worker_name(number));
                }
            }
            // A worker that takes longer to leave than the story gives it is ended.
            Kind::WorkerDrained => self.sim.bounce(worker),
            Kind::ApiKilled => self.come_back(&api),
            Kind::ApiLeaves => self.sim.bounce(api),
            Kind::Cut | Kind::CutToWorker | Kind::CutToApi => self.sim.repair(api, worker),
            Kind::WorkerIsolated => {
                for number in 0..self.scene.story.apis {
                    self.sim.repair(api_name(number), worker.clone());
                }
            }
            Kind::Held => self.sim.release(api, worker),
            Kind::Lagging => {
                self.sim.set_link_latency(api, worker, LATENCY + self.scene.story.latency / 2);
            }
            Kind::RunsSlow => knobs.slow_ms.store(0, Ordering::Relaxed),
            Kind::DiskFull => {
                if let Some(spool) = knobs.spool() {
                    spool.set_full(false);
                }
            }
            Kind::RunsFail | Kind::Evicted | Kind::Deleted | Kind::Flipped => {}
        }
    }

    fn come_back(&mut self, host: &str) {
        if !self.sim.is_host_running(host) {
            self.sim.bounce(host);
        }
    }

    /// Ends every fault, whatever became of it.
    fn heal(&mut self) {
        for fault in std::mem::take(&mut self.going_on) {
            self.end(&fault);
        }
        let story = &self.scene.story;
        let (apis, workers) = (story.apis, story.workers);
        for worker in 0..workers {
            for api in 0..apis {
                self.sim.release(api_name(api), worker_name(worker));
                self.sim.repair(api_name(api), worker_name(worker));
            }
            self.scene.workers[worker].failures.store(0, Ordering::Relaxed);
            self.come_back(&worker_name(worker));
        }
        for api in 0..apis {
            self.come_back(&api_name(api));
        }
    }
}
