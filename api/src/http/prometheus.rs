//! Prometheus' HTTP API: its parameters, its JSON, its errors and its warnings, so that whatever
//! speaks with Prometheus speaks with us.

mod answer;
pub(super) mod inquire;
pub(super) mod query;
pub(super) mod text;
mod tree;

pub use answer::{Notes, answer_json};
