//! `tributary demo`: a cluster in one process on data that looks like that of a real fleet, with new
//! samples every few seconds. The cluster itself is `up`'s.

mod compact;
mod data;
mod fleet;
mod live;
mod scrape;
mod shape;
mod target;
mod tide;

use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use indicatif::{ProgressBar, ProgressStyle};
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tributary_process::signals::Signals;
use tributary_promql::duration::PromDuration;

use crate::cli::{Problem, Verdict};
use crate::figures::grouped;
use crate::up::{Cluster, ClusterArgs};
use crate::{clock, leaving, output};
use data::{DemoData, Made};

/// What it does and how it leaves, for the help.
pub(crate) const PROMISE: &str = "\
The first start makes the metrics of a day: services with requests and latencies, machines, queues; with
restarts, gaps and times of trouble. Later starts go on where the data ends. While it runs there are new
samples every few seconds, and samples older than two days go. To begin anew, remove the folder.

When everything is up, one line on standard output says so, `ready http=ADDR`, and below it follow
queries to paste.

SIGTERM or SIGINT: queries that run come to their end, then everything leaves. A second signal ends the
process at once.

Exit codes: 0 left in good order, 2 the arguments make no sense or something can't start, 130 and 143
ended by a second signal";

/// Queries to paste. The first two are for `tributary query`, the last one is for `curl`.
const RATE: &str = "sum by (job) (rate(http_requests_total[5m]))";
const LATENCY: &str =
    "histogram_quantile(0.95, sum by (job, le) (rate(http_request_duration_seconds_bucket[5m])))";
const ERRORS: &str =
    r#"topk(3, sum by (job, region) (rate(http_requests_total{code="500"}[10m])))"#;

/// What `demo` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where the data is; made where there is none
    #[arg(long, value_name = "DIR", default_value = "demo-data")]
    data_dir: PathBuf,

    /// How far back the data reaches; at most two days
    #[arg(long, value_name = "DURATION", default_value = "1d", value_parser = history)]
    history: PromDuration,

    #[command(flatten)]
    cluster: ClusterArgs,
}

fn history(text: &str) -> Result<PromDuration, String> {
    let duration = PromDuration::parse(text).map_err(|fault| fault.to_string())?;
    if !(60_000..=compact::KEEP_MS).contains(&duration.as_millis()) {
        return Err("it is a minute at least, and two days at most".to_owned());
    }
    Ok(duration)
}

/// Makes the data where it is missing and serves it until a signal comes.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    args.cluster.start_logs()?;
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(Problem::failed)?;
    let verdict = runtime.block_on(serve(args));
    runtime.shutdown_background();
    verdict
}

async fn serve(args: &Args) -> Result<Verdict, Problem> {
    let mut signals = Signals::catch().map_err(Problem::failed)?;
    let data = DemoData::open(&args.data_dir).await?;
    let covered_ms = tokio::select! {
        prepared = prepare(&data, args.history) => prepared?,
        // What was begun is given up; the next start removes its rests.
        signal = signals.next() => return Ok(Verdict::Signalled(128 + signal)),
    };
    let cluster = Cluster::start(&args.data_dir, &args.cluster).await?;
    let live = Live::start(data, covered_ms);
    let mut out = output::standard();
    writeln!(out, "ready http={}", cluster.http())?;
    greet(&mut out, args, &cluster)?;
    out.flush()?;
    drop(out);
    let leave = async || {
        live.stop().await;
        cluster.leave().await;
    };
    Ok(leaving::at_a_signal(signals, leave).await)
}

/// The generator at work.
struct Live {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Live {
    fn start(data: DemoData, covered_ms: i64) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(live::keep_appending(data, covered_ms, stopped));
        Self { stop, task }
    }

    /// Ends it after the round at hand.
    async fn stop(self) {
        // Where it is gone already, it has ended.
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

/// Makes what is missing up to now. Gives the first millisecond without samples.
async fn prepare(data: &DemoData, history: PromDuration) -> Result<i64, Problem> {
    let now_ms = clock::now_ms();
    let covered_ms = data.covered_until().await?;
    let from_ms = covered_ms.unwrap_or(i64::MIN).max(now_ms - history.as_millis());
    if from_ms >= now_ms {
        // A clock that was set back: what is there lasts for a while.
        return Ok(from_ms);
    }
    let begun = Instant::now();
    let bar = Progress::start(covered_ms.is_none());
    let (data, runtime) = (data.clone(), Handle::current());
    let filling = tokio::task::spawn_blocking(move || {
        let made = data.fill((from_ms, now_ms), &runtime, |done, all| bar.part(done, all));
        bar.finish();
        made
    });
    let made = filling.await.map_err(Problem::failed)??;
    if covered_ms.is_none() {
        tell(&made, begun)?;
    }
    Ok(now_ms)
}

fn tell(made: &Made, begun: Instant) -> io::Result<()> {
    let Made { series, samples, segments, bytes } = *made;
    let took = begun.elapsed().as_secs_f64();
    let (series, samples) = (grouped(series), grouped(samples));
    let megabytes = bytes as f64 / 1e6;
    let mut out = io::stderr();
    writeln!(
        out,
        "demo data: {samples} samples of {series} series in {segments} segments, \
         {megabytes:.1} MB, made in {took:.1} s"
    )
}

/// How far the data is: a bar on a terminal, a line elsewhere.
struct Progress(ProgressBar);

impl Progress {
    fn start(is_first: bool) -> Self {
        if is_first && !io::stderr().is_terminal() {
            // Where standard error is gone, nobody misses it.
            let _ = writeln!(io::stderr(), "making demo data");
        }
        let template = ProgressStyle::with_template("{msg} {bar:30} {percent}% {elapsed}");
        let bar = ProgressBar::new(0)
            .with_style(template.expect("the template is well formed"))
            .with_message("making demo data");
        Self(bar)
    }

    fn part(&self, done: usize, all: usize) {
        self.0.set_length(all as u64);
        self.0.set_position(done as u64);
    }

    fn finish(&self) {
        self.0.finish_and_clear();
    }
}

fn greet(out: &mut impl Write, args: &Args, cluster: &Cluster) -> io::Result<()> {
    let url = format!("http://{}", cluster.http());
    let (workers, folder) = (args.cluster.workers(), args.data_dir.display());
    let plural = if workers == 1 { "" } else { "s" };
    let tributary = std::env::args_os().next().map_or_else(
        || "tributary".to_owned(),
        |program| Path::new(&program).display().to_string(),
    );
    let at = if url == "http://127.0.0.1:9480" { String::new() } else { format!(" --url {url}") };
    writeln!(
        out,
        "
One API node and {workers} worker{plural} serve the metrics of a fleet up to now, from {folder}.
Look at them in a browser, {url}, or ask in another terminal:

  {tributary} query{at} '{RATE}'

  {tributary} query{at} --start now-6h \\
    '{LATENCY}'

  curl -sG {url}/api/v1/query --data-urlencode \\
    'query={ERRORS}'

Grafana takes {url} as a Prometheus data source. Ctrl-C ends everything."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_is_between_a_minute_and_two_days() {
        assert_eq!(history("1d").map(PromDuration::as_millis), Ok(86_400_000));
        for bad in ["59s", "3d", "x", ""] {
            assert!(history(bad).is_err(), "{bad}");
        }
    }
}
