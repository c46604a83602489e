//! What is known of a finished artifact: where it is, how large, its checksum, rows and times.
//! The bytes themselves belong to `artifact-store`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// SHA-256 of an artifact's bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Checksum(pub [u8; 32]);

/// An announced artifact. Announced is not verified: the fetcher checks size and checksum.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Where its worker serves it.
    pub url: String,
    /// Its length.
    pub size_bytes: u64,
    /// SHA-256 of its bytes.
    pub checksum: Checksum,
    /// Number of rows.
    pub row_count: u64,
    /// Smallest timestamp, in milliseconds of the Unix epoch.
    pub min_ts: i64,
    /// Largest timestamp, in milliseconds of the Unix epoch.
    pub max_ts: i64,
    /// Version of the artifact's Parquet schema.
    pub parquet_schema_version: u32,
}

/// The text is not 64 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a checksum is 64 lower-case hex digits")]
pub struct BadChecksum;

impl FromStr for Checksum {
    type Err = BadChecksum;

    fn from_str(text: &str) -> Result<Self, BadChecksum> {
        fn digit(byte: u8) -> Result<u8, BadChecksum> {
            match byte {
                b'0'..=b'9' => Ok(byte - b'0'),
                b'a'..=b'f' => Ok(byte - b'a' + 10),
                _ => Err(BadChecksum),
            }
        }
        let text = text.as_bytes();
        if text.len() != 64 {
            return Err(BadChecksum);
        }
        let mut sum = [0; 32];
        for (byte, pair) in sum.iter_mut().zip(text.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Ok(Self(sum))
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Checksum {
    /// The first four bytes: enough to tell two apart in a log.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksum_reads_back_what_it_prints() {
        let sum = Checksum(std::array::from_fn(|i| u8::try_from(i * 7).unwrap()));
        assert_eq!(sum.to_string().parse(), Ok(sum));
        assert_eq!(format!("{sum:?}"), "00070e15");
        for bad in ["", "00", &"g".repeat(64), &"A".repeat(64), &"é".repeat(32)] {
            assert_eq!(bad.parse::<Checksum>(), Err(BadChecksum), "{bad}");
        }
    }
}
