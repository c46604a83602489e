//! The API node: from an HTTP query to its answer, over live workers. Plans a query into work items,
//! hands them to workers over control streams, fetches what they make, evaluates it, and streams the
//! answer.
//!
//! [`question`] is the seam in the middle: in front of it `http` speaks with clients, behind it `query`
//! runs what they ask.

pub mod access;
pub mod cells;
pub mod config;
pub mod coordination;
pub mod cores;
pub mod discovery;
pub mod error;
pub mod fetch;
pub mod figures;
pub mod http;
mod inquiry;
pub mod memory;
pub mod metrics;
pub mod monitor;
pub mod node;
pub mod plan;
pub mod query;
pub mod question;
pub mod scaler;
pub mod stream;

pub use node::{Api, StartError};
