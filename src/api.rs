//! `tributary api`: one API node. Reads the configuration, says when it is ready, and leaves when
//! asked. The work is done by `tributary_api`.

use std::io::Write;
use std::path::PathBuf;

use tokio::runtime::Builder;
use tributary_api::Api;
use tributary_api::config::ApiConfig;
use tributary_process::config::{Settings, load, to_toml};
use tributary_process::host::host_name;
use tributary_process::logs;
use tributary_process::signals::Signals;
use tributary_process::traces::{Origin, Traces};

use crate::cli::{Problem, Verdict};
use crate::{leaving, output, settings};

/// How an API node is configured and how it leaves, for the help.
pub(crate) const PROMISE: &str = "\
Everything can be configured in a TOML file (--config), over it by environment variables
(TRIBUTARY_API_…), over it by flags; --print-config prints all of it, explained. When the port is open,
one line on standard output says so: `ready http=ADDR`. It is ready without workers too: queries wait
until one is found. Log lines go to standard error.

SIGTERM or SIGINT: no new queries, those that run have the shutdown's time to end, then streams and
port are closed. A second signal ends the process at once.

Exit codes: 0 left in good order, 2 the configuration makes no sense or the node can't
start, 130 and 143 ended by a second signal";

/// What `api` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A data directory with catalog and segments
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,

    /// The catalog, in place of --data-dir: sqlite:///path/catalog.db or postgres://host/name
    #[arg(long, value_name = "URL")]
    catalog: Option<String>,

    /// The object store with the segments; workers read it, API nodes do not
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    /// Where clients ask [default: 0.0.0.0:9480]
    #[arg(long, value_name = "ADDR")]
    http: Option<String>,

    /// A worker, by its control port; may be given several times
    #[arg(long, value_name = "HOST:PORT")]
    worker: Vec<String>,

    /// A place that names workers, such as dns:workers.internal:9470; may be given several times
    #[arg(long, value_name = "PLACE")]
    discovery: Vec<String>,

    /// Record what the coordinator is told and decides in this folder, for `tributary replay`
    #[arg(long, value_name = "DIR")]
    journal: Option<String>,

    /// Read the configuration from this file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Set anything that can be configured, as in query.timeout=30s
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Print the configuration, explained, and exit
    #[arg(long)]
    print_config: bool,
}

/// Runs an API node until it has left.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    let config: ApiConfig = load(&settings(args)?).map_err(Problem::failed)?;
    if args.print_config {
        let mut out = output::standard();
        out.write_all(to_toml(&config).as_bytes())?;
        out.flush()?;
        return Ok(Verdict::Good);
    }
    let runtime = Builder::new_multi_thread().enable_all().build().map_err(Problem::failed)?;
    let verdict = runtime.block_on(observed(&config));
    // Nobody waits for a calculation that does not hear.
    runtime.shutdown_background();
    verdict
}

/// Serves with log lines and, where configured, traces.
async fn observed(config: &ApiConfig) -> Result<Verdict, Problem> {
    let host = host_name();
    let instance = config.api_id.as_deref().unwrap_or(&host);
    let origin = Origin { service: "tributary-api", instance, version: env!("CARGO_PKG_VERSION") };
    let traces = Traces::start(&config.traces, &origin).map_err(Problem::failed)?;
    logs::start_with(&config.log, traces.as_ref()).map_err(Problem::failed)?;
    let verdict = serve(config).await;
    if let (Ok(Verdict::Good), Some(traces)) = (&verdict, traces) {
        traces.finish().await;
    }
    verdict
}

async fn serve(config: &ApiConfig) -> Result<Verdict, Problem> {
    // Caught before anybody can know that the node is there.
    let signals = Signals::catch().map_err(Problem::failed)?;
    let api = Api::start(config, env!("CARGO_PKG_VERSION")).await.map_err(Problem::failed)?;
    let mut out = output::standard();
    writeln!(out, "ready http={}", api.http())?;
    out.flush()?;
    drop(out);
    Ok(leaving::at_a_signal(signals, async || _ = api.close().await).await)
}

fn settings(args: &Args) -> Result<Settings, Problem> {
    // Several of them are one list.
    let list = |values: &[String]| (!values.is_empty()).then(|| values.join(","));
    let (workers, discovery) = (list(&args.worker), list(&args.discovery));
    let flags = [
        ("data_dir", "--data-dir", &args.data_dir),
        ("catalog", "--catalog", &args.catalog),
        ("store", "--store", &args.store),
        ("http", "--http", &args.http),
        ("workers", "--worker", &workers),
        ("discovery", "--discovery", &discovery),
        ("journal", "--journal", &args.journal),
    ];
    settings::gather::<ApiConfig>(args.config.as_deref(), &args.set, &flags)
}
