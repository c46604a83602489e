//! Arithmetic where a duration is expected: between brackets and after `offset`.

use super::cursor::{Cursor, Fault, Parsed};
use crate::duration::{PromDuration, is_in_range};
use crate::duration_expr::{DurationExpr, DurationOp, DurationValue, Pick};
use crate::expr::{Number, Sign};
use crate::op::{BinaryOp, Binding};
use crate::span::Span;
use crate::token::{Kind, Preprocessor, Token};

/// Arithmetic on durations and its height.
struct DurationNode {
    expr: DurationExpr,
    height: usize,
}

impl Cursor<'_> {
    /// A duration between brackets, which is above zero.
    pub(super) fn positive_duration(&mut self) -> Parsed<DurationValue> {
        let expr = self.duration(Binding::Or)?.expr;
        // More is known only when the query's step and range are.
        if let DurationExpr::Number(number) = &expr {
            let duration = self.fixed(number)?;
            if duration <= PromDuration::ZERO {
                return Err(self.refused(number.span, "duration must be greater than 0"));
            }
            return Ok(DurationValue::Fixed(duration));
        }
        Ok(DurationValue::Computed(Box::new(expr)))
    }

    /// A duration after `offset`; none if it is zero.
    ///
    /// Without parentheses it is short, so that `foo offset 5m + bar` and `foo offset -2 ^ 2` mean
    /// `(foo offset 5m) + bar` and `(foo offset -2) ^ 2`. Prometheus' grammar lets arithmetic go on
    /// after a parenthesis and after two signs, though, and so does this.
    pub(super) fn offset_duration(&mut self) -> Parsed<Option<DurationValue>> {
        let expr = match self.peek()? {
            Kind::Number | Kind::Duration => DurationExpr::Number(self.duration_number()?),
            Kind::Operator(BinaryOp::Add) => self.signed_offset(Sign::Plus)?,
            Kind::Operator(BinaryOp::Sub) => self.signed_offset(Sign::Minus)?,
            Kind::Preprocessor(_) => self.duration_word(None)?.expr,
            Kind::LeftParen => {
                let left = self.duration_paren()?;
                self.duration_operators(left, Binding::Or)?.expr
            }
            _ => return Err(Fault::Unexpected),
        };
        if let DurationExpr::Number(number) = &expr {
            let duration = self.fixed(number)?;
            let is_set = duration != PromDuration::ZERO;
            return Ok(is_set.then_some(DurationValue::Fixed(duration)));
        }
        Ok(Some(DurationValue::Computed(Box::new(readable_after_offset(expr)))))
    }

    fn signed_offset(&mut self, sign: Sign) -> Parsed<DurationExpr> {
        let token = self.take()?;
        match self.peek()? {
            Kind::Number | Kind::Duration => {
                let number = self.number()?;
                Ok(DurationExpr::Number(self.signed_duration(number, sign, token)?))
            }
            Kind::Preprocessor(_) => {
                let word = self.duration_word(Some(token))?.expr;
                Ok(word.signed(sign, token))
            }
            Kind::LeftParen => {
                // Prometheus asks for no feature here, unlike for other parentheses.
                let (_, inner, _) = self.between_parens()?;
                let start = inner.expr.span().start;
                Ok(inner.expr.parenthesised(start).signed(sign, token))
            }
            _ => {
                let left = self.signed_operand_of_duration(sign, token)?;
                Ok(self.duration_operators(left, Binding::Or)?.expr)
            }
        }
    }

    /// Arithmetic whose operators bind at least as tightly as `loosest`.
    fn duration(&mut self, loosest: Binding) -> Parsed<DurationNode> {
        self.nested(|cursor| {
            let left = cursor.duration_operand()?;
            cursor.duration_operators(left, loosest)
        })
    }

    /// What follows the first operand.
    fn duration_operators(
        &mut self,
        mut left: DurationNode,
        loosest: Binding,
    ) -> Parsed<DurationNode> {
        while let Kind::Operator(operator) = self.peek()?
            && operator.binding() >= loosest
            && let Some(op) = DurationOp::of(operator)
        {
            let token = self.take()?;
            let right = self.duration(operator.binding().of_right_operand())?;
            self.ask_for_arithmetic(left.expr.span())?;
            if let DurationExpr::Number(number) = right.expr
                && number.value == 0.0
            {
                match op {
                    DurationOp::Div => return Err(self.refused(token.span, "division by zero")),
                    DurationOp::Mod => return Err(self.refused(token.span, "modulo by zero")),
                    _ => {}
                }
            }
            let height = self.above(left.height.max(right.height))?;
            let (one, other) = (Box::new(left.expr), Box::new(right.expr));
            let expr = DurationExpr::Binary { op, left: one, right: other };
            left = DurationNode { expr, height };
        }
        Ok(left)
    }

    fn duration_operand(&mut self) -> Parsed<DurationNode> {
        match self.peek()? {
            Kind::Number | Kind::Duration => {
                let expr = DurationExpr::Number(self.duration_number()?);
                Ok(DurationNode { expr, height: 1 })
            }
            Kind::Operator(BinaryOp::Add) => {
                let token = self.take()?;
                self.signed_operand_of_duration(Sign::Plus, token)
            }
            Kind::Operator(BinaryOp::Sub) => {
                let token = self.take()?;
                self.signed_operand_of_duration(Sign::Minus, token)
            }
            Kind::Preprocessor(_) => self.duration_word(None),
            Kind::LeftParen => self.duration_paren(),
            _ => Err(Fault::Unexpected),
        }
    }

    /// An operand whose sign is read, which binds like a product.
    fn signed_operand_of_duration(&mut self, sign: Sign, token: Token) -> Parsed<DurationNode> {
        let DurationNode { expr, height } = self.duration(Binding::Power)?;
        if let DurationExpr::Number(number) = expr {
            let number = self.signed_duration(number, sign, token)?;
            return Ok(DurationNode { expr: DurationExpr::Number(number), height });
        }
        let height = self.above(height)?;
        Ok(DurationNode { expr: expr.signed(sign, token), height })
    }

    /// `step()`, `range()`, `max_of(…, …)` or `min_of(…, …)`, with a sign that is read already.
    fn duration_word(&mut self, sign: Option<Token>) -> Parsed<DurationNode> {
        let word = self.take()?;
        let start = sign.unwrap_or(word).span.start;
        let pick = match word.kind {
            Kind::Preprocessor(Preprocessor::MaxOf) => Pick::Max,
            Kind::Preprocessor(Preprocessor::MinOf) => Pick::Min,
            Kind::Preprocessor(Preprocessor::Step) => {
                let span = self.empty_call(word, start)?;
                return Ok(DurationNode { expr: DurationExpr::Step(span), height: 1 });
            }
            Kind::Preprocessor(Preprocessor::Range) => {
                let span = self.empty_call(word, start)?;
                return Ok(DurationNode { expr: DurationExpr::Range(span), height: 1 });
            }
            _ => return Err(Fault::Unexpected),
        };
        self.expect(Kind::LeftParen)?;
        let left = self.duration(Binding::Or)?;
        self.expect(Kind::Comma)?;
        let right = self.duration(Binding::Or)?;
        self.expect(Kind::RightParen)?;
        let height = self.above(left.height.max(right.height))?;
        let (one, other) = (Box::new(left.expr), Box::new(right.expr));
        let expr = DurationExpr::Pick { pick, left: one, right: other };
        let asked = if sign.is_some() { Span::new(start, self.taken_end) } else { expr.span() };
        self.ask_for_arithmetic(asked)?;
        Ok(DurationNode { expr, height })
    }

    fn empty_call(&mut self, word: Token, start: usize) -> Parsed<Span> {
        self.expect(Kind::LeftParen)?;
        let close = self.expect(Kind::RightParen)?;
        self.ask_for_arithmetic(Span::new(start, close.span.end))?;
        Ok(word.span.to(close.span))
    }

    fn duration_paren(&mut self) -> Parsed<DurationNode> {
        let (open, inner, height) = self.between_parens()?;
        self.ask_for_arithmetic(inner.expr.span())?;
        let expr = inner.expr.parenthesised(open.span.start);
        Ok(DurationNode { expr, height })
    }

    fn between_parens(&mut self) -> Parsed<(Token, DurationNode, usize)> {
        let open = self.expect(Kind::LeftParen)?;
        let inner = self.duration(Binding::Or)?;
        self.expect(Kind::RightParen)?;
        let height = self.above(inner.height)?;
        Ok((open, inner, height))
    }

    fn duration_number(&mut self) -> Parsed<Number> {
        let number = self.number()?;
        self.fixed(&number)?;
        Ok(number)
    }

    fn signed_duration(&self, number: Number, sign: Sign, token: Token) -> Parsed<Number> {
        let number = number.signed(sign, token.span.start);
        if !is_in_range(number.value) {
            return Err(self.refused(token.span, "duration out of range"));
        }
        Ok(number)
    }

    /// The duration that is a number of seconds.
    fn fixed(&self, number: &Number) -> Parsed<PromDuration> {
        PromDuration::from_seconds(number.value)
            .ok_or_else(|| self.refused(number.span, "duration out of range"))
    }

    fn ask_for_arithmetic(&self, span: Span) -> Parsed<()> {
        if self.options.features.duration_expressions {
            return Ok(());
        }
        Err(self.refused(span, "experimental duration expression is not enabled"))
    }
}

