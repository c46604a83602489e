//! The whole stack in a simulated network: real API nodes and real workers, gRPC and HTTP, over
//! turmoil's network, with time that stands still while something is calculated. Everything that
//! happens follows from a seed: hosts, questions, faults, latencies. One that goes wrong goes wrong
//! again, in the same way, as often as it is run.
//!
//! [`run`] tells one story and judges it. What is behind a seam, because a network or a disk can't be
//! simulated otherwise, is small: ports and dialling (`net`), the client that fetches artifacts,
//! segments in memory and artifacts in memory (`spool`).
//!
//! The order of hash maps, the branches that `select!` tries first, random numbers and clocks are the
//! process's: whoever calls [`run`] twice for the same story must have made them repeat (see the
//! suite `stack`, which does). Without that a story is told just as well, and differs a little each
//! time.

mod book;
mod client;
mod explain;
mod fault;
mod hosts;
mod judge;
mod leaves;
pub mod material;
mod net;
mod spool;
mod story;
mod watch;
mod world;

pub use book::Verdict;
pub use fault::Kind;
pub use hosts::Tampering;
pub use material::Material;
pub use world::{Listen, run};
