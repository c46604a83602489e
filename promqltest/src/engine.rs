//! What is asked of an engine, and with which settings. Engines themselves live elsewhere.

use std::fmt;

use tributary_promql::duration::PromDuration;
use tributary_promql::{Answer, EvalOptions, Options, Plan, QuerySpec, parse, plan};

use crate::data::DataSet;

/// Whatever answers queries.
pub trait Engine {
    /// The answer to a query over these samples, or why there is none, in Prometheus' words.
    fn answer(&self, data: &DataSet, query: &Query) -> Result<Answer, String>;
}

/// An engine and the name it goes by in reports.
pub type Way = (String, Box<dyn Engine>);

/// One query.
#[derive(Clone, Debug)]
pub struct Query {
    /// The expression.
    pub text: String,
    /// When it is evaluated.
    pub time: Time,
    /// How.
    pub settings: Settings,
}

/// When a query is evaluated. All times are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// Once.
    Instant {
        /// At this time.
        at: i64,
    },
    /// At evenly spaced times.
    Range {
        /// The first.
        start: i64,
        /// None later than this.
        end: i64,
        /// From one to the next.
        step: i64,
    },
}

impl Query {
    /// The query, ready to run, with aggregations begun by the leaves or not; or why it is none.
    pub fn plan(&self, pushdown: bool) -> Result<Plan, String> {
        let settings = &self.settings;
        let expr = parse(&self.text, &settings.options).map_err(|error| error.to_string())?;
        let options = EvalOptions {
            lookback: settings.lookback_ms,
            subquery_step: settings.subquery_step_ms,
            delayed_name_removal: settings.delayed_name_removal,
            pushdown,
            ..EvalOptions::default()
        };
        let spec = match self.time {
            Time::Instant { at } => QuerySpec::instant(at),
            Time::Range { start, end, step } => QuerySpec::range(start, end, step),
        };
        plan(&expr, spec, &options).map_err(|error| error.to_string())
    }
}

/// How queries of scripts are evaluated.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How far back an instant selector looks, in milliseconds.
    pub lookback_ms: i64,
    /// The step of a subquery that names none, in milliseconds.
    pub subquery_step_ms: i64,
    /// Names of metrics go at the very end.
    pub delayed_name_removal: bool,
    /// Samples a query may hold at once.
    pub max_samples: usize,
    /// How expressions are read.
    pub options: Options,
}

impl Default for Settings {
    /// Those of the engine that Prometheus judges by its own scripts.
    fn default() -> Self {
        Self {
            lookback_ms: 5 * 60_000,
            subquery_step_ms: 60_000,
            delayed_name_removal: true,
            max_samples: 10_000,
            options: Options::with_all_features(),
        }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = PromDuration::from_millis;
        match *self {
            Self::Instant { at } => write!(f, "instant at {}", time(at)),
            Self::Range { start, end, step } => {
                write!(f, "range from {} to {} step {}", time(start), time(end), time(step))
            }
        }
    }
}
