//! A kettle that can be configured with every kind of knob, for the tests of loading and printing.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::{Configured, OutOfRange, Span, within};
use crate::knobs;

knobs! {
    /// A kettle.
    KettleConfig {
        /// Whose it is (default: nobody's).
        owner: Option<String> = None,
        /// Where it stands (default 127.0.0.1:1).
        place: SocketAddr = ([127, 0, 0, 1], 1).into(),
        /// Where its manual is (default: nowhere).
        manual: Option<PathBuf> = None,
        /// Who drinks (default: nobody).
        guests: Vec<String> = Vec::new(),
    }
    sections {
        /// Heating.
        heating: HeatingConfig,
        /// Log lines.
        log: crate::logs::LogConfig,
    }
}

knobs! {
    /// Heating.
    HeatingConfig {
        /// Watts, 1 to 3000 (default 2000). More: a larger bill, which is explained here at such length
        /// that the line has to be broken somewhere.
        watts: u32 = 2_000,
        /// Millilitres (default 1700).
        volume: usize = 1_700,
        /// The share of it that is heated (default 1).
        share: f64 = 1.0,
        /// How long it stays warm (default 10m).
        keep_warm: Span = Span::seconds(600),
        /// Whether it whistles (default true).
        whistles: bool = true,
    }
}

impl Configured for KettleConfig {
    const WHAT: &'static str = "a kettle";
    const VARIABLE_PREFIX: &'static str = "KETTLE_";
    type Bad = OutOfRange;

    fn check(&self) -> Result<(), OutOfRange> {
        within("heating.watts", self.heating.watts.into(), 1, 3_000)
    }
}
