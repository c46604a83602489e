//! What follows an operand and belongs to it: ranges and subqueries in brackets, `offset`, `@`,
//! `anchored` and `smoothed`. All of these bind tighter than any operator.

use super::cursor::{Cursor, Node, Parsed};
use crate::duration_expr::DurationValue;
use crate::expr::{At, Expr, Extension, MatrixSelector, Subquery};
use crate::number::in_full;
use crate::span::Span;
use crate::token::{Keyword, Kind, Preprocessor};

/// The parts of a selector or a subquery that a modifier sets.
struct Target<'e> {
    offset: &'e mut Option<DurationValue>,
    at: &'e mut Option<At>,
    end: &'e mut usize,
}

/// The milliseconds of a second.
const MILLIS: f64 = 1_000.0;

impl Cursor<'_> {
    /// The operand with all that follows it.
    pub(super) fn modified(&mut self, mut node: Node) -> Parsed<Node> {
        loop {
            match self.peek()? {
                Kind::LeftBracket => node = self.bracket(node)?,
                Kind::Keyword(Keyword::Offset) => self.offset(&mut node.expr)?,
                Kind::At => self.at(&mut node.expr)?,
                Kind::Keyword(Keyword::Anchored) => {
                    self.extension(&mut node.expr, Extension::Anchored)?;
                }
                Kind::Keyword(Keyword::Smoothed) => {
                    self.extension(&mut node.expr, Extension::Smoothed)?;
                }
                _ => return Ok(node),
            }
        }
    }

    /// `[range]` or `[range:step]`.
    fn bracket(&mut self, node: Node) -> Parsed<Node> {
        let open = self.take()?;
        let range = self.positive_duration();
        let context = "subquery or range selector";
        let range = self.within(context, "number, duration, step(), or range()", range)?;
        match self.peek()? {
            Kind::RightBracket => {
                let close = self.take()?;
                self.matrix(node, range, open.span.to(close.span))
            }
            Kind::Colon => {
                self.take()?;
                let step = self.subquery_step()?;
                let span = Span::new(node.expr.span().start, self.taken_end);
                let height = self.above(node.height)?;
                let expr = Expr::Subquery(Box::new(Subquery {
                    expr: node.expr,
                    range,
                    step,
                    offset: None,
                    at: None,
                    span,
                }));
                Ok(Node { expr, height })
            }
            _ => Err(self.unexpected("subquery or range", "\":\" or \"]\"")),
        }
    }

    /// The step of a subquery, if it has one, and the closing bracket.
    fn subquery_step(&mut self) -> Parsed<Option<DurationValue>> {
        const CONTEXT: &str = "subquery selector";
        if self.take_if(Kind::RightBracket)? {
            return Ok(None);
        }
        let step = self.positive_duration();
        let expected = "number, duration, step(), range(), or \"]\"";
        let step = self.within(CONTEXT, expected, step)?;
        let close = self.expect(Kind::RightBracket);
        self.within(CONTEXT, "\"]\"", close)?;
        Ok(Some(step))
    }

    fn matrix(&self, node: Node, range: DurationValue, bracket: Span) -> Parsed<Node> {
        let refused = |message: &str| Err(self.refused(bracket, message));
        let Expr::Vector(vector) = node.expr else {
            return refused("ranges only allowed for vector selectors");
        };
        if vector.offset.is_some() {
            return refused("no offset modifiers allowed before range");
        }
        if vector.at.is_some() {
            return refused("no @ modifiers allowed before range");
        }
        let span = vector.span.to(bracket);
        let expr = Expr::Matrix(Box::new(MatrixSelector { vector: *vector, range, span }));
        Ok(Node { expr, height: node.height })
    }

    fn offset(&mut self, expr: &mut Expr) -> Parsed<()> {
        self.take()?;
        let offset = self.offset_duration();
        let offset = self.within("offset", "number, duration, step(), or range()", offset)?;
        let span = expr.span();
        let target = self.target(expr, "offset")?;
        // An offset of zero is no offset: it is not printed, and another one may follow.
        if target.offset.is_some() {
            return Err(self.refused(span, "offset may not be set multiple times"));
        }
        *target.offset = offset;
        *target.end = self.taken_end;
        Ok(())
    }

    fn at(&mut self, expr: &mut Expr) -> Parsed<()> {
        self.take()?;
        let time = self.time();
        let time = self.within("@", "timestamp", time)?;
        let span = expr.span();
        let at = match time {
            Time::At(at) => at,
            Time::Seconds(seconds) => self.timestamp(seconds, span)?,
        };
        let target = self.target(expr, "@")?;
        if target.at.is_some() {
            return Err(self.refused(span, "@ <timestamp> may not be set multiple times"));
        }
        *target.at = Some(at);
        *target.end = self.taken_end;
        Ok(())
    }

    fn time(&mut self) -> Parsed<Time> {
        let at = match self.peek()? {
            Kind::Preprocessor(Preprocessor::Start) => At::Start,
            Kind::Preprocessor(Preprocessor::End) => At::End,
            _ => return Ok(Time::Seconds(self.signed_number()?)),
        };
        self.take()?;
        self.expect(Kind::LeftParen)?;
        self.expect(Kind::RightParen)?;
        Ok(Time::At(at))
    }

    fn timestamp(&self, seconds: f64, span: Span) -> Parsed<At> {
        let bound = i64::MAX as f64;
        if seconds.is_nan() || seconds >= bound || seconds <= -bound {
            let printed =
                if seconds.is_finite() { format!("{seconds:.6}") } else { in_full(seconds) };
            let message = format!("timestamp out of bounds for @ modifier: {printed}");
            return Err(self.refused(span, message));
        }
        // Times beyond what milliseconds of 64 bits can hold are clamped: nothing is there.
        #[expect(clippy::cast_possible_truncation, reason = "the clamping is wanted")]
        let millis = (seconds * MILLIS).round() as i64;
        Ok(At::Timestamp(millis))
    }

    fn extension(&mut self, expr: &mut Expr, extension: Extension) -> Parsed<()> {
        self.take()?;
        let word = extension.text();
        let span = expr.span();
        let refused = |message: String| Err(self.refused(span, message));
        if !self.options.features.extended_range_selectors {
            return refused(format!("{word} modifier is experimental and not enabled"));
        }
        let vector = match expr {
            Expr::Vector(vector) => &mut **vector,
            Expr::Matrix(matrix) => &mut matrix.vector,
            Expr::Subquery(_) => {
                return refused(format!("{word} modifier is not supported for subqueries"));
            }
            _ => return refused(format!("{word} modifier not implemented")),
        };
        if vector.extension.is_some_and(|earlier| earlier != extension) {
            let message = "anchored and smoothed modifiers cannot be used together";
            return refused(message.to_owned());
        }
        // The span stays as it is: Prometheus counts neither word as part of the selector.
        vector.extension = Some(extension);
        Ok(())
    }

    fn target<'e>(&self, expr: &'e mut Expr, modifier: &str) -> Parsed<Target<'e>> {
        match expr {
            Expr::Vector(vector) => Ok(Target {
                offset: &mut vector.offset,
                at: &mut vector.at,
                end: &mut vector.span.end,
            }),
            Expr::Matrix(matrix) => Ok(Target {
                offset: &mut matrix.vector.offset,
                at: &mut matrix.vector.at,
                end: &mut matrix.span.end,
            }),
            Expr::Subquery(subquery) => Ok(Target {
                offset: &mut subquery.offset,
                at: &mut subquery.at,
                end: &mut subquery.span.end,
            }),
            other => {
                let message = format!(
                    "{modifier} modifier must be preceded by an instant vector selector or range \
                     vector selector or a subquery"
                );
                Err(self.refused(other.span(), message))
            }
        }
    }
}

/// What may follow an `@`.
enum Time {
    At(At),
    Seconds(f64),
}
