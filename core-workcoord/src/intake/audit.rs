//! The intake's numbered promises (31 and up in `docs/invariants.md`), checked on its tables.

use super::{Input, Intake, Leaving, Run, RunState, Timer};
use crate::id::RunId;
use crate::invariant::{Broken, hold};

impl Intake {
    /// Checks every promise on every table.
    pub fn audit(&self) -> Result<(), Broken> {
        self.check_totals()?;
        let slots = self.runs.values().filter(|run| run.state.holds_slot()).count();
        hold(31, slots == self.running as usize, || {
            format!("{slots} runs hold a slot, {} are counted", self.running)
        })?;
        let queued: usize = self.sessions.values().map(|session| session.queue.len()).sum();
        hold(32, queued == self.queued as usize, || {
            format!("{queued} runs wait, {} are counted", self.queued)
        })?;
        hold(33, self.runs.len() == self.by_work.len(), || "the run tables differ".into())?;
        self.runs.iter().try_for_each(|(id, run)| self.check_run(*id, run))?;
        for (id, session) in &self.sessions {
            hold(36, self.timers.is_armed(session.wake_at, Timer::Session(*id)), || {
                format!("nothing will wake session {id}")
            })?;
            let named = session.peer.as_ref().is_none_or(|(api, _)| self.apis[api] == *id);
            hold(37, named, || format!("session {id} is not its API node's only one"))?;
            let told = session.told.is_none_or(|told| told.accepting_work == self.accepts());
            hold(38, told, || format!("session {id} does not know whether work is welcome"))?;
            let waits = session.refused && self.has_room() && self.accepts();
            hold(39, !waits, || format!("session {id} was refused and not told of the room"))?;
        }
        Ok(())
    }

    /// Checks the promises on what an input touched.
    pub fn audit_input(&self, input: &Input) -> Result<(), Broken> {
        self.check_totals()?;
        match input {
            Input::RunFinished { run, .. }
            | Input::RunFailed { run, .. }
            | Input::RunStopped { run }
            | Input::ArtifactEvicted { run } => match self.runs.get(run) {
                Some(record) => self.check_run(*run, record),
                None => Ok(()),
            },
            Input::StreamOpened { .. }
            | Input::Message { .. }
            | Input::Malformed { .. }
            | Input::StreamClosed { .. }
            | Input::Disk(_)
            | Input::Drain
            | Input::Tick => Ok(()),
        }
    }

    /// Promises that cost nothing to check.
    fn check_totals(&self) -> Result<(), Broken> {
        hold(31, self.running <= self.config.slots, || {
            format!("{} runs hold {} slots", self.running, self.config.slots)
        })?;
        let limit = self.config.slots.saturating_add(self.config.queue_limit);
        hold(32, self.queued + self.running <= limit, || {
            format!("{} runs wait, the limit is {}", self.queued, self.config.queue_limit)
        })?;
        let idle = self.queued > 0 && self.running < self.config.slots;
        hold(40, !idle || self.leaving != Leaving::No, || {
            "work waits although a slot is free".into()
        })
    }

    fn check_run(&self, id: RunId, run: &Run) -> Result<(), Broken> {
        hold(33, self.by_work.get(&(run.session, run.work)) == Some(&id), || {
            format!("run {id} is not the one of its work")
        })?;
        let owner = self.sessions.get(&run.session);
        let owned = owner.is_some_and(|owner| owner.owned.contains(&id));
        let orphan = matches!(run.state, RunState::Stopping { confirm: false, .. });
        hold(34, owned || (owner.is_none() && orphan), || {
            format!("run {id} goes on although its session is gone: {:?}", run.state)
        })?;
        let queued = owner.is_some_and(|owner| owner.queue.contains(&id));
        hold(35, queued == matches!(run.state, RunState::Queued(_)), || {
            format!("run {id} is in the queue: {queued}")
        })?;
        let armed = self.timers.is_armed(run.wake_at, Timer::Run(id));
        hold(36, armed || matches!(run.state, RunState::Stopping { .. }), || {
            format!("nothing will end run {id}")
        })
    }
}
