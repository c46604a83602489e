//! Why bytes from a peer are refused. The field is named as in `control.proto`; its content is not
//! repeated, for it may be long, hostile or a secret.

use core_workcoord::artifact::BadChecksum;
use core_workcoord::id::{BadId, QueryId, WorkId};

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The message as a whole is longer than any may be.
    #[error("a message has {len} bytes; {max} are allowed")]
    TooLarge {
        /// Its length.
        len: usize,
        /// The most it may have.
        max: usize,
    },
    /// The bytes are not Protocol Buffers, or not of this message's shape.
    #[error("not a protobuf message")]
    NotProtobuf(#[source] prost::DecodeError),
    /// The envelope is empty, or of a kind that only a newer peer knows.
    #[error("the message is of no kind known here")]
    UnknownKind,
    /// A field that must be there is not.
    #[error("{field} is missing")]
    Missing {
        /// Which field.
        field: &'static str,
    },
    /// An identifier is not spelled the one way it must be.
    #[error("{field}: {source}")]
    Id {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        source: BadId,
    },
    /// A checksum is not spelled the one way it must be.
    #[error("{field}: {source}")]
    Checksum {
        /// Which field.
        field: &'static str,
        /// What is wrong with it.
        source: BadChecksum,
    },
    /// A text or a sequence of bytes is too long.
    #[error("{field} has {len} bytes; {max} are allowed")]
    TooLong {
        /// Which field.
        field: &'static str,
        /// Its length.
        len: usize,
        /// The most it may have.
        max: usize,
    },
    /// A text that ends up in an HTTP request has something other than printable ASCII.
    #[error("{field} has a character that is not printable ASCII at byte {at}")]
    NotPrintable {
        /// Which field.
        field: &'static str,
        /// Where the first such character begins.
        at: usize,
    },
    /// A number is too small or too large.
    #[error("{field} is {value}; {min} to {max} is allowed")]
    OutOfRange {
        /// Which field.
        field: &'static str,
        /// The number.
        value: u32,
        /// The least it may be.
        min: u32,
        /// The most it may be.
        max: u32,
    },
    /// A reason code that was left out, or that only a newer peer knows.
    #[error("{field} has the unknown reason code {code}")]
    UnknownReason {
        /// Which field.
        field: &'static str,
        /// The code.
        code: i32,
    },
    /// A span of time that is negative, contradicts itself or is beyond all bounds.
    #[error("{field} is no span of time: {seconds} s and {nanos} ns")]
    BadDuration {
        /// Which field.
        field: &'static str,
        /// Whole seconds.
        seconds: i64,
        /// Nanoseconds beyond them.
        nanos: i32,
    },
    /// The work does not belong to the query it is assigned for.
    #[error("work {work} does not belong to query {query}")]
    ForeignWork {
        /// The query that was named.
        query: QueryId,
        /// The work that was named.
        work: WorkId,
    },
    /// Rows whose smallest timestamp is larger than their largest.
    #[error("min_ts {min_ts} is larger than max_ts {max_ts}")]
    TimesReversed {
        /// The smallest, as announced.
        min_ts: i64,
        /// The largest, as announced.
        max_ts: i64,
    },
}
