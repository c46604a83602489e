//! The differential test: random data, random questions, the real Prometheus and ours, and the same
//! answers. The grammar covers the language as Prometheus 3.5 has it; see `tests/differential.rs`
//! for how it is run and `docs/promql.md` for what it has covered.

pub mod arena;
pub mod compare;
pub mod coverage;
pub mod culprit;
pub mod data;
pub mod dice;
mod digits;
pub mod explained;
pub mod grammar;
pub mod ours;
pub mod outcome;
pub mod page;
pub mod peer;
pub mod rewrite;
pub mod run;
pub mod script;
pub mod shrink;
