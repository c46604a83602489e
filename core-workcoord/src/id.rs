//! Names of things: queries, leaves, work, workers, sessions. Small, ordered, printable, checked
//! when they come from outside. What they name lives elsewhere.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One query of one API node, for as long as that node remembers it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct QueryId(pub u128);

/// One leaf of a query, counted from zero in the order of its plan.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct LeafId(pub u32);

/// One work item: its query and its place in the query's time order. Stays over all attempts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkId {
    /// The query the item belongs to.
    pub query: QueryId,
    /// The item's place in the query, counted from zero.
    pub item: u32,
}

/// One assignment of a work item to one session, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Attempt(pub u32);

/// One life of a control stream. Numbers are never used twice by one side.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SessionId(pub u64);

/// One piece of execution on a worker: the work of one session's one attempt. Local to the worker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(pub u64);

/// What a work item would like to stay close to: equal keys prefer the same worker's cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AffinityKey(pub u64);

/// Why a name was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadId {
    /// The text is empty or longer than the kind allows.
    #[error("{kind} has {len} bytes; 1 to {max} are allowed")]
    Length {
        /// Which kind of name.
        kind: &'static str,
        /// Its length in bytes.
        len: usize,
        /// The most it may have.
        max: usize,
    },
    /// A character outside the allowed set.
    #[error("{kind} has the character {found:?}; letters, digits and . _ : - [ ] are allowed")]
    Character {
        /// Which kind of name.
        kind: &'static str,
        /// The first character that is not allowed.
        found: char,
    },
    /// A number that is not written the one way we write it.
    #[error("{kind} is not of the form {form}")]
    Form {
        /// Which kind of name.
        kind: &'static str,
        /// The form it should have.
        form: &'static str,
    },
}

/// The longest text name in bytes.
pub const NAME_MAX_BYTES: usize = 253;

fn check_name(kind: &'static str, text: &str) -> Result<(), BadId> {
    if text.is_empty() || text.len() > NAME_MAX_BYTES {
        return Err(BadId::Length { kind, len: text.len(), max: NAME_MAX_BYTES });
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._:-[]".contains(c);
    match text.chars().find(|c| !allowed(*c)) {
        Some(found) => Err(BadId::Character { kind, found }),
        None => Ok(()),
    }
}

macro_rules! text_name {
    ($(#[$doc:meta])* $name:ident, $kind:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "Arc<str>", into = "Arc<str>")]
        pub struct $name(Arc<str>);

        impl $name {
            /// Checks the text and makes it a name.
            pub fn new(text: &str) -> Result<Self, BadId> {
                check_name($kind, text)?;
                Ok(Self(text.into()))
            }

            /// The text of the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<Arc<str>> for $name {
            type Error = BadId;
            fn try_from(text: Arc<str>) -> Result<Self, BadId> {
                check_name($kind, &text)?;
                Ok(Self(text))
            }
        }

        impl From<$name> for Arc<str> {
            fn from(name: $name) -> Self {
                name.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_name!(
    /// A worker's stable name: it survives restarts, so affinity and cache do too.
    WorkerId,
    "worker id"
);
text_name!(
    /// One life of one API node.
    ApiId,
    "api id"
);
text_name!(
    /// Whose query it is. Tenants share the pool fairly.
    TenantId,
    "tenant"
);
text_name!(
    /// Where discovery says a worker listens, as `host:port`.
    Endpoint,
    "endpoint"
);

impl fmt::Display for QueryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for QueryId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        const BAD: BadId = BadId::Form { kind: "query id", form: "32 lower-case hex digits" };
        let lower_hex = |b: u8| matches!(b, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 32 || !text.bytes().all(lower_hex) {
            return Err(BAD);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| BAD)
    }
}

impl fmt::Display for WorkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.query, self.item)
    }
}

impl FromStr for WorkId {
    type Err = BadId;

    fn from_str(text: &str) -> Result<Self, BadId> {
        const BAD: BadId =
            BadId::Form { kind: "work id", form: "query id, a hyphen, a decimal number" };
        let (query, item) = text.split_once('-').ok_or(BAD)?;
        let canonical = item == "0" || !item.starts_with('0');
        if !canonical || !item.bytes().all(|b| b.is_ascii_digit()) {
            return Err(BAD);
        }
        Ok(Self { query: query.parse()?, item: item.parse().map_err(|_| BAD)? })
    }
}

impl Attempt {
    /// The first attempt of every work item.
    pub const FIRST: Self = Self(1);

    /// The attempt after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

macro_rules! debug_as_display {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

debug_as_display!(QueryId, WorkId, SessionId, RunId);

impl fmt::Display for Attempt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_id_reads_back_what_it_prints() {
        let id = WorkId { query: QueryId(0xfeed), item: 17 };
        assert_eq!(id.to_string(), "0000000000000000000000000000feed-17");
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(format!("{id:?}"), id.to_string());
    }

    #[test]
    fn only_the_one_spelling_of_an_id_is_taken() {
        let query = QueryId(7).to_string();
        for bad in ["", "7", "../../etc/passwd", &query.to_uppercase().replace('0', "A"), "-1"] {
            assert!(bad.parse::<WorkId>().is_err(), "{bad}");
        }
        for item in ["", "+1", "01", "1x", "4294967296", "-1"] {
            assert!(format!("{query}-{item}").parse::<WorkId>().is_err(), "{item}");
        }
        assert!(format!("{query}-0").parse::<WorkId>().is_ok());
    }

    #[test]
    fn names_are_short_and_plain() {
        assert!(WorkerId::new("worker-3.pool:9001").is_ok());
        assert!(matches!(WorkerId::new(""), Err(BadId::Length { len: 0, .. })));
        assert!(matches!(WorkerId::new(&"x".repeat(254)), Err(BadId::Length { .. })));
        assert!(matches!(TenantId::new("a/b"), Err(BadId::Character { found: '/', .. })));
        let name: Result<Endpoint, _> = Arc::<str>::from("[::1]:9001").try_into();
        assert_eq!(Arc::<str>::from(name.unwrap()).as_ref(), "[::1]:9001");
    }
}
