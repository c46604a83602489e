//! What suites over real worker processes are made of: a field of segments to work on, a process of
//! the binary that is killed with its test, an API node that speaks the raw control protocol, and
//! peers that do not even do that.
//!
//! The suites themselves are in the root package's `tests/`: cargo tells only tests of a package
//! where its binary is, and builds it for them first, so they never run against one of yesterday.

pub mod api;
pub mod bucket;
pub mod field;
pub mod figures;
pub mod http;
pub mod process;
pub mod wire;

use std::time::Duration;

/// Nothing in a suite takes longer, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(30);
