//! Chaos: real faults against clusters of real processes, and the judgement of every answer. Any worker
//! may die at any moment; here that promise becomes a number that anyone can reproduce.
//!
//! [`run()`] makes data, asks for fault-free answers, then lets clients ask while one fault after another
//! is done to the cluster, and judges: wrong bytes, queries that hang or fail needlessly, whatever is
//! left when all is over. The product is known by its processes alone: its binary, its ports, its
//! files, and the control protocol for a worker that lies.

pub mod bite;
pub mod bucket;
pub mod client;
pub mod cluster;
pub mod data;
pub mod dice;
pub mod error;
pub mod fault;
pub mod journal;
pub mod liar;
pub mod link;
pub mod network;
pub mod process;
pub mod question;
pub mod report;
pub mod rest;
pub mod run;
pub mod scenario;
pub mod scrape;
pub mod slow_disk;
pub mod verdict;
pub mod workload;

pub use error::ChaosError;
pub use fault::Kind;
pub use network::Network;
pub use report::Report;
pub use run::{Terms, run};
pub use scenario::Scenario;
