//! `tributary segments`: lists the segments of a data directory, shows one, cleans up. What the
//! catalog knows is `tributary_catalog`'s, what is in the files `tributary_segment`'s.

mod gc;
mod list;
mod show;

use std::path::PathBuf;

use clap::Subcommand;
use core_workcoord::id::TenantId;
use serde::Serialize;
use tributary_catalog::{Catalog, CatalogConfig, DataDir};

use crate::cli::{self, Problem, Verdict};

/// What the exit codes say, for the help.
pub(crate) const EXIT_CODES: &str = "\
Exit codes: 0 all is well, 1 a live segment lacks a file (gc), 2 the arguments make no sense, there is
no such segment, or something can't be read or written";

/// What `segments` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The data directory
    // Needed always, but clap wants what may stand on either side of the subcommand to be optional.
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,

    /// Only segments of this tenant
    #[arg(long, value_name = "T", global = true, value_parser = cli::tenant)]
    tenant: Option<TenantId>,

    /// Print JSON, for programs
    #[arg(long, global = true)]
    json: bool,

    #[command(subcommand)]
    action: Option<Action>,
}

/// What to do; without it, list.
#[derive(Debug, Subcommand)]
enum Action {
    /// List the segments: time, shard, and how much is in them
    List,
    /// Show what is in a segment: its metrics, its files, and how its samples are laid out
    Show(show::Args),
    /// Remove files that no segment names, and what killed imports left
    #[command(after_help = gc::PROMISE)]
    Gc(gc::Args),
}

/// A data directory that is open, and how answers are wanted.
struct Desk {
    data_dir: DataDir,
    catalog: Catalog,
    tenant: Option<TenantId>,
    json: bool,
}

/// Does what is asked.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    let path = args.data_dir.as_ref().ok_or(Problem::NeedsOption("--data-dir DIR"))?;
    let data_dir = DataDir::open(path).map_err(Problem::failed)?;
    cli::runtime()?.block_on(async {
        let catalog = data_dir.catalog(CatalogConfig::default()).await.map_err(Problem::failed)?;
        let desk = Desk { data_dir, catalog, tenant: args.tenant.clone(), json: args.json };
        match &args.action {
            None | Some(Action::List) => list::run(&desk).await,
            Some(Action::Show(args)) => show::run(&desk, args).await,
            Some(Action::Gc(args)) => gc::run(&desk, args).await,
        }
    })
}

/// An answer for programs, in lines that people can read too.
fn json(answer: &impl Serialize) -> String {
    serde_json::to_string_pretty(answer).expect("texts, numbers and lists of them can be written")
}
