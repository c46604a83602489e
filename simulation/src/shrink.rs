//! Makes the story of a broken promise small: takes out faults, queries, items, workers and API
//! nodes for as long as the same promise is still broken.

use crate::story::{MS, Story};
use crate::violation::Check;
use crate::{Options, run};

/// Runs that shrinking may take.
const RUNS_AT_MOST: u32 = 400;

/// The smallest story found that breaks the same promise; the story itself if it breaks none.
pub fn shrink(story: &Story) -> Story {
    shrink_with(story, &Options::default())
}

/// As [`shrink`], with options.
pub fn shrink_with(story: &Story, options: &Options<'_>) -> Story {
    let options = Options { trace: false, ..*options };
    let Some(violation) = run(story, &options).violation else { return story.clone() };
    let mut shrinker = Shrinker {
        best: story.clone(),
        number: violation.number,
        runs_left: RUNS_AT_MOST,
        options,
    };
    loop {
        let before = shrinker.best.clone();
        shrinker.fewer_faults();
        shrinker.fewer_queries();
        shrinker.smaller_world();
        shrinker.fewer_items();
        shrinker.calmer_queries();
        if shrinker.best == before || shrinker.runs_left == 0 {
            return shrinker.best;
        }
    }
}

struct Shrinker<'a> {
    best: Story,
    number: Check,
    runs_left: u32,
    options: Options<'a>,
}

impl Shrinker<'_> {
    /// Keeps a smaller story if it still breaks the same promise.
    fn keep_if_broken(&mut self, smaller: Story) -> bool {
        if self.runs_left == 0 || smaller == self.best {
            return false;
        }
        self.runs_left -= 1;
        let broken = run(&smaller, &self.options).violation;
        let same = broken.is_some_and(|violation| violation.number == self.number);
        if same {
            self.best = smaller;
        }
        same
    }

    /// Takes ever smaller pieces out of a list that `list` finds in a story.
    fn fewer<T: Clone>(&mut self, list: impl Fn(&mut Story) -> &mut Vec<T>) {
        let mut piece = list(&mut self.best).len().div_ceil(2);
        while piece > 0 {
            let mut at = 0;
            while at < list(&mut self.best).len() {
                let mut smaller = self.best.clone();
                let all = list(&mut smaller);
                let end = (at + piece).min(all.len());
                all.drain(at..end);
                if !self.keep_if_broken(smaller) {
                    at += piece;
                }
                if self.runs_left == 0 {
                    return;
                }
            }
            piece /= 2;
        }
    }

    fn fewer_faults(&mut self) {
        self.fewer(|story| &mut story.faults);
    }

    fn fewer_queries(&mut self) {
        self.fewer(|story| &mut story.queries);
    }

    fn fewer_items(&mut self) {
        for at in 0..self.best.queries.len() {
            self.fewer(|story| &mut story.queries[at].items);
        }
    }

    fn smaller_world(&mut self) {
        let mut smaller = self.best.clone();
        smaller.shape.spare_workers = 0;
        self.keep_if_broken(smaller);
        let mut smaller = self.best.clone();
        smaller.shape.failing_runs_per_mille = 0;
        self.keep_if_broken(smaller);
        for by in [8, 4, 2, 1, 1] {
            let mut smaller = self.best.clone();
            smaller.shape.workers = smaller.shape.workers.saturating_sub(by).max(1);
            self.keep_if_broken(smaller);
        }
        for _ in 1..self.best.shape.apis {
            let mut smaller = self.best.clone();
            smaller.shape.apis -= 1;
            let apis = smaller.shape.apis;
            smaller.queries.retain(|query| query.api < apis);
            self.keep_if_broken(smaller);
        }
    }

    fn calmer_queries(&mut self) {
        for at in 0..self.best.queries.len() {
            let mut smaller = self.best.clone();
            smaller.queries[at].leaves_after = None;
            self.keep_if_broken(smaller);
            let mut smaller = self.best.clone();
            smaller.queries[at].reader_lag = MS / 2;
            self.keep_if_broken(smaller);
        }
    }
}
