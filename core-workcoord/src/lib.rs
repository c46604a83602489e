//! Who does which work: worker membership and liveness, the work state machine, assignment,
//! reassignment and idempotency, for both sides of the control protocol.
//!
//! Pure: no clock, no randomness, no async, no I/O. Time and seeds come in as inputs, decisions
//! come out as actions. Knows nothing of PromQL, Parquet, HTTP or tokio.

pub mod artifact;
pub mod config;
pub mod id;
pub mod message;
pub mod moment;
