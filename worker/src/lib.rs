//! The worker: API nodes open control streams to it, it runs their leaves on a bounded number of
//! threads, announces artifacts, and leaves politely.
//!
//! [`Worker::start`] brings up two ports from a [`config::WorkerConfig`] and [`Parts`]: something
//! that runs leaves ([`Execute`]) and something that keeps artifacts ([`Artifacts`]). Everything in
//! between, who gets a slot, what is cancelled, when it is time to go, is decided by the intake of
//! `core-workcoord`; this crate tells it what happens and does what it says.
//!
//! Three kinds of threads keep out of each other's way. `control` serves the streams and the desk
//! that owns the intake, and never waits for anything; `leaf-N` run leaves, at a lower priority; the
//! caller's runtime serves HTTP. So a heartbeat waits neither for a leaf nor for a disk.

mod connection;
mod control;
mod custodian;
mod desk;
mod handle;
mod holdings;
mod http;
mod session;
mod slots;
mod stages;
mod worker;

pub mod artifacts;
pub mod config;
pub mod disk;
pub mod execute;
pub mod inline;
pub mod leaf_work;
pub mod metrics;
pub mod rehearsal;

pub use artifacts::{ArtifactId, Artifacts, Holder};
pub use execute::{Assignment, Cancel, Execute, Finished};
pub use handle::Handle;
pub use worker::{Parts, StartError, Worker};
