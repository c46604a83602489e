//! Whatever answers questions in these tests: series in memory, or a story told by hand.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use core_workcoord::id::QueryId;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tributary_api::error::QueryError;
use tributary_api::question::{
    Ask, Finished, Found, FoundItems, Inquiry, MetricInfo, QueryEvent, QueryStats, Question,
    RunningQuery, Wanted,
};
use tributary_promql::eval::EvalError;
use tributary_promql::frame::Row;
use tributary_promql::window::ABSENT;
use tributary_promql::{Data, FlowChunk, Labels, Options, Points};
use tributary_promqltest::{Command, DataSet, Engine, LocalEngine, Query, Script, Settings, Time};

/// Steps in one chunk of an answer.
pub const CHUNK_STEPS: usize = 4;

/// Series in memory, by tenant.
#[derive(Default)]
pub struct Memory {
    tenants: BTreeMap<String, DataSet>,
    tasks: Mutex<JoinSet<()>>,
}

impl Memory {
    /// The series of a script, for the tenant `default`.
    pub fn of(script: &str) -> Self {
        Self::default().with("default", script)
    }

    /// The series of a script besides, for a tenant.
    pub fn with(mut self, tenant: &str, script: &str) -> Self {
        let data = self.tenants.entry(tenant.to_owned()).or_default();
        for command in Script::parse(script).unwrap().commands {
            let Command::Load(load) = command else { panic!("only loads are expected") };
            let series = load.series.into_iter();
            data.load(series.map(|(labels, series)| (labels, series.samples)).collect());
        }
        self
    }
}

impl Ask for Memory {
    fn ask(&self, question: Question) -> RunningQuery {
        let data = self.tenants.get(question.tenant.as_str()).cloned().unwrap_or_default();
        let (sender, events) = mpsc::channel(1);
        self.tasks.lock().unwrap().spawn(async move {
            for event in story(&data, &question) {
                if sender.send(event).await.is_err() {
                    return;
                }
            }
        });
        RunningQuery { id: QueryId(7), events }
    }

    fn inquire(
        &self,
        inquiry: Inquiry,
    ) -> Pin<Box<dyn Future<Output = Result<Found, QueryError>> + Send>> {
        let data = self.tenants.get(inquiry.tenant.as_str()).cloned().unwrap_or_default();
        Box::pin(async move { Ok(found(&data, &inquiry)) })
    }
}

fn story(data: &DataSet, question: &Question) -> Vec<QueryEvent> {
    let spec = question.spec;
    let time = match spec.step {
        None => Time::Instant { at: spec.start },
        Some(step) => Time::Range { start: spec.start, end: spec.end, step },
    };
    let settings = Settings {
        lookback_ms: question.options.lookback,
        delayed_name_removal: question.options.delayed_name_removal,
        options: Options::with_all_features(),
        ..Settings::default()
    };
    let query = Query { text: question.expr.to_string(), time, settings };
    let answer = match LocalEngine::default().answer(data, &query) {
        Ok(answer) => answer,
        Err(why) => return vec![QueryEvent::Failed(EvalError::invalid(why).into())],
    };
    let stats = QueryStats { leaves: 1, items: 1, artifact_rows: 5, ..QueryStats::default() };
    let mut events = vec![QueryEvent::Progress { done: 1, total: 1 }];
    let data = match (answer.data, spec.step) {
        (Data::Matrix(series), Some(step)) => {
            let count = usize::try_from((spec.end - spec.start) / step + 1).unwrap();
            let ts: Vec<i64> = (0..).take(count).map(|n: i64| spec.start + n * step).collect();
            events.extend(ts.chunks(CHUNK_STEPS).map(|ts| chunk(ts, &series)));
            None
        }
        (data, _) => Some(data),
    };
    let annotations = answer.annotations;
    events.push(QueryEvent::Done(Box::new(Finished { data, annotations, stats })));
    events
}

