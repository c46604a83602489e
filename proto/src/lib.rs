//! The control protocol and KEDA's scaler protocol, in domain types.
//!
//! Bytes come in through [`decode`], which refuses what can't be a message and never panics; they
//! go out through [`encode`], which always succeeds. [`server`] and [`client`] run the control
//! stream over gRPC, with [`lanes`] in front of it so that heartbeats never wait behind work.
//! [`scaler`] answers KEDA. [`spec`] is what a work item asks for, which travels as bytes.
//!
//! Only this crate names generated types, and none of them leaves it. What the messages mean is
//! left to `core-workcoord`; dialling, sessions and retries to the API node and the worker.

mod codec;
#[cfg(test)]
mod foreign_peer;
mod wire;

pub mod client;
pub mod decode;
pub mod encode;
pub mod lanes;
pub mod limits;
pub mod scaler;
pub mod server;
pub mod spec;
pub mod stream;
