//! The answer to a query, in the shapes Prometheus has for it.

use crate::annotation::Annotations;
use crate::labels::Labels;
use crate::value_type::ValueType;

/// What a query is worth, and what there is to say besides.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The values.
    pub data: Data,
    /// Warnings and infos.
    pub annotations: Annotations,
}

/// The values of an answer.
#[derive(Clone, Debug)]
pub enum Data {
    /// A number at an instant.
    Scalar {
        /// The instant, in milliseconds.
        t: i64,
        /// The number.
        value: f64,
    },
    /// A string at an instant.
    String {
        /// The instant, in milliseconds.
        t: i64,
        /// The string.
        bytes: Vec<u8>,
    },
    /// Series with one value each, in the order asked for, else by labels.
    Vector {
        /// The instant, in milliseconds.
        t: i64,
        /// The series.
        series: Vec<(Labels, f64)>,
    },
    /// Series with values over time, by labels.
    Matrix(Vec<Points>),
}

/// A series with its values over time.
#[derive(Clone, Debug, Default)]
pub struct Points {
    /// Its labels.
    pub labels: Labels,
    /// Instants in milliseconds, rising.
    pub ts: Vec<i64>,
    /// As many values.
    pub values: Vec<f64>,
}

impl Data {
    /// The type of the values.
    pub const fn value_type(&self) -> ValueType {
        match self {
            Self::Scalar { .. } => ValueType::Scalar,
            Self::String { .. } => ValueType::String,
            Self::Vector { .. } => ValueType::Vector,
            Self::Matrix(_) => ValueType::Matrix,
        }
    }

    /// Whether two answers are the same to the last bit, the order of their series included.
    pub fn same_bits(&self, other: &Self) -> bool {
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits();
        match (self, other) {
            (Self::Scalar { t, value }, Self::Scalar { t: t2, value: value2 }) => {
                t == t2 && same(*value, *value2)
            }
            (Self::String { t, bytes }, Self::String { t: t2, bytes: bytes2 }) => {
                t == t2 && bytes == bytes2
            }
            (Self::Vector { t, series }, Self::Vector { t: t2, series: series2 }) => {
                t == t2
                    && series.len() == series2.len()
                    && series.iter().zip(series2).all(|(a, b)| a.0 == b.0 && same(a.1, b.1))
            }
            (Self::Matrix(one), Self::Matrix(other)) => {
                one.len() == other.len()
                    && one.iter().zip(other).all(|(a, b)| {
                        a.labels == b.labels
                            && a.ts == b.ts
                            && a.values.iter().zip(&b.values).all(|(a, b)| same(*a, *b))
                    })
            }
            _ => false,
        }
    }
}
