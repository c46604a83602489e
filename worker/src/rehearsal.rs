//! Work that only pretends, and artifacts that are kept in memory: for tests of everything around a
//! leaf with real streams, threads and sockets, and for rehearsals on a machine without data.
//!
//! A spec is a line of words, done one after the other: `spin:50ms` keeps a core busy, `sleep:50ms`
//! waits, `stubborn:50ms` waits and does not hear, `size:1000` sets the length of the artifact,
//! `fail:retryable` and `fail:final` fail, `panic` panics.

mod script;
mod shelf;

pub use script::Script;
pub use shelf::Shelf;
