//! Configuration: each knob is said once, with [`knobs!`](crate::knobs), and read from a file, the
//! environment and flags by [`load`]; [`print`](to_toml) writes it down, explained. What can be
//! configured is said by whoever is configured.

mod knob;
mod load;
mod print;
mod span;

pub use knob::{Kind, Knob, Part, Section, Setting, Typed};
pub use load::{ConfigError, Configured, Settings, load};
pub use print::to_toml;
pub use span::{BadSpan, Span};

/// A value outside its range.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{knob} must be from {from} to {to}")]
pub struct OutOfRange {
    /// Which knob.
    pub knob: &'static str,
    /// The least it may be.
    pub from: u64,
    /// The most it may be.
    pub to: u64,
}

/// Checks that a number is from `from` to `to`, both included.
pub fn within(knob: &'static str, value: u64, from: u64, to: u64) -> Result<(), OutOfRange> {
    if (from..=to).contains(&value) { Ok(()) } else { Err(OutOfRange { knob, from, to }) }
}

#[cfg(test)]
mod tests;
