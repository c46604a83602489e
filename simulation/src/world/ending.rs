//! Whether everything has settled, and what to say if not.

use super::World;
use crate::story::SECOND;
use crate::violation::About;

impl World<'_> {
    /// Whether everything that must come to an end has, so that nothing more can be learnt.
    pub(super) fn has_settled(&self) -> bool {
        let last = self.story.queries.last().map_or(0, |query| query.at);
        self.now > last.max(self.story.shape.heal_at) + 2 * SECOND
            && self.checker.queries_are_over()
            && self.apis.iter().all(|node| {
                node.fetches.is_empty() && node.machine.as_ref().is_some_and(|it| it.is_idle())
            })
            && self.workers.iter().filter(|node| node.process.life > 0).all(|node| {
                node.runs.is_empty()
                    && node.files.is_empty()
                    && node.machine.as_ref().is_some_and(|it| it.is_idle())
            })
            && self.pairs().all(|(api, worker)| self.checker.has_in_rotation(api, worker))
    }

    /// Every API node with every worker that has ever been there.
    fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        let workers = (0_u32..).zip(&self.workers).filter(|(_, node)| node.process.life > 0);
        let apis = u32::try_from(self.apis.len()).expect("a story has a few");
        workers.flat_map(move |(worker, _)| (0..apis).map(move |api| (api, worker)))
    }

    /// The story is over: everything must have settled.
    pub(super) fn demand_settled(&mut self) {
        self.checker.demand_ends();
        for (at, node) in (0..).zip(&self.apis) {
            let idle = node.machine.as_ref().is_some_and(|it| it.is_idle());
            self.checker.demand_settled(idle, About::api(at), || {
                format!("api-{at} is not idle: {:?}", node.machine.as_ref().map(|it| it.is_idle()))
            });
            let fetches = node.fetches.len();
            self.checker.demand_settled(fetches == 0, About::api(at), || {
                format!("api-{at} still has {fetches} fetches")
            });
        }
        for (at, node) in (0..).zip(&self.workers).filter(|(_, node)| node.process.life > 0) {
            let idle = node.machine.as_ref().is_some_and(|it| it.is_idle());
            let (runs, files) = (node.runs.len(), node.files.len());
            self.checker.demand_settled(idle && runs + files == 0, About::worker(at), || {
                format!(
                    "worker-{at} has {runs} runs and {files} files, idle by its own word: {idle}"
                )
            });
        }
        let pairs: Vec<_> = self.pairs().collect();
        for (api, worker) in pairs {
            self.checker.demand_in_rotation(api, worker);
        }
    }
}
