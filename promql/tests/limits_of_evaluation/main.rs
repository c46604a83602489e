//! Queries that ask for too much: each limit ends one with an error that names it, hostile queries
//! end before they take much memory, and times at the ends of time are no danger.

#[path = "../common/mod.rs"]
mod common;
mod hostile;
mod limits;
mod memory;
mod page;
mod times;
