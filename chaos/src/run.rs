//! A run from its first process to its verdict: fault-free answers, then clients and faults, then rest
//! and judgement.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use crate::client::{Ending, Manner, ask};
use crate::cluster::{Cluster, Layout};
use crate::dice::Dice;
use crate::error::ChaosError;
use crate::fault::{Happened, Kind};
use crate::network::Network;
use crate::question::draw;
use crate::report::{Machine, Report};
use crate::rest::{back_to, complaints, crashes, footprints, settle};
use crate::scrape::Metrics;
use crate::verdict::{Promise, Violation, judge};
use crate::workload::{Asked, Known, PATIENCE, Workload};

/// After a fault that long is waited until everything is in its place.
pub(crate) const RECOVERY: Duration = Duration::from_secs(30);

/// And takes longer than this only where somebody noticed too late: silence counts after 3 s, and
/// redials follow within half a second.
const PROMPT: Duration = Duration::from_secs(8);

/// What a run is asked.
#[derive(Clone, Debug)]
pub struct Terms {
    /// The binary under test.
    pub binary: PathBuf,
    /// How long faults are done.
    pub time: Duration,
    /// Decides faults, queries and data.
    pub seed: u64,
    /// The address of a real S3 server that has the segments; none for our own.
    pub s3: Option<String>,
    /// The deliberate bug that the processes have, where the binary has any.
    pub bug: Option<String>,
    /// Kinds of faults to choose from; all where there are none.
    pub kinds: Vec<Kind>,
    /// What is between processes.
    pub network: Network,
    /// API nodes.
    pub apis: usize,
    /// Clients at once.
    pub clients: usize,
    /// Different questions.
    pub questions: usize,
    /// Between so many faults the clients pause, and everything has to come to rest.
    pub rest_every: usize,
}

impl Terms {
    /// The usual ones.
    pub fn of(binary: PathBuf, time: Duration, seed: u64) -> Self {
        Self {
            binary,
            time,
            seed,
            s3: None,
            bug: None,
            kinds: Vec::new(),
            network: Network::here(),
            apis: 1,
            clients: 12,
            questions: 60,
            rest_every: 8,
        }
    }
}

/// Runs, judges, and tells how it goes while it does.
pub async fn run(terms: &Terms, tell: &mut dyn FnMut(&str)) -> Result<Report, ChaosError> {
    let mut dice = Dice::of(terms.seed);
    tell("making data and starting processes");
    let Terms { s3, bug, network, apis, .. } = terms.clone();
    let layout = Layout { apis, s3, bug, network, ..Layout::of(&terms.binary, terms.seed) };
    let mut cluster = Cluster::start(layout).await?;
    let machine = Machine::of(&cluster, &terms.kinds);
    tell(&format!("links fall ill by {}", machine.links));
    tell(&format!("the store is {}", machine.store));
    cluster.until_connected(RECOVERY).await.ok_or_else(|| ChaosError::NoReference {
        what: "API node and workers do not find each other".to_owned(),
    })?;
    let questions = draw(&mut dice.fork(1), terms.questions);
    tell(&format!("asking {} questions without a fault", questions.len()));
    let known = Arc::new(references(&cluster, questions).await?);
    let mut course = Course {
        begun: Instant::now(),
        faults: Vec::new(),
        asked: Vec::new(),
        violations: Vec::new(),
    };
    course.violations.extend(settle(&mut cluster, course.begun).await);
    let before = footprints(&cluster);

    course.begun = Instant::now();
    let begun = course.begun;
    let addresses = cluster.addresses();
    let client = cluster.client.clone();
    let mut workload =
        Workload::start(terms.clients, &client, &addresses, &known, &mut dice.fork(2), begun);
    let mut kinds = Bag::new(&machine, dice.fork(3));
    let mut how = dice.fork(4);
    while begun.elapsed() < terms.time {
        sleep(how.millis(200..1_200)).await;
        let Some(kind) = kinds.draw() else { break };
        course.inflict(kind, &mut cluster, &mut how, tell).await?;
        workload.take(&mut course.asked);
        if course.faults.len().is_multiple_of(terms.rest_every) {
            course.rest(&mut cluster, &mut workload, tell).await;
        }
    }
    tell("clients leave, and everything comes to rest");
    workload.set(false);
    workload.stop(&mut course.asked).await;
    course.violations.extend(settle(&mut cluster, begun).await);
    let (after, leaks) = back_to(&before, &cluster, begun).await;
    course.violations.extend(leaks);
    let expected: Vec<usize> = (0..cluster.usual_workers()).collect();
    course.violations.extend(crashes(&mut cluster, &expected, begun));
    let api_metrics = Metrics::of(&cluster.client, addresses[0]).await.unwrap_or_default();
    let ran = begun.elapsed();
    course.leave(&mut cluster).await;
    course.violations.extend(complaints(&cluster, begun));
    let verdicts = course.asked.iter().filter_map(|asked| judge(asked, &course.faults));
    course.violations.extend(verdicts.collect::<Vec<_>>());
    course.violations.sort_by_key(|violation| (violation.at_ms, violation.promise));
    if !course.violations.is_empty() {
        keep_logs(&cluster, tell);
    }
    let Course { faults, asked, violations, .. } = course;
    let texts = known.iter().map(|known| known.question.text()).collect();
    Ok(Report {
        seed: terms.seed,
        ran,
        apis: terms.apis,
        clients: terms.clients,
        machine,
        questions: texts,
        faults,
        asked,
        violations,
        before,
        after,
        api_metrics,
    })
}

