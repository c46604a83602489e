//! What every server process has: configuration from a file, the environment and flags; TLS whose
//! certificates are reloaded; logs and traces; signals; a bounded HTTP port; metrics as text. Knows
//! nothing of queries or work.

pub mod clock;
pub mod config;
pub mod connect;
pub mod host;
pub mod http;
pub mod logs;
pub mod metrics;
pub mod port;
pub mod signals;
pub mod tls;
pub mod trace;
pub mod traces;
