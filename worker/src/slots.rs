//! The threads that leaves run on. Takes a run when the intake starts it, tells its end exactly
//! once, and passes the word to stop on. Which run starts when is the intake's decision: there
//! are never more than slots, so nothing waits here.
//!
//! In a simulation leaves are tasks instead, see `tasks`; how a run is run is the same.

mod tasks;

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use core_workcoord::id::RunId;
use core_workcoord::message::{Failure, FailureCode};
use tokio::sync::mpsc;
use tracing::{Span, warn};
use tributary_process::trace;

use tasks::Tasks;

use crate::artifacts::{Artifacts, Holder};
use crate::desk::Event;
use crate::execute::{Assignment, Cancel, Execute, Finished};
pub use tasks::Pause;

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
    crew: Crew,
    /// What runs, to be told to stop.
    running: BTreeMap<RunId, Cancel>,
}

/// Whoever runs leaves.
enum Crew {
    Threads(Arc<Shared>),
    Tasks(Tasks),
}

/// How a run is run.
struct Bench {
    executor: Arc<dyn Execute>,
    artifacts: Arc<dyn Artifacts>,
}

struct Shared {
    bench: Bench,
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
        let bench = Bench { executor, artifacts };
        let shared = Arc::new(Shared { bench, tell, waiting, came: Condvar::new() });
        // From here on, giving up ends the threads that were started.
        let crew = Crew::Threads(Arc::clone(&shared));
        let slots_started = Self { crew, running: BTreeMap::new() };
        for slot in 0..slots {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name(format!("leaf-{slot}")).spawn(move || {
                step_back(nice);
                shared.work();
            })?;
        }
        Ok(slots_started)
    }

    /// Runs are tasks of this runtime, each after a pause.
    pub(crate) fn on_this_runtime(
        pause: Pause,
        executor: Arc<dyn Execute>,
        artifacts: Arc<dyn Artifacts>,
        tell: mpsc::Sender<Event>,
    ) -> Self {
        let bench = Bench { executor, artifacts };
        Self { crew: Crew::Tasks(Tasks::new(bench, pause, tell)), running: BTreeMap::new() }
    }

    /// Runs this. Its end is told.
    pub(crate) fn begin(&mut self, assignment: Assignment, span: Span) {
        let cancel = Cancel::new();
        self.running.insert(assignment.run, cancel.clone());
        match &mut self.crew {
            Crew::Threads(shared) => {
                shared.lock().runs.push_back((assignment, cancel, span));
                shared.came.notify_one();
            }
            Crew::Tasks(tasks) => tasks.begin(assignment, cancel, span),
        }
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
        if let Crew::Threads(shared) = &self.crew {
            shared.lock().over = true;
            shared.came.notify_all();
        }
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
            let outcome = span.in_scope(|| self.bench.run(&assignment, &cancel));
            note(&span, &outcome);
            // It ends here: whatever follows is not the run's.
            drop(span);
            (self.tell)(assignment.run, outcome);
        }
    }
}

impl Bench {
    fn run(&self, assignment: &Assignment, cancel: &Cancel) -> Outcome {
        if cancel.is_set() {
            return Outcome::Stopped;
        }
        // The intake's timer may be a moment late; work that comes too late is not even begun.
        if assignment.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            let message = "the time for this work was up before it began".into();
            return Outcome::Failed(Failure {
                code: FailureCode::Deadline,
                retryable: true,
                message,
            });
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

/// Writes into a run's span what it came to.
fn note(span: &Span, outcome: &Outcome) {
    match outcome {
        Outcome::Finished(finished) => {
            span.record("outcome", "ready");
            span.record("rows", finished.row_count);
            span.record("bytes", finished.size_bytes);
            span.record("reused", finished.reused);
        }
        Outcome::Failed(failure) => {
            span.record("outcome", "failed");
            trace::fail(span, &failure.message);
        }
        // Nobody wanted it any more, which is no error.
        Outcome::Stopped => _ = span.record("outcome", "stopped"),
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
