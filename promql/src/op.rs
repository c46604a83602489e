//! The operators of the language and what kind each is: between two operands, and over a vector.
//! What they compute is left to evaluation.

use std::fmt;

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `^`
    Pow,
    /// `atan2`
    Atan2,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `</`, which keeps of a histogram what lies below a bound.
    TrimUpper,
    /// `>/`, which keeps of a histogram what lies above a bound.
    TrimLower,
    /// `and`
    And,
    /// `or`
    Or,
    /// `unless`
    Unless,
}

impl BinaryOp {
    /// The operator as it is printed.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Sub => "-",
            Self::Mul => "*",
            Self::Div => "/",
            Self::Mod => "%",
            Self::Pow => "^",
            Self::Atan2 => "atan2",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::TrimUpper => "</",
            Self::TrimLower => ">/",
            Self::And => "and",
            Self::Or => "or",
            Self::Unless => "unless",
        }
    }

    /// Compares its operands: filters, or answers 0 and 1 with `bool`.
    pub const fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::NotEqual
                | Self::Less
                | Self::LessOrEqual
                | Self::Greater
                | Self::GreaterOrEqual
        )
    }

    /// Works on sets of series, whatever their values.
    pub const fn is_set_operator(self) -> bool {
        matches!(self, Self::And | Self::Or | Self::Unless)
    }

    /// How tightly it binds; more is tighter.
    pub(crate) const fn binding(self) -> Binding {
        match self {
            Self::Or => Binding::Or,
            Self::And | Self::Unless => Binding::And,
            Self::Equal
            | Self::NotEqual
            | Self::Less
            | Self::LessOrEqual
            | Self::Greater
            | Self::GreaterOrEqual
            | Self::TrimUpper
            | Self::TrimLower => Binding::Comparison,
            Self::Add | Self::Sub => Binding::Sum,
            Self::Mul | Self::Div | Self::Mod | Self::Atan2 => Binding::Product,
            Self::Pow => Binding::Power,
        }
    }
}

impl fmt::Display for BinaryOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// How tightly an operator binds, loosest first. All but `Power` group to the left; a sign before
/// an operand binds like a product, so that `-a ^ b` is `-(a ^ b)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Binding {
    Or,
    And,
    Comparison,
    Sum,
    Product,
    Power,
    /// Tighter than any operator.
    Operand,
}

impl Binding {
    /// The loosest operator that may stand in the right operand.
    pub(crate) const fn of_right_operand(self) -> Self {
        match self {
            Self::Or => Self::And,
            Self::And => Self::Comparison,
            Self::Comparison => Self::Sum,
            Self::Sum => Self::Product,
            Self::Product | Self::Power => Self::Power,
            Self::Operand => Self::Operand,
        }
    }
}

/// An aggregation over the series of a vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AggregateOp {
    /// `avg`
    Avg,
    /// `bottomk`
    Bottomk,
    /// `count`
    Count,
    /// `count_values`
    CountValues,
    /// `group`
    Group,
    /// `limitk`
    Limitk,
    /// `limit_ratio`
    LimitRatio,
    /// `max`
    Max,
    /// `min`
    Min,
    /// `quantile`
    Quantile,
    /// `stddev`
    Stddev,
    /// `stdvar`
    Stdvar,
    /// `sum`
    Sum,
    /// `topk`
    Topk,
}

impl AggregateOp {
    /// The aggregation as it is printed.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Avg => "avg",
            Self::Bottomk => "bottomk",
            Self::Count => "count",
            Self::CountValues => "count_values",
            Self::Group => "group",
            Self::Limitk => "limitk",
            Self::LimitRatio => "limit_ratio",
            Self::Max => "max",
            Self::Min => "min",
            Self::Quantile => "quantile",
            Self::Stddev => "stddev",
            Self::Stdvar => "stdvar",
            Self::Sum => "sum",
            Self::Topk => "topk",
        }
    }

    /// Takes a parameter before the vector.
    pub const fn has_parameter(self) -> bool {
        matches!(
            self,
            Self::Bottomk
                | Self::CountValues
                | Self::Limitk
                | Self::LimitRatio
                | Self::Quantile
                | Self::Topk
        )
    }

    /// Is off until experimental functions are asked for.
    pub const fn is_experimental(self) -> bool {
        matches!(self, Self::Limitk | Self::LimitRatio)
    }
}

impl fmt::Display for AggregateOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}
