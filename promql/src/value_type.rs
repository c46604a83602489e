//! The types of values in the language and their names.

use std::fmt;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ValueType {
    /// A number.
    Scalar,
    /// A string.
    String,
    /// Series with one sample each: an instant vector.
    Vector,
    /// Series with a window of samples each: a range vector.
    Matrix,
}

impl ValueType {
    /// The type of an operator's result.
    pub const fn of_binary(lhs: Self, rhs: Self) -> Self {
        match (lhs, rhs) {
            (Self::Scalar, Self::Scalar) => Self::Scalar,
            _ => Self::Vector,
        }
    }

    /// The name in Prometheus' answers: `vector`, `matrix`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scalar => "scalar",
            Self::String => "string",
            Self::Vector => "vector",
            Self::Matrix => "matrix",
        }
    }

    /// The name in Prometheus' documentation and in most error messages: `instant vector`.
    pub const fn documented_name(self) -> &'static str {
        match self {
            Self::Vector => "instant vector",
            Self::Matrix => "range vector",
            Self::Scalar | Self::String => self.name(),
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
