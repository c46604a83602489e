//! Leaves as tasks of a runtime, for simulations: time stands still while a leaf is calculated, and
//! passes before that, as long as the simulation says.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tracing::Span;

use super::Bench;
use crate::desk::Event;
use crate::execute::{Assignment, Cancel};

/// How long a run takes.
pub type Pause = Arc<dyn Fn(&Assignment) -> Duration + Send + Sync>;

/// Runs as tasks. Dropped, they end.
pub(super) struct Tasks {
    bench: Arc<Bench>,
    pause: Pause,
    tell: mpsc::Sender<Event>,
    tasks: JoinSet<()>,
}

impl Tasks {
    pub(super) fn new(bench: Bench, pause: Pause, tell: mpsc::Sender<Event>) -> Self {
        Self { bench: Arc::new(bench), pause, tell, tasks: JoinSet::new() }
    }

    pub(super) fn begin(&mut self, assignment: Assignment, cancel: Cancel, span: Span) {
        while self.tasks.try_join_next().is_some() {}
        let (bench, tell) = (Arc::clone(&self.bench), self.tell.clone());
        let pause = (self.pause)(&assignment);
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = cancel.told() => {}
                () = tokio::time::sleep(pause) => {}
            }
            let outcome = span.in_scope(|| bench.run(&assignment, &cancel));
            // Where the desk is gone, nobody waits for the run.
            drop(tell.send(Event::RunEnded { run: assignment.run, outcome }).await);
        });
    }
}
