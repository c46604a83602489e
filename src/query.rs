//! `tributary query`: asks an API node and shows its answer as it comes. How it is asked is in `ask`,
//! how the answer looks in `view`.

mod ask;
mod canvas;
mod chart;
mod frame;
mod lines;
mod screen;
mod sse;
mod view;

use crate::cli::{self, Problem, Verdict};
use crate::output;
use ask::{AskError, Question};
use frame::Frame;
use view::{Style, View};

/// How answers look and what the exit code says, for the help.
pub(crate) const PROMISE: &str = "\
On a terminal the answer is a chart that grows while results come; elsewhere it is a table. --json
prints every frame as it came, one a line; --csv prints a line for each value. Times may be RFC 3339,
milliseconds of the Unix epoch, or relative, such as now-1h. Progress goes to standard error. Ctrl-C
cancels the query on the workers too.

Exit codes: 0 answered, 1 answered, and there is nothing, 2 the arguments make no sense or the server
can't be reached, 3 the query is refused or failed, 130 cancelled by Ctrl-C

Examples:
  tributary query 'sum by (job) (rate(http_requests_total[5m]))'
  tributary query --start now-6h --step 1m --csv 'queue_depth' > depth.csv";

/// What `query` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The API node
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:9480",
        env = "TRIBUTARY_URL"
    )]
    url: String,

    /// The first instant
    #[arg(long, value_name = "TIME", default_value = "now-1h", allow_hyphen_values = true)]
    start: String,

    /// The last instant
    #[arg(long, value_name = "TIME", default_value = "now", allow_hyphen_values = true)]
    end: String,

    /// From one instant to the next, such as 30s [default: by the length of the time asked for]
    #[arg(long, value_name = "DURATION")]
    step: Option<String>,

    /// Ask for figures about each series too: extremes, mean, quantiles
    #[arg(long)]
    summary: bool,

    /// Print frames of JSON as they come, one a line
    #[arg(long, group = "style")]
    json: bool,

    /// Print a line of CSV for each value
    #[arg(long, group = "style")]
    csv: bool,

    /// Print a table, on a terminal too
    #[arg(long, group = "style")]
    table: bool,

    /// Draw a chart, even if this is no terminal
    #[arg(long, group = "style")]
    chart: bool,

    /// The API key
    #[arg(long, value_name = "KEY", env = "TRIBUTARY_API_KEY", hide_env_values = true)]
    key: Option<String>,

    /// What is asked, in PromQL
    #[arg(value_name = "EXPR")]
    expr: String,
}

/// Asks, and shows the answer.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    let style = match () {
        () if args.json => Style::Json,
        () if args.csv => Style::Csv,
        () if args.chart || (!args.table && screen::can_draw()) => Style::Chart,
        () => Style::Table,
    };
    let runtime = cli::runtime()?;
    runtime.block_on(async {
        // The first interruption is enough: what was asked is cancelled by leaving.
        tokio::select! {
            verdict = answer(args, style) => verdict,
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.map_err(Problem::failed)?;
                Ok(Verdict::Signalled(130))
            }
        }
    })
}

async fn answer(args: &Args, style: Style) -> Result<Verdict, Problem> {
    let mut view = View::new(style, output::standard());
    let question = Question {
        q: &args.expr,
        s: &args.start,
        e: &args.end,
        step: args.step.as_deref(),
        summary: args.summary,
    };
    let shown = show(args, &question, &mut view).await;
    view.finish()?;
    match shown? {
        true => Ok(Verdict::Good),
        false => Ok(Verdict::Nothing),
    }
}

/// Shows all frames. Gives whether there were any results.
async fn show(
    args: &Args,
    question: &Question<'_>,
    view: &mut View<output::Output>,
) -> Result<bool, Problem> {
    let asked = ask::ask(&args.url, args.key.as_deref(), question).await;
    let mut answer = asked.map_err(problem)?;
    let mut has_results = false;
    let mut complaint = None;
    loop {
        let (text, frame) = answer.next().await.map_err(problem)?;
        view.take(&text, &frame)?;
        if !answer.has_more() {
            view.rest()?;
        }
        match frame {
            Frame::Result(_) | Frame::Summary(_) => has_results = true,
            Frame::Error { code, message } => complaint = Some((code, message)),
            Frame::Done { ok: true } if complaint.is_none() => return Ok(has_results),
            Frame::Done { .. } => {
                let (code, message) = complaint.unwrap_or_default();
                let code = if code.is_empty() { "error".to_owned() } else { code };
                return Err(Problem::Unanswered { code, message });
            }
            Frame::Heartbeat | Frame::WaitingScaleUp | Frame::Progress { .. } | Frame::Unknown => {}
        }
        if view.has_no_reader() {
            // Nobody looks any more. That was their wish, and what they saw was right.
            return Ok(true);
        }
    }
}

fn problem(error: AskError) -> Problem {
    match error {
        AskError::Refused { status, message } => {
            Problem::Unanswered { code: status.to_string(), message }
        }
        other => Problem::failed(other),
    }
}
