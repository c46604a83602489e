//! The two kinds of hosts, put together from the product's own parts.

use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use core_workcoord::coordinator::Coordinator;
use core_workcoord::id::{ApiId, Endpoint, TenantId};
use core_workcoord::intake::Intake;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tributary_api::cells::CellSize;
use tributary_api::config::ApiConfig;
use tributary_api::coordination::{Coordination, Desk, DeskTerms};
use tributary_api::cores::Cores;
use tributary_api::fetch::Fetching;
use tributary_api::figures::Figures;
use tributary_api::memory::Memory;
use tributary_api::query::{Kit, Queries, Segments};
use tributary_artifact_store::FetchConfig;
use tributary_catalog::TenantSegments;
use tributary_process::config::Span;
use tributary_worker::config::WorkerConfig;
use tributary_worker::inline::{self, Stage};
use tributary_worker::{Assignment, Parts};

use super::book::Book;
use super::client::Asking;
use super::leaves::Leaves;
use super::material::{Material, TENANT};
use super::net::{SimDial, SimGet, SimPort};
use super::spool::Spool;
use super::story::Story;
use crate::differential::dice::Dice;

const GRPC: u16 = 9470;
const HTTP: u16 = 9471;

/// How long queries of an API node that leaves may go on.
const GRACE: Duration = Duration::from_millis(500);

/// What is wrong on purpose, to show that the judgement bites.
#[derive(Clone)]
pub struct Tampering {
    /// Done to every coordinator before it serves.
    pub in_coordinator: Arc<dyn Fn(&mut Coordinator) + Send + Sync>,
    /// Done to every intake before it serves.
    pub in_intake: Arc<dyn Fn(&mut Intake) + Send + Sync>,
    /// Artifacts are not checked.
    pub trusts_bytes: bool,
    /// Workers keep artifacts that nobody holds.
    pub hoards_artifacts: bool,
    /// Workers take what they made last for what is asked.
    pub mixes_artifacts: bool,
}

impl Default for Tampering {
    /// Nothing.
    fn default() -> Self {
        Self {
            in_coordinator: Arc::new(|_| {}),
            in_intake: Arc::new(|_| {}),
            trusts_bytes: false,
            hoards_artifacts: false,
            mixes_artifacts: false,
        }
    }
}

/// What all hosts of a story share.
pub(super) struct Scene {
    pub(super) story: Story,
    pub(super) material: Arc<Material>,
    pub(super) tampering: Tampering,
    pub(super) book: Book,
    pub(super) apis: Vec<ApiKnobs>,
    pub(super) workers: Vec<WorkerKnobs>,
}

/// What the story does to an API node from outside.
#[derive(Default)]
pub(super) struct ApiKnobs {
    pub(super) lives: AtomicU64,
    pub(super) leave: Notify,
    /// It has left by itself, and the process is to be ended.
    pub(super) has_left: AtomicBool,
    /// Ask the questions that come when all is well again.
    pub(super) probe: Notify,
    /// Look at the tables.
    pub(super) look: Notify,
}

/// What the story does to a worker from outside.
#[derive(Default)]
pub(super) struct WorkerKnobs {
    pub(super) lives: AtomicU64,
    pub(super) spool: Mutex<Option<Arc<Spool>>>,
    /// Added to every run, in milliseconds.
    pub(super) slow_ms: AtomicU64,
    pub(super) failures: Arc<AtomicU32>,
    pub(super) drain: Notify,
    /// It has left by itself, and the process is to be ended.
    pub(super) has_left: AtomicBool,
    pub(super) look: Notify,
}