fn chunk(ts: &[i64], series: &[Points]) -> QueryEvent {
    let rows = series.iter().map(|points| {
        let at = |t: &i64| points.ts.binary_search(t).map_or(ABSENT, |at| points.values[at]);
        let values = ts.iter().map(at).collect();
        Row { labels: points.labels.clone(), drop_name: false, values }
    });
    QueryEvent::Chunk(FlowChunk { ts: ts.to_vec(), rows: rows.collect() })
}

fn found(data: &DataSet, inquiry: &Inquiry) -> Found {
    let compiled: Vec<Vec<_>> = inquiry
        .selectors
        .iter()
        .map(|selector| selector.iter().map(|matcher| matcher.compile().unwrap()).collect())
        .collect();
    let means = |labels: &Labels| {
        let fits = |selector: &Vec<tributary_promql::matcher::CompiledMatcher>| {
            selector.iter().all(|matcher| matcher.matches(labels.value(matcher.name())))
        };
        compiled.is_empty() || compiled.iter().any(fits)
    };
    let series: Vec<&Labels> = data
        .series()
        .iter()
        .filter(|(labels, samples)| {
            means(labels) && samples.ts.iter().any(|t| inquiry.time.contains(t))
        })
        .map(|(labels, _)| labels)
        .collect();
    let texts =
        |texts: BTreeSet<&str>| FoundItems::Texts(texts.into_iter().map(str::to_owned).collect());
    let items = match &inquiry.wanted {
        Wanted::Series => FoundItems::Series(series.into_iter().cloned().collect()),
        Wanted::LabelNames => {
            texts(series.iter().flat_map(|labels| labels.iter().map(|(name, _)| name)).collect())
        }
        Wanted::LabelValues(name) => {
            texts(series.iter().filter_map(|labels| labels.get(name)).collect())
        }
        Wanted::Metrics => {
            let names: BTreeSet<&str> = series.iter().map(|labels| labels.metric()).collect();
            let info = |name: &str| MetricInfo {
                name: name.to_owned(),
                kind: if name.ends_with("_total") { "counter" } else { "gauge" }.to_owned(),
                help: format!("All of {name}."),
                unit: String::new(),
            };
            FoundItems::Metrics(names.into_iter().map(info).collect())
        }
    };
    Found { items, truncated: false }
}

type Telling = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A story told by hand: what happens to every query, whatever it asks.
pub struct Told {
    tell: Box<dyn Fn(Question, mpsc::Sender<QueryEvent>) -> Telling + Send + Sync>,
    tasks: Mutex<JoinSet<()>>,
}

impl Told {
    pub fn by<F>(
        tell: impl Fn(Question, mpsc::Sender<QueryEvent>) -> F + Send + Sync + 'static,
    ) -> Arc<Self>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let tell =
            Box::new(move |question, sender| -> Telling { Box::pin(tell(question, sender)) });
        Arc::new(Self { tell, tasks: Mutex::default() })
    }
}

impl Ask for Told {
    fn ask(&self, question: Question) -> RunningQuery {
        let (sender, events) = mpsc::channel(1);
        self.tasks.lock().unwrap().spawn((self.tell)(question, sender));
        RunningQuery { id: QueryId(7), events }
    }

    fn inquire(
        &self,
        _: Inquiry,
    ) -> Pin<Box<dyn Future<Output = Result<Found, QueryError>> + Send>> {
        Box::pin(async { Err(QueryError::ShuttingDown) })
    }
}

/// The end of a range query that went well.
pub fn done() -> QueryEvent {
    QueryEvent::Done(Box::new(Finished {
        data: None,
        annotations: Default::default(),
        stats: QueryStats::default(),
    }))
}

/// One series with a value at every instant.
pub fn values_at(ts: &[i64], value: f64) -> QueryEvent {
    let labels = Labels::new([("__name__", "up"), ("job", "api")]).unwrap();
    let row = Row { labels, drop_name: false, values: vec![value; ts.len()] };
    QueryEvent::Chunk(FlowChunk { ts: ts.to_vec(), rows: vec![row] })
}
