//! Who does which work: worker membership and liveness, the work state machine, assignment,
//! reassignment and idempotency, for both sides of the control protocol.
//!
//! Pure: no clock, no randomness, no async, no I/O. Time and seeds come in as inputs, decisions
//! come out as actions. Knows nothing of PromQL, Parquet, HTTP or tokio.

pub mod artifact;
pub mod assign;
pub mod config;
pub mod coordinator;
mod fair_queue;
mod fetch_queue;
mod heartbeat;
mod hedge;
pub mod id;
pub mod intake;
pub mod invariant;
pub mod journal;
pub mod measure;
pub mod message;
pub mod moment;
pub mod reconnect;
pub mod roster;
pub mod sabotage;
mod timers;
mod work_ledger;
pub mod work_state;
