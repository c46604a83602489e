//! What clients see: every endpoint over series in memory, what is refused and in which words, who is
//! let in, and what happens when a client is slow or goes away.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]

mod gate;
mod hostile;
mod inquiries;
mod leaving;
mod memory;
mod page;
mod prometheus;
mod reply;
mod streams;
