//! Text → tree, by recursive descent; operators by how tightly they bind. The first thing wrong ends
//! it, in the words and at the place Prometheus names. Prometheus' parser is generated from a
//! grammar; where that grammar is ambiguous, its choice is followed and a comment says so. Types
//! are checked afterwards, in `check`.
//!
//! One file per part of the language:
//!
//! | file | reads |
//! |---|---|
//! | `cursor` | tokens, with the limits and the errors |
//! | `expression` | operators and their operands |
//! | `call` | functions and aggregations |
//! | `matching` | `bool`, `on`, `group_left`, `fill`, and lists of labels |
//! | `selector` | names and matchers |
//! | `modifier` | what follows an operand: `[…]`, `offset`, `@`, `anchored` |
//! | `duration` | arithmetic where a duration is expected |
//! | `series` | descriptions of series, as test scripts have them |

mod call;
mod cursor;
mod duration;
mod expression;
mod matching;
mod modifier;
mod selector;
mod series;

use crate::check::check;
use crate::error::ParseError;
use crate::expr::Expr;
use crate::features::Options;
use crate::matcher::Matcher;
use crate::op::Binding;
use crate::span::Span;
use crate::token::Kind;
use cursor::{Cursor, Parsed};

pub use series::{STALE_BITS, SeriesDescription, SeriesItem, SeriesValue, parse_series};

/// Reads a query and checks its types.
pub fn parse(text: &str, options: &Options) -> Result<Expr, ParseError> {
    let mut cursor = Cursor::of_query(text, options)?;
    let parsed = cursor.whole_expression();
    let mut expr = cursor.finish(parsed)?;
    check(&mut expr, text)?;
    Ok(expr)
}

/// Reads one selector such as `foo{bar="baz"}` and gives its matchers, the name's among them. A
/// selector of everything is let through: whether that is allowed is the caller's to say.
pub fn parse_selector(text: &str, options: &Options) -> Result<Vec<Matcher>, ParseError> {
    let mut cursor = Cursor::of_query(text, options)?;
    let parsed = cursor.whole_selector();
    let mut matchers = cursor.finish(parsed)?;
    matchers.sort_by_cached_key(ToString::to_string);
    Ok(matchers)
}

impl Cursor<'_> {
    fn whole_expression(&mut self) -> Parsed<Expr> {
        if self.peek()? == Kind::End {
            return Err(self.refused(Span::default(), "no expression found in input"));
        }
        let node = self.expression(Binding::Or)?;
        self.expect(Kind::End)?;
        Ok(node.expr)
    }

    fn whole_selector(&mut self) -> Parsed<Vec<Matcher>> {
        let selector = self.lone_selector()?;
        self.expect(Kind::End)?;
        Ok(selector.matchers)
    }
}
