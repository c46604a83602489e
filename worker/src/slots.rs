//! The threads that leaves run on. Takes a run when the intake starts it, tells its end exactly
//! once, and passes the word to stop on. Which run starts when is the intake's decision: there
//! are never more than slots, so nothing waits here.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use core_workcoord::id::RunId;
use core_workcoord::message::{Failure, FailureCode};
use tracing::{Span, warn};

use crate::artifacts::{Artifacts, Holder};
use crate::execute::{Assignment, Cancel, Execute, Finished};

/// How a run ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Its artifact is committed and held.
    Finished(Box<Finished>),
    /// It failed by itself.
    Failed(Failure),
    /// It was told to stop and did.
    Stopped,
}

/// Where the end of a run is told; called on the run's thread.
pub(crate) type Tell = Box<dyn Fn(RunId, Outcome) + Send + Sync>;

/// The threads, and what they run.
pub(crate) struct Slots {
    shared: Arc<Shared>,
    /// What runs, to be told to stop.
    running: BTreeMap<RunId, Cancel>,
}

struct Shared {
    executor: Arc<dyn Execute>,
    artifacts: Arc<dyn Artifacts>,
    tell: Tell,
    waiting: Mutex<Waiting>,
    came: Condvar,
}

#[derive(Default)]
struct Waiting {
    runs: VecDeque<(Assignment, Cancel, Span)>,
    over: bool,
}

impl Slots {
    /// Starts so many threads, `nice` steps behind the others.
    pub(crate) fn start(
        slots: u32,
        nice: u8,
        executor: Arc<dyn Execute>,
        artifacts: Arc<dyn Artifacts>,
        tell: Tell,
    ) -> io::Result<Self> {
        let waiting = Mutex::new(Waiting::default());
        let shared = Arc::new(Shared { executor, artifacts, tell, waiting, came: Condvar::new() });
        // From here on, giving up ends the threads that were started.
        let slots_started = Self { shared, running: BTreeMap::new() };
        for slot in 0..slots {
            let shared = Arc::clone(&slots_started.shared);
            thread::Builder::new().name(format!("leaf-{slot}")).spawn(move || {
                step_back(nice);
                shared.work();
            })?;
        }
        Ok(slots_started)
    }

    /// Runs this. Its end is told.
    pub(crate) fn begin(&mut self, assignment: Assignment, span: Span) {
        let cancel = Cancel::new();
        self.running.insert(assignment.run, cancel.clone());
        self.shared.lock().runs.push_back((assignment, cancel, span));
        self.shared.came.notify_one();
    }

    /// Tells a run to stop. It may still end in another way.
    pub(crate) fn stop(&self, run: RunId) {
        if let Some(cancel) = self.running.get(&run) {
            cancel.set();
        }
    }

    /// A run's end was told.
    pub(crate) fn ended(&mut self, run: RunId) {
        self.running.remove(&run);
    }
}

impl Drop for Slots {
    /// Everything is told to stop; threads end with their runs, and nobody waits for them.
    fn drop(&mut self) {
        self.running.values().for_each(Cancel::set);
        self.shared.lock().over = true;
        self.shared.came.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        // Nothing in the lock can panic half-way.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One thread's life.
    fn work(&self) {
        loop {
            let mut waiting = self.lock();
            let (assignment, cancel, span) = loop {
                if waiting.over {
                    return;
                }
                match waiting.runs.pop_front() {
                    Some(next) => break next,
                    None => {
                        waiting = self.came.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                    }
                }
            };
            drop(waiting);
            let outcome = span.in_scope(|| self.run(&assignment, &cancel));
            (self.tell)(assignment.run, outcome);
        }
    }

    fn run(&self, assignment: &Assignment, cancel: &Cancel) -> Outcome {
        if cancel.is_set() {
            return Outcome::Stopped;
        }
        let result = catch_unwind(AssertUnwindSafe(|| self.executor.run(assignment, cancel)));
        let result = result.unwrap_or_else(|panic| {
            let words = words_of(&*panic);
            warn!(words, "a run panicked");
            let message = format!("the run panicked: {words}");
            Err(Failure { code: FailureCode::Internal, retryable: true, message })
        });
        match result {
            Ok(finished) => {
                let holder = Holder { session: assignment.session, run: assignment.run };
                if self.artifacts.hold(&finished.artifact, holder) {
                    Outcome::Finished(Box::new(finished))
                } else {
                    let message = "the artifact was evicted before it could be announced".into();
                    let code = FailureCode::DiskFull;
                    Outcome::Failed(Failure { code, retryable: true, message })
                }
            }
            Err(_) if cancel.is_set() => Outcome::Stopped,
            Err(failure) => Outcome::Failed(failure),
        }
    }
}

/// Lets control and HTTP go first where all cores are busy. On Linux the priority is a thread's.
fn step_back(nice: u8) {
    if nice == 0 {
        return;
    }
    let thread = rustix::thread::gettid();
    if let Err(error) = rustix::process::setpriority_process(Some(thread), nice.into()) {
        warn!(%error, "the priority of a leaf's thread could not be lowered");
    }
}

fn words_of(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}