impl WorkerKnobs {
    pub(super) fn spool(&self) -> Option<Arc<Spool>> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(super) fn worker_name(number: usize) -> String {
    format!("worker-{number}")
}

pub(super) fn api_name(number: usize) -> String {
    format!("api-{number}")
}

/// All segments, for everybody.
struct Fixed(Arc<TenantSegments>);

impl Segments for Fixed {
    fn of(&self, tenant: &TenantId) -> Arc<TenantSegments> {
        if tenant.as_str() == TENANT { Arc::clone(&self.0) } else { Arc::default() }
    }
}

/// One life of an API node.
pub(super) async fn api(scene: Arc<Scene>, number: usize) -> turmoil::Result {
    let knobs = &scene.apis[number];
    let life = knobs.lives.fetch_add(1, Ordering::Relaxed) + 1;
    knobs.has_left.store(false, Ordering::Relaxed);
    let mut config = ApiConfig::default();
    config.schedule.query_window = scene.story.window;
    let (coordination, inbox) = Coordination::new();
    let (cores, memory) = (Arc::new(Cores::inline()), Memory::new(config.limits.memory_bytes));
    let get = SimGet {
        // A read that hangs is given up sooner than in earnest: the network repeats nothing.
        terms: FetchConfig { read_timeout: Duration::from_secs(2), ..config.fetcher() },
        trusts_bytes: scene.tampering.trusts_bytes,
    };
    let terms = DeskTerms {
        config: config.coordinator(),
        api_id: ApiId::new(&format!("{}.{life}", api_name(number)))?,
        seed: scene.story.seed ^ life,
        dial: Arc::new(SimDial),
        stream: config.stream(),
        fetching: Fetching {
            get: Arc::new(get),
            cores: Arc::clone(&cores),
            memory: Arc::clone(&memory),
            in_memory_max_bytes: u64::MAX,
            trust_advertised_host: false,
        },
        runtime: tokio::runtime::Handle::current(),
        journal: None,
    };
    let mut desk = Desk::new(terms, &inbox)?;
    (scene.tampering.in_coordinator)(desk.coordinator());
    let mut tasks = JoinSet::new();
    tasks.spawn(desk.serve(inbox));
    for worker in 0..scene.story.workers {
        let endpoint = Endpoint::new(&format!("{}:{GRPC}", worker_name(worker)))?;
        coordination.discovered(endpoint).await?;
    }
    let queries = Arc::new(Queries::new(Kit {
        coordination: coordination.clone(),
        segments: Arc::new(Fixed(Arc::clone(&scene.material.segments))),
        cores,
        memory: Arc::clone(&memory),
        figures: Arc::new(Figures::default()),
        // Every segment is work of its own.
        size: CellSize { max_samples: 1, max_segments: 1, ..CellSize::default() },
        window: scene.story.window,
        limits: tributary_promql::EvalLimits::default(),
    }));
    let mut clients = JoinSet::new();
    let now = turmoil::sim_elapsed().unwrap_or_default();
    let asking = |number: usize, client| Asking {
        number,
        client,
        life,
        material: Arc::clone(&scene.material),
        book: scene.book.clone(),
    };
    for (place, client) in scene.story.clients.iter().enumerate() {
        if client.api == number && client.at > now {
            let (asking, queries, pause) =
                (asking(place, *client), queries.clone(), client.at - now);
            clients.spawn_local(async move {
                tokio::time::sleep(pause).await;
                asking.go(queries).await;
            });
        }
    }
    loop {
        tokio::select! {
            biased;
            () = knobs.leave.notified() => {
                queries.close(GRACE).await;
                coordination.stop().await;
                // Clients read what was said to them last.
                tokio::time::sleep(GRACE).await;
                knobs.has_left.store(true, Ordering::Relaxed);
                return pending().await;
            }
            () = knobs.probe.notified() => {
                let questions = scene.material.questions.len();
                for (place, probe) in super::world::probes(&scene.story, questions, number) {
                    clients.spawn_local(asking(place, probe).go(queries.clone()));
                }
            }
            () = knobs.look.notified() => {
                let view = coordination.look().await?;
                let mut left = super::judge::api_leftovers(&view, scene.story.workers);
                if memory.used_bytes() > 0 {
                    left.push(format!("{} bytes of results", memory.used_bytes()));
                }
                scene.book.open().looks.insert(api_name(number), left);
            }
        }
    }
}

/// One life of a worker.
pub(super) async fn worker(scene: Arc<Scene>, number: usize) -> turmoil::Result {
    let knobs = &scene.workers[number];
    let life = knobs.lives.fetch_add(1, Ordering::Relaxed) + 1;
    knobs.has_left.store(false, Ordering::Relaxed);
    let mut config = WorkerConfig { worker_id: Some(worker_name(number)), ..Default::default() };
    config.execution.slots = scene.story.slots;
    config.artifacts.ttl = Span::seconds(6);
    config.artifacts.ttl_after_ack = Span::seconds(2);
    config.drain.timeout = Span::seconds(5);
    let (spool, lost) = Spool::new(&scene.tampering);
    *knobs.spool.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&spool));
    let leaves = Leaves {
        material: Arc::clone(&scene.material),
        spool: Arc::clone(&spool),
        failures: Arc::clone(&knobs.failures),
    };
    let parts = Parts {
        executor: Arc::new(leaves),
        artifacts: Arc::<Spool>::clone(&spool),
        lost,
        routes: spool.routes(),
        version: "simulated".into(),
    };
    let stage = Stage {
        grpc: SimPort::open(GRPC).await?,
        http: SimPort::open(HTTP).await?,
        artifact_base_url: format!("http://{}:{HTTP}/artifacts/", worker_name(number)),
        pause: pauses(&scene, number, life),
    };
    let made = inline::worker(&config, parts, stage, &*scene.tampering.in_intake)?;
    let (handle, serving) = made;
    let mut serving = std::pin::pin!(serving);
    loop {
        tokio::select! {
            biased;
            clean = &mut serving => {
                let now = turmoil::sim_elapsed().unwrap_or_default();
                let how = if clean { "cleanly" } else { "with something cut short" };
                scene.book.note(now, &format!("{} has left {how}", worker_name(number)));
                knobs.has_left.store(true, Ordering::Relaxed);
                return pending().await;
            }
            () = knobs.drain.notified() => handle.drain().await,
            () = knobs.look.notified() => {
                // Asked aside: the desk that answers is served here.
                let (handle, scene, spool) = (handle.clone(), Arc::clone(&scene), spool.clone());
                tokio::task::spawn_local(async move {
                    let left = super::judge::worker_leftovers(
                        handle.snapshot().await.as_ref(),
                        spool.left(),
                        scene.story.apis,
                    );
                    scene.book.open().looks.insert(worker_name(number), left);
                });
            }
        }
    }
}

/// How long runs take: from the seed, and longer while the story says so.
fn pauses(scene: &Arc<Scene>, number: usize, life: u64) -> inline::Pause {
    let seed = scene.story.seed.wrapping_add(life << 32).wrapping_add(number as u64);
    let dice = Mutex::new(Dice::new(seed, 0x9a_05e));
    let slow = {
        let scene = Arc::downgrade(scene);
        move || {
            let scene = scene.upgrade();
            scene.map_or(0, |scene| scene.workers[number].slow_ms.load(Ordering::Relaxed))
        }
    };
    Arc::new(move |_: &Assignment| {
        let mut dice = dice.lock().unwrap_or_else(PoisonError::into_inner);
        let longest = dice.weighted(&[(6, 10), (3, 80), (1, 400)]);
        Duration::from_millis(dice.between(1, longest).unsigned_abs() + slow())
    })
}