/// What happened so far.
struct Course {
    begun: Instant,
    faults: Vec<Happened>,
    asked: Vec<Asked>,
    violations: Vec<Violation>,
}

impl Course {
    async fn inflict(
        &mut self,
        kind: Kind,
        cluster: &mut Cluster,
        dice: &mut Dice,
        tell: &mut dyn FnMut(&str),
    ) -> Result<(), ChaosError> {
        let expected = cluster.running();
        let mut happened = kind.inflict(cluster, dice, self.begun).await?;
        let connected = cluster.until_connected(RECOVERY).await;
        happened.recovered = self.begun.elapsed();
        let (name, what) = (kind.name(), &happened.what);
        let time = happened.recovered - happened.from;
        tell(&format!(
            "{:>6.1} s  {name}: {what} ({:.1} s)",
            happened.from.as_secs_f64(),
            time.as_secs_f64()
        ));
        if connected.is_none_or(|took| took > PROMPT) {
            let late =
                connected.map_or("not at all".to_owned(), |took| format!("after {took:.1?}"));
            let what =
                format!("after {name} ({what}) workers and API nodes found each other {late}");
            self.violations.push(Violation::new(Promise::Recovery, happened.recovered, what));
        }
        self.faults.push(happened);
        // Nobody but those who were told to has gone, and whoever did ended for good is started, so
        // that one failure does not hide the next.
        for number in expected {
            if !cluster.workers[number].is_running() {
                let what = format!("worker-{number} ended by itself during {name}");
                self.violations.push(Violation::new(
                    Promise::NoCrashes,
                    self.begun.elapsed(),
                    what,
                ));
                cluster.workers[number].kill();
                cluster.start_worker(number).await?;
            }
        }
        Ok(())
    }

    /// The clients pause, and everything has to come to rest.
    async fn rest(
        &mut self,
        cluster: &mut Cluster,
        workload: &mut Workload,
        tell: &mut dyn FnMut(&str),
    ) {
        workload.set(false);
        let begun = Instant::now();
        let unsettled = settle(cluster, self.begun).await;
        tell(&format!("at rest after {:.1} s", begun.elapsed().as_secs_f64()));
        self.violations.extend(unsettled);
        workload.take(&mut self.asked);
        workload.set(true);
    }

    /// Everybody is asked to leave, and must.
    async fn leave(&mut self, cluster: &mut Cluster) {
        for worker in &cluster.workers {
            worker.signal(Signal::TERM);
        }
        for api in &cluster.apis {
            api.ask_to_leave();
        }
        let workers = cluster.workers.iter_mut().filter_map(|worker| worker.process.as_mut());
        let apis = cluster.apis.iter_mut().filter_map(|api| api.process.as_mut());
        for process in workers.chain(apis) {
            let ended = process.ended(Duration::from_secs(30)).await;
            if !ended.is_some_and(|status| status.success()) {
                let what = format!("{} was asked to leave at rest: {ended:?}", process.name());
                self.violations.push(Violation::new(
                    Promise::NoCrashes,
                    self.begun.elapsed(),
                    what,
                ));
            }
        }
    }
}

/// Asks everything twice, once after the other: what is not answered the same way each time can't be
/// compared with.
pub(crate) async fn references(
    cluster: &Cluster,
    questions: Vec<crate::question::Question>,
) -> Result<Vec<Known>, ChaosError> {
    let api = cluster.apis[0].http();
    let mut known = Vec::with_capacity(questions.len());
    for question in questions {
        let mut answers = Vec::new();
        for _ in 0..2 {
            let told = ask(&cluster.client, api, &question, Manner::Eager, PATIENCE).await;
            match told.ending {
                Ending::Answered(bytes) => answers.push(bytes),
                other => {
                    let what = format!("{}: {other:?}", question.text());
                    return Err(ChaosError::NoReference { what });
                }
            }
        }
        if answers[0] != answers[1] {
            let what = format!("{} has two answers", question.text());
            return Err(ChaosError::NoReference { what });
        }
        let answer = Arc::new(answers.swap_remove(0));
        known.push(Known { question, answer });
    }
    Ok(known)
}

/// Kinds of faults in any order, each as often as the others.
struct Bag {
    kinds: Vec<Kind>,
    left: Vec<Kind>,
    dice: Dice,
}

impl Bag {
    fn new(machine: &Machine, dice: Dice) -> Self {
        Self { kinds: machine.kinds.clone(), left: Vec::new(), dice }
    }

    fn draw(&mut self) -> Option<Kind> {
        if self.left.is_empty() {
            self.left.clone_from(&self.kinds);
            self.dice.shuffle(&mut self.left);
        }
        self.left.pop()
    }
}

/// Copies the logs to where they stay, for the post-mortem.
fn keep_logs(cluster: &Cluster, tell: &mut dyn FnMut(&str)) {
    let Ok(folder) = tempfile::Builder::new().prefix("tributary-chaos-logs-").tempdir() else {
        return;
    };
    let folder = folder.keep();
    let logs = cluster.apis.iter().map(|api| api.log());
    let logs = logs.chain(cluster.workers.iter().map(|worker| worker.log()));
    for log in logs {
        if let Some(name) = log.file_name() {
            // What can't be copied is missing there, and nothing else comes of it.
            drop(std::fs::copy(log, folder.join(name)));
        }
    }
    tell(&format!("logs are kept in {}", folder.display()));
}
