//! Clients that ask all the time: many at once, several tenants, all classes of queries; some leave in
//! the middle, some read slowly. Every end is written down with its time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::client::{Ending, Manner, ask};
use crate::dice::Dice;
use crate::question::Question;

/// A client waits this long: a little longer than any query may run.
pub const PATIENCE: Duration = Duration::from_secs(55);

/// How many ends may wait to be written down.
const ENDS: usize = 1_024;

/// A question with the bytes that answer it when nothing is wrong.
#[derive(Clone, Debug)]
pub struct Known {
    /// The question.
    pub question: Question,
    /// Its answer.
    pub answer: Arc<Vec<u8>>,
}

/// One query as its client saw it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The question's number.
    pub question: usize,
    /// What kind of query it was.
    pub class: &'static str,
    /// Which API node was asked.
    pub api: usize,
    /// When, after the begin of the run.
    pub from: Duration,
    /// When it ended.
    pub to: Duration,
    /// The first result, where it came before the end.
    pub first_result: Option<Duration>,
    /// Whether its client read to the end, as fast as it could.
    pub is_eager: bool,
    /// How it ended.
    pub outcome: Outcome,
}

/// How a query ended, compared with what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With the right bytes.
    Right,
    /// With other bytes: the first that differs, and both around it.
    Wrong(String),
    /// With an error.
    Error(String),
    /// With a broken connection.
    Broken(String),
    /// With something that is no answer.
    Malformed(String),
    /// Its client left.
    Left,
    /// Not at all.
    Hung,
}

/// Clients at work.
#[derive(Debug)]
pub struct Workload {
    clients: JoinSet<()>,
    on: watch::Sender<bool>,
    ends: mpsc::Receiver<Asked>,
}

impl Workload {
    /// Starts so many clients.
    pub fn start(
        clients: usize,
        client: &Client,
        apis: &[SocketAddr],
        known: &Arc<Vec<Known>>,
        dice: &mut Dice,
        begun: Instant,
    ) -> Self {
        let (on, watching) = watch::channel(true);
        let (tell, ends) = mpsc::channel(ENDS);
        let mut all = JoinSet::new();
        for number in 0..clients {
            let one = One {
                client: client.clone(),
                apis: apis.to_vec(),
                known: Arc::clone(known),
                dice: dice.fork(number as u64),
                begun,
                on: watching.clone(),
                tell: tell.clone(),
            };
            all.spawn(one.live());
        }
        Self { clients: all, on, ends }
    }

    /// What has ended since somebody last asked.
    pub fn take(&mut self, into: &mut Vec<Asked>) {
        while let Ok(asked) = self.ends.try_recv() {
            into.push(asked);
        }
    }

    /// Asks nothing more, or goes on.
    pub fn set(&self, on: bool) {
        self.on.send_replace(on);
    }

    /// Waits until every client has come to its end. They must have been told to.
    pub async fn stop(mut self, into: &mut Vec<Asked>) {
        drop(self.on);
        while let Some(asked) = self.ends.recv().await {
            into.push(asked);
        }
        while self.clients.join_next().await.is_some() {}
    }
}

/// One client.
struct One {
    client: Client,
    apis: Vec<SocketAddr>,
    known: Arc<Vec<Known>>,
    dice: Dice,
    begun: Instant,
    on: watch::Receiver<bool>,
    tell: mpsc::Sender<Asked>,
}

impl One {
    async fn live(mut self) {
        loop {
            // Over when nobody can switch it on again.
            if self.on.wait_for(|on| *on).await.is_err() || self.on.has_changed().is_err() {
                return;
            }
            let known = self.dice.pick(&self.known).clone();
            let api = self.dice.below(self.apis.len());
            let manner = match self.dice.below(20) {
                0..=1 => Manner::Leaves(self.dice.millis(1..150)),
                2 => Manner::Slow(self.dice.millis(1..20)),
                _ => Manner::Eager,
            };
            let from = self.begun.elapsed();
            let told = ask(&self.client, self.apis[api], &known.question, manner, PATIENCE).await;
            let broke = matches!(told.ending, Ending::Broken(_));
            let asked = Asked {
                question: known.question.number,
                class: known.question.class,
                api,
                from,
                to: self.begun.elapsed(),
                first_result: told.first_result,
                is_eager: manner == Manner::Eager,
                outcome: compare(told.ending, &known.answer),
            };
            if self.tell.send(asked).await.is_err() {
                return;
            }
            // A person, or a panel, does not come back at once; and not to a closed door.
            let pause = if broke { 50..200 } else { 0..30 };
            sleep(self.dice.millis(pause)).await;
        }
    }
}

/// Holds an end against the right answer.
pub fn compare(ending: Ending, right: &[u8]) -> Outcome {
    match ending {
        Ending::Answered(bytes) if bytes == right => Outcome::Right,
        Ending::Answered(bytes) => Outcome::Wrong(difference(&bytes, right)),
        Ending::Refused(why) => Outcome::Error(why),
        Ending::Broken(why) => Outcome::Broken(why),
        Ending::Malformed(why) => Outcome::Malformed(why),
        Ending::Left => Outcome::Left,
        Ending::Hung => Outcome::Hung,
    }
}

fn difference(got: &[u8], right: &[u8]) -> String {
    let at = got.iter().zip(right).take_while(|(one, other)| one == other).count();
    let around = |bytes: &[u8]| {
        let (from, to) = (at.saturating_sub(80), (at + 80).min(bytes.len()));
        String::from_utf8_lossy(&bytes[from.min(to)..to]).into_owned()
    };
    let (got_len, right_len) = (got.len(), right.len());
    let (got, right) = (around(got), around(right));
    format!(
        "{got_len} bytes instead of {right_len}, the first other one is {at}: …{got}… instead of …{right}…"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_other_byte_is_a_wrong_answer() {
        assert_eq!(compare(Ending::Answered(b"abc".into()), b"abc"), Outcome::Right);
        for other in [&b"abd"[..], b"ab", b"abcd", b""] {
            let outcome = compare(Ending::Answered(other.into()), b"abc");
            assert!(matches!(outcome, Outcome::Wrong(_)), "{outcome:?}");
        }
    }
}
