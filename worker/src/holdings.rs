//! Which artifact answers which run, for as long as the intake wants it kept. Found by run, by what
//! an acknowledgement names, and by artifact.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use core_workcoord::artifact::Checksum;
use core_workcoord::id::{RunId, SessionId, WorkId};

use crate::artifacts::{ArtifactId, Holder};

/// One run's artifact.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) artifact: ArtifactId,
    pub(crate) session: SessionId,
    pub(crate) work_id: WorkId,
    pub(crate) checksum: Checksum,
    /// When it was announced.
    pub(crate) since: Instant,
    pub(crate) acknowledged: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Holdings {
    runs: BTreeMap<RunId, Held>,
    by_work: BTreeSet<(SessionId, WorkId, RunId)>,
    by_artifact: BTreeSet<(ArtifactId, RunId)>,
}

impl Holdings {
    pub(crate) fn insert(&mut self, run: RunId, held: Held) {
        self.by_work.insert((held.session, held.work_id, run));
        self.by_artifact.insert((held.artifact.clone(), run));
        self.runs.insert(run, held);
    }

    pub(crate) fn remove(&mut self, run: RunId) -> Option<(Holder, Held)> {
        let held = self.runs.remove(&run)?;
        self.by_work.remove(&(held.session, held.work_id, run));
        self.by_artifact.remove(&(held.artifact.clone(), run));
        Some((Holder { session: held.session, run }, held))
    }

    /// Marks what an acknowledgement names, and gives what was not marked before.
    pub(crate) fn acknowledge(
        &mut self,
        session: SessionId,
        work_id: WorkId,
        checksum: Checksum,
    ) -> Option<(Holder, &Held)> {
        let from = (session, work_id, RunId(0));
        let to = (session, work_id, RunId(u64::MAX));
        let waits = |held: &Held| held.checksum == checksum && !held.acknowledged;
        let mut named = self.by_work.range(from..=to).map(|(_, _, run)| *run);
        let run = named.find(|run| self.runs.get(run).is_some_and(waits))?;
        let held = self.runs.get_mut(&run)?;
        held.acknowledged = true;
        Some((Holder { session, run }, held))
    }

    /// Takes out every run of an artifact that is gone.
    pub(crate) fn lose(&mut self, artifact: &ArtifactId) -> Vec<RunId> {
        let from = (artifact.clone(), RunId(0));
        let to = (artifact.clone(), RunId(u64::MAX));
        let runs: Vec<_> = self.by_artifact.range(from..=to).map(|(_, run)| *run).collect();
        for run in &runs {
            self.remove(*run);
        }
        runs
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.by_work.is_empty() && self.by_artifact.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use core_workcoord::id::QueryId;

    use super::*;

    fn held(artifact: &str, session: u64, item: u32) -> Held {
        Held {
            artifact: ArtifactId::new(artifact),
            session: SessionId(session),
            work_id: WorkId { query: QueryId(1), item },
            checksum: Checksum([7; 32]),
            since: Instant::now(),
            acknowledged: false,
        }
    }

    #[test]
    fn two_runs_of_one_artifact_are_acknowledged_and_lost_each_on_its_own() {
        let mut all = Holdings::default();
        all.insert(RunId(1), held("a", 1, 0));
        all.insert(RunId(2), held("a", 2, 0));
        all.insert(RunId(3), held("b", 1, 1));
        let work_id = held("a", 1, 0).work_id;
        let sum = Checksum([7; 32]);
        assert!(all.acknowledge(SessionId(1), work_id, Checksum([8; 32])).is_none());
        let (holder, _) = all.acknowledge(SessionId(1), work_id, sum).unwrap();
        assert_eq!(holder, Holder { session: SessionId(1), run: RunId(1) });
        assert!(all.acknowledge(SessionId(1), work_id, sum).is_none(), "only once");
        assert_eq!(all.lose(&ArtifactId::new("a")), [RunId(1), RunId(2)]);
        assert!(all.remove(RunId(1)).is_none());
        assert_eq!(all.remove(RunId(3)).unwrap().1.artifact, ArtifactId::new("b"));
        assert!(all.is_empty());
    }
}
