//! A client: asks, reads in its manner, and compares what it got with the only answer there is.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;
use tributary_api::query::Queries;
use tributary_api::question::{Ask as _, QueryEvent, Question, RunningQuery};
use tributary_promql::annotation::Level;
use tributary_promql::{Answer, Gathered};

use super::book::{Book, End, Entry};
use super::material::{Asked, Material};
use super::story::{Client, Manner};

/// After the last event nothing may come, and the stream of events ends this soon.
const SILENCE: Duration = Duration::from_secs(1);

/// One client and what it needs.
pub(super) struct Asking {
    pub(super) number: usize,
    pub(super) client: Client,
    pub(super) life: u64,
    pub(super) material: Arc<Material>,
    pub(super) book: Book,
}

impl Asking {
    /// Asks and reads to the end, its own or the query's.
    pub(super) async fn go(self, queries: Arc<Queries>) {
        let Self { number, client, life, .. } = self;
        let asked = &self.material.questions[client.question];
        let now = turmoil::sim_elapsed().unwrap_or_default();
        let words = format!("client {number} asks api-{}: {}", client.api, asked.text);
        self.book.note(now, &words);
        self.book.open().clients.insert(number, Entry { asked: now, life, end: None });
        let question = Question { timeout: client.timeout, ..asked.question.clone() };
        let running = queries.ask(question);
        let query = running.id;
        let end = match client.manner {
            Manner::Leaves(after) => {
                timeout(after, self.read(running, asked, Duration::ZERO)).await.unwrap_or(End::Left)
            }
            Manner::Reads => self.read(running, asked, Duration::ZERO).await,
            Manner::ReadsSlowly(pause) => self.read(running, asked, pause).await,
        };
        let now = turmoil::sim_elapsed().unwrap_or_default();
        let words = match &end {
            End::Answered => "is answered".to_owned(),
            End::Wrong(difference) => format!("has a wrong answer: {difference}"),
            End::Failed(error) => format!("has no answer: {error}"),
            End::Left => "has left".to_owned(),
        };
        self.book.note(now, &format!("client {number} {words}"));
        if let Some(entry) = self.book.open().clients.get_mut(&number) {
            entry.end = Some((now, end));
        }
        tokio::time::sleep(SILENCE).await;
        let Ok(view) = queries.kit().coordination.look().await else { return };
        if view.snapshot.queries.iter().any(|view| view.query == query) {
            let now = turmoil::sim_elapsed().unwrap_or_default();
            let words = format!("client {number}: its query is still there after its end");
            self.book.violation(now, &words);
        }
    }

    /// Reads all events.
    async fn read(&self, mut running: RunningQuery, asked: &Asked, pause: Duration) -> End {
        let mut gathered = Gathered::default();
        let (mut last_instant, mut last_done) = (i64::MIN, 0);
        loop {
            let Some(event) = running.events.recv().await else {
                return End::Wrong("its events end without a last one".to_owned());
            };
            let end = match event {
                QueryEvent::WaitingScaleUp => continue,
                QueryEvent::Progress { done, total } => {
                    if done <= last_done || done > total {
                        return End::Wrong(format!("progress of {done} after {last_done}"));
                    }
                    last_done = done;
                    tokio::time::sleep(pause).await;
                    continue;
                }
                QueryEvent::Chunk(chunk) => {
                    let rises = chunk.ts.is_sorted_by(|one, other| one < other);
                    if !rises || chunk.ts.first().is_some_and(|first| *first <= last_instant) {
                        return End::Wrong(format!("instants go back: {:?}", chunk.ts));
                    }
                    last_instant = chunk.ts.last().copied().unwrap_or(last_instant);
                    gathered.take(chunk);
                    tokio::time::sleep(pause).await;
                    continue;
                }
                QueryEvent::Done(finished) => {
                    let data = finished.data.unwrap_or_else(|| gathered.finish());
                    let answer = Answer { data, annotations: finished.annotations };
                    match difference(&answer, asked) {
                        None => End::Answered,
                        Some(difference) => End::Wrong(difference),
                    }
                }
                QueryEvent::Failed(error) => End::Failed(error),
            };
            self.nothing_follows(running.events.recv()).await;
            return end;
        }
    }

    async fn nothing_follows(&self, next: impl Future<Output = Option<QueryEvent>>) {
        let now = || turmoil::sim_elapsed().unwrap_or_default();
        let number = self.number;
        match timeout(SILENCE, next).await {
            Ok(None) => {}
            Ok(Some(event)) => {
                self.book.violation(now(), &format!("client {number}: {event:?} after the end"));
            }
            Err(_) => {
                let words = format!("client {number}: events go on after the last one");
                self.book.violation(now(), &words);
            }
        }
    }
}

/// What an answer has in place of what it must have.
fn difference(answer: &Answer, asked: &Asked) -> Option<String> {
    if !answer.data.same_bits(&asked.answer.data) {
        return Some(format!("{:?} instead of {:?}", answer.data, asked.answer.data));
    }
    let notes = |answer: &Answer| {
        [Level::Warning, Level::Info].map(|level| answer.annotations.texts(level, &asked.text))
    };
    let (got, expected) = (notes(answer), notes(&asked.answer));
    (got != expected).then(|| format!("{got:?} instead of {expected:?}"))
}
