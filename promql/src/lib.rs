//! PromQL: text → tree → text, and text → answer. [`parse()`] makes a tree of a text and checks its
//! types; [`plan()`] makes of it leaves, which run where the samples are, and a tree of what is done
//! with their values; a [`leaf::LeafRun`] makes a part of the samples of one cell, and [`EvalFlow`] the
//! answer of all parts. Under it lie exact sums, range functions over the samples of one series and the
//! states in which windows cross the edge of a cell.
//!
//! Pure: no clock, no randomness, no async, no I/O. Accepts what Prometheus accepts and refuses what
//! it refuses, in the same words and at the same place; limits of ours are errors of their own kind.
//! Never panics and never runs out of stack, whatever the text. Knows nothing of where
//! samples are kept.
//!
//! Differences from Prometheus, all on purpose:
//!
//! - Matchers, metric names and the labels of series must be UTF-8, since labels are. String
//!   literals elsewhere may hold any bytes.
//! - A range or step below a millisecond, and a duration that is not a number, are refused.
//!   Prometheus lets them through and computes nonsense.
//! - A time after `@` beyond what milliseconds of 64 bits can hold is clamped.
//! - Matchers are kept in the order they are printed.
//! - What is printed reads back as the same tree; see `print` for where Prometheus' does not.
//!
//! ```
//! use tributary_promql::{Options, parse};
//!
//! let expr = parse("sum(rate(http_requests_total{job='api'}[5m])) by (code)", &Options::default())?;
//! assert_eq!(expr.to_string(), r#"sum by (code) (rate(http_requests_total{job="api"}[5m]))"#);
//!
//! let error = parse("rate(foo)", &Options::default()).unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     r#"1:6: parse error: expected type range vector in call to function "rate", got instant vector"#
//! );
//! # Ok::<(), tributary_promql::ParseError>(())
//! ```

pub mod aggregate;
pub mod annotation;
pub mod answer;
pub mod bytes;
mod calendar;
mod check;
pub mod deviation;
pub mod duration;
pub mod duration_expr;
mod error;
pub mod eval;
pub mod exact;
pub mod expr;
pub mod features;
pub mod flow;
pub mod frame;
pub mod functions;
pub mod labels;
pub mod leaf;
mod lex;
mod limits;
pub mod matcher;
mod number;
pub mod op;
mod options;
mod parse;
pub mod pattern;
mod plan;
mod pretty;
mod print;
pub mod quote;
pub mod span;
mod token;
mod value_type;
pub mod window;

pub use answer::{Answer, Data, Points};
pub use error::{ErrorKind, ParseError};
pub use expr::Expr;
pub use features::{Features, Limits, Options};
pub use flow::{EvalFlow, FlowChunk, Gathered};
pub use labels::{DuplicateLabel, Labels};
pub use limits::EvalLimits;
pub use matcher::Matcher;
pub use options::EvalOptions;
pub use parse::{
    STALE_BITS, SeriesDescription, SeriesItem, SeriesValue, parse, parse_selector, parse_series,
};
pub use plan::{Plan, PlannedLeaf, QuerySpec, Reach, plan};
pub use value_type::ValueType;
