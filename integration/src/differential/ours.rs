//! Our engine as the one that is held against Prometheus: with the settings of a question, over the
//! whole data set at once or cut into cells as planners of a cluster do.

use tributary_promql::{Answer, Options};
use tributary_promqltest::{DataSet, Engine, LocalEngine, Query, Settings, Time};

use super::arena::Subject;
use super::grammar::{Question, When};
use super::outcome::Outcome;
use super::rewrite;

/// The step of a subquery that names none, as the servers are told.
const SUBQUERY_STEP_MS: i64 = 60_000;

/// Samples a query may hold at once: Prometheus' default.
const MAX_SAMPLES: usize = 50_000_000;

/// Our engine. Every question is answered in one piece and again with the data cut into cells that
/// arrive out of order; that both are the same is demanded to the last bit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ours;

impl Subject for Ours {
    fn answer(&self, data: &DataSet, question: &Question) -> Outcome {
        let query = Query {
            text: question.text.clone(),
            time: match question.when {
                When::Instant(at) => Time::Instant { at },
                When::Range { start, end, step } => Time::Range { start, end, step },
            },
            settings: Settings {
                lookback_ms: question.lookback,
                subquery_step_ms: SUBQUERY_STEP_MS,
                delayed_name_removal: question.delayed_name_removal,
                max_samples: MAX_SAMPLES,
                options: options(),
            },
        };
        let answer = LocalEngine::default().answer(data, &query);
        let seed =
            query.text.bytes().fold(0, |seed: u64, byte| seed * 31 % 1_000_003 + u64::from(byte));
        let cut = LocalEngine { cuts: Some(seed), arrival: Some(seed), ..LocalEngine::default() };
        let again = cut.answer(data, &query);
        if !alike(&answer, &again) {
            return Outcome::Failed(format!(
                "cut by seed {seed} the answer is another:\n{answer:?}\n{again:?}"
            ));
        }
        Outcome::of(answer, &question.text)
    }
}

fn options() -> Options {
    rewrite::options()
}

fn alike(one: &Result<Answer, String>, other: &Result<Answer, String>) -> bool {
    match (one, other) {
        (Ok(one), Ok(other)) => one.data.same_bits(&other.data),
        (Err(one), Err(other)) => one == other,
        _ => false,
    }
}
