//! Runs test scripts of PromQL: they load series, ask queries and say what the answers must be. The
//! language is that of Prometheus' own `.test` files, so the same scripts judge both.
//!
//! [`Script::parse`] reads a script, [`run`] puts every case of it to one or more [`Engine`]s and
//! gives a [`FileReport`]; a [`Report`] prints many of them. All engines must give the same answer
//! to the last bit, and the first must give the expected one. [`cut()`] cuts the data of a script
//! into cells, as planners of a cluster do, in a way that depends on a seed only.
//!
//! Where the language goes further than Prometheus':
//!
//! - A `load` may bring samples that are older than those of an earlier one, or of the same time;
//!   the later load wins, as the newer segment does. Prometheus refuses such a load.
//! - The comment `# cut at 5m 10m` pins the times at which [`cut()`] cuts, until the next such
//!   comment or `clear`.
//!
//! A case that needs what the engines cannot do yet is skipped and counted, see [`Need`]. How an
//! engine answers is its own business; nothing here evaluates anything.

mod agree;
mod check;
mod cut;
mod data;
mod describe;
mod engine;
mod local;
mod needs;
mod pinned;
mod reach;
mod report;
mod run;
mod script;
mod splitmix;

pub use cut::{Cell, cut};
pub use data::{DataSet, Samples, Series};
pub use engine::{Engine, Query, Settings, Time, Way};
pub use local::{LocalEngine, local_ways};
pub use needs::Need;
pub use report::Report;
pub use run::{Failure, FileReport, data_sets, run};
pub use script::{
    AnnotationRule, Case, Command, Expectation, Expected, Load, LoadedSeries, Message, Script,
    ScriptError, Window, find_scripts,
};
pub use splitmix::SplitMix;
