//! An engine in this very process: plans a query, runs its leaves over cells of the data as workers
//! would, and evaluates what they made.

use tributary_promql::leaf::{LeafRun, TimeSpan};
use tributary_promql::matcher::CompiledMatcher;
use tributary_promql::window::Samples;
use tributary_promql::{Answer, EvalFlow, EvalLimits, Gathered, Labels, Plan, PlannedLeaf};

use crate::cut::{Cell, cut};
use crate::data::DataSet;
use crate::engine::{Engine, Query, Time, Way};
use crate::splitmix::SplitMix;

/// How an engine in this process goes about it. Makes no difference to its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalEngine {
    /// Aggregations are not begun by the leaves.
    pub without_pushdown: bool,
    /// The seed by which data is cut into cells; without one it is one cell.
    pub cuts: Option<u64>,
    /// The seed by which parts arrive out of order.
    pub arrival: Option<u64>,
    /// Windows that cross an edge travel as states even where samples would be smaller.
    pub always_states: bool,
    /// Range queries are answered chunk by chunk, as parts arrive.
    pub streamed: bool,
}

/// The ways every case of a script is run: in one cell, without pushdown, and for each seed cut
/// into cells, whose parts arrive in order or not, with pushdown or without, all at once or one by
/// one.
pub fn local_ways(seeds: u64) -> Vec<Way> {
    let way = |name: String, engine: LocalEngine| -> Way { (name, Box::new(engine)) };
    let whole = LocalEngine::default();
    let mut ways = vec![
        way("one cell".to_owned(), whole),
        way("no pushdown".to_owned(), LocalEngine { without_pushdown: true, ..whole }),
    ];
    for seed in 0..seeds {
        let cut = LocalEngine { cuts: Some(seed), ..whole };
        ways.push(way(format!("cut by seed {seed}"), cut));
        let name = format!("cut by seed {seed}, out of order");
        ways.push(way(name, LocalEngine { arrival: Some(seed), ..cut }));
        let name = format!("cut by seed {seed}, states only");
        ways.push(way(name, LocalEngine { always_states: true, ..cut }));
        let name = format!("cut by seed {seed}, streamed");
        ways.push(way(name, LocalEngine { streamed: true, ..cut }));
        let name = format!("cut by seed {seed}, no pushdown");
        ways.push(way(name, LocalEngine { without_pushdown: true, ..cut }));
    }
    ways
}

impl Engine for LocalEngine {
    fn answer(&self, data: &DataSet, query: &Query) -> Result<Answer, String> {
        let plan = query.plan(!self.without_pushdown)?;
        let streamed = self.streamed && matches!(query.time, Time::Range { .. });
        self.run(&plan, data, &EvalLimits::default(), streamed)
    }
}

impl LocalEngine {
    fn run(
        &self,
        plan: &Plan,
        data: &DataSet,
        limits: &EvalLimits,
        streamed: bool,
    ) -> Result<Answer, String> {
        let cells = match self.cuts {
            Some(seed) => cut(data, seed),
            None => {
                vec![Cell { from: i64::MIN, to: i64::MAX, shard: 0, data: data.clone() }]
            }
        };
        let matchers = plan.leaves.iter().map(compiled).collect::<Result<Vec<_>, _>>()?;
        let mut parts = Vec::new();
        for cell in &cells {
            for (number, (planned, matchers)) in plan.leaves.iter().zip(&matchers).enumerate() {
                let span = TimeSpan { from: cell.from, to: cell.to };
                let mut run = LeafRun::new(&planned.leaf, span, cell.shard, limits);
                if self.always_states {
                    run = run.with_states_always();
                }
                let series = cell.data.series().iter();
                for (labels, samples) in series.filter(|(labels, _)| fits(matchers, labels)) {
                    let samples = Samples { ts: &samples.ts, values: &samples.values };
                    run.push(labels, samples).map_err(|error| error.to_string())?;
                }
                parts.push((number, run.finish()));
            }
        }
        let spans: Vec<_> = cells
            .iter()
            .map(|cell| (TimeSpan { from: cell.from, to: cell.to }, cell.shard))
            .collect();
        let mut flow = EvalFlow::new(plan, vec![spans; plan.leaves.len()]);
        if let Some(seed) = self.arrival {
            SplitMix::new(seed).shuffle(&mut parts);
        }
        let mut gathered = Gathered::default();
        for (leaf, part) in parts {
            flow.add(leaf, part);
            while streamed && let Some(chunk) = flow.next_chunk().map_err(|e| e.to_string())? {
                gathered.take(chunk);
            }
        }
        if streamed && !plan.leaves.is_empty() {
            let annotations = flow.annotations().clone();
            return Ok(Answer { data: gathered.finish(), annotations });
        }
        flow.answer().map_err(|error| error.to_string())
    }
}

fn compiled(planned: &PlannedLeaf) -> Result<Vec<CompiledMatcher>, String> {
    let matchers = planned.leaf.matchers.iter().map(|matcher| matcher.compile());
    matchers.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn fits(matchers: &[CompiledMatcher], labels: &Labels) -> bool {
    matchers.iter().all(|matcher| matcher.matches(labels.value(matcher.name())))
}
