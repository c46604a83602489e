//! A work item from its spec to its artifact: what both ends of the way must agree on.
//!
//! - [`spec_of`] puts a leaf, a span and segments into a spec; [`Work::of`] makes of a spec, which is
//!   not trusted, something that can be run.
//! - [`Work::run`] runs the leaf over segments that somebody has opened.
//! - [`Work::inquire`] answers which series there are, from the indexes of segments alone.
//! - [`artifact`] writes the outcome as a Parquet file and reads it back. Equal work gives equal
//!   bytes; what is read is not trusted.
//!
//! Everything here is synchronous and on memory. Fetching segments, keeping artifacts and moving
//! them is done elsewhere.

pub mod artifact;
mod inquiry;
mod run;
mod spec;

pub use inquiry::{MetricTold, SeriesInquiry, Tell, inquiry_leaf, label_told, metric_told};
pub use run::{Cancelled, RunError};
pub use spec::{BadSpec, Work, spec_of};
