//! placeholder
pub struct Workshop;