impl DurationExpr {
    /// In parentheses that open at `start`; a second pair says nothing new.
    fn parenthesised(self, start: usize) -> Self {
        match self {
            Self::Paren { .. } => self,
            inner => Self::Paren { inner: Box::new(inner), start },
        }
    }

    /// With a sign. A plus says nothing new.
    fn signed(self, sign: Sign, token: Token) -> Self {
        match sign {
            Sign::Plus => self,
            Sign::Minus => Self::Negative { operand: Box::new(self), start: token.span.start },
        }
    }

    /// The operand the text begins with.
    fn first_operand(&self) -> &Self {
        match self {
            Self::Binary { left, .. } => left.first_operand(),
            operand => operand,
        }
    }

    /// Printed after `offset`, arithmetic that follows its first operand is part of it.
    pub(crate) fn goes_on(&self) -> bool {
        match self.first_operand() {
            Self::Paren { .. } => true,
            Self::Negative { operand, .. } => matches!(**operand, Self::Negative { .. }),
            _ => false,
        }
    }
}

/// Puts arithmetic into parentheses if, printed after `offset`, it would be cut short: signs that
/// say nothing new are not printed, and without them only the first operand would be the offset.
fn readable_after_offset(expr: DurationExpr) -> DurationExpr {
    if matches!(expr, DurationExpr::Binary { .. }) && !expr.goes_on() {
        let start = expr.span().start;
        return expr.parenthesised(start);
    }
    expr
}
