//! Pages of a Parquet column: their headers, encodings, compression and checksums, for the few
//! kinds of page a segment has. Which columns there are and what they mean is said elsewhere.
//!
//! The Parquet library writes and reads whole columns; this module exists because a segment reads
//! single rows of single pages, into buffers that are used again, and because bytes from outside
//! must never cost more memory than they say. Any Parquet reader takes what is written here.

pub(crate) mod chunk;
pub(crate) mod header;
pub(crate) mod hybrid;
pub(crate) mod split;
pub(crate) mod text;
pub(crate) mod thrift;
pub(crate) mod unpack;

/// Why bytes are not what they should be. Becomes a `SegmentError` where the file is known.
#[derive(Debug)]
pub(crate) struct Malformed(pub(crate) String);

impl From<&str> for Malformed {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}

/// How the values of a page are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One value after the other, little endian.
    Plain,
    /// Numbers of values in the column chunk's dictionary.
    Dictionary,
    /// All first bytes, then all second bytes, and so on: bytes that are alike stand together.
    Split,
}

impl Layout {
    /// The number Parquet has for it.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Plain => 0,
            Self::Dictionary => 8,
            Self::Split => 9,
        }
    }

    /// The Parquet library's name for it.
    pub(crate) fn encoding(self) -> parquet::basic::Encoding {
        match self {
            Self::Plain => parquet::basic::Encoding::PLAIN,
            Self::Dictionary => parquet::basic::Encoding::RLE_DICTIONARY,
            Self::Split => parquet::basic::Encoding::BYTE_STREAM_SPLIT,
        }
    }

    fn from_code(code: i32) -> Result<Self, Malformed> {
        match code {
            0 => Ok(Self::Plain),
            8 => Ok(Self::Dictionary),
            9 => Ok(Self::Split),
            other => Err(Malformed(format!("a page has encoding {other}"))),
        }
    }
}
