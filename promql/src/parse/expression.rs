//! Operators and their operands.

use super::cursor::{Cursor, Fault, Node, Parsed};
use crate::duration::PromDuration;
use crate::expr::{Binary, Expr, Number, Paren, Sign, StringLiteral, Unary};
use crate::number::parse_number;
use crate::op::{BinaryOp, Binding};
use crate::quote::{quoted, unquoted};
use crate::span::Span;
use crate::token::{Keyword, Kind, Token};

impl Cursor<'_> {
    /// An expression whose operators bind at least as tightly as `loosest`.
    pub(super) fn expression(&mut self, loosest: Binding) -> Parsed<Node> {
        self.nested(|cursor| {
            let mut left = cursor.operand()?;
            while let Kind::Operator(op) = cursor.peek()?
                && op.binding() >= loosest
            {
                cursor.take()?;
                left = cursor.binary(left, op)?;
            }
            Ok(left)
        })
    }

    /// What follows an operator whose left operand is read.
    fn binary(&mut self, left: Node, op: BinaryOp) -> Parsed<Node> {
        let modifiers = self.binary_modifiers()?;
        let right = self.expression(op.binding().of_right_operand())?;
        let height = self.above(left.height.max(right.height))?;
        let fills = !modifiers.matching.fill.is_empty();
        let expr = Expr::Binary(Box::new(Binary {
            op,
            lhs: left.expr,
            rhs: right.expr,
            return_bool: modifiers.return_bool,
            matching: Some(modifiers.matching),
        }));
        if fills && !self.options.features.fill_modifiers {
            let message = "binop fill modifiers are experimental and not enabled";
            return Err(self.refused(expr.span(), message));
        }
        Ok(Node { expr, height })
    }

    fn operand(&mut self) -> Parsed<Node> {
        match self.peek()? {
            Kind::Operator(BinaryOp::Add) => self.signed_operand(Sign::Plus),
            Kind::Operator(BinaryOp::Sub) => self.signed_operand(Sign::Minus),
            _ => {
                let node = self.plain_operand()?;
                self.modified(node)
            }
        }
    }

    /// An operand with a sign, which binds like a product: only a power binds tighter.
    fn signed_operand(&mut self, sign: Sign) -> Parsed<Node> {
        let start = self.take()?.span.start;
        let Node { expr, height } = self.expression(Binding::Power)?;
        if let Expr::Number(number) = expr {
            let expr = Expr::Number(number.signed(sign, start));
            return Ok(Node { expr, height });
        }
        let span = Span::new(start, expr.span().end);
        let expr = Expr::Unary(Unary { sign, expr: Box::new(expr), span });
        Ok(Node { expr, height: self.above(height)? })
    }

    fn plain_operand(&mut self) -> Parsed<Node> {
        let leaf = |expr| Ok(Node { expr, height: 1 });
        match self.peek()? {
            Kind::Number | Kind::Duration => leaf(Expr::Number(self.number()?)),
            Kind::String => {
                let token = self.take()?;
                let bytes = unquoted(self.text_of(token));
                leaf(Expr::String(StringLiteral { bytes, span: token.span }))
            }
            Kind::LeftParen => self.paren(),
            Kind::LeftBrace => leaf(Expr::Vector(Box::new(self.selector(None)?))),
            Kind::Aggregator(op) => {
                let name = self.take()?;
                match self.peek()? {
                    Kind::LeftParen | Kind::Keyword(Keyword::By | Keyword::Without) => {
                        self.aggregate(name, op)
                    }
                    _ => leaf(Expr::Vector(Box::new(self.selector(Some(name))?))),
                }
            }
            Kind::Identifier | Kind::Preprocessor(_) => {
                let name = self.take()?;
                match self.peek()? {
                    Kind::LeftParen => self.call(name),
                    _ => leaf(Expr::Vector(Box::new(self.selector(Some(name))?))),
                }
            }
            kind if kind.may_name_a_metric() => {
                let name = self.take()?;
                leaf(Expr::Vector(Box::new(self.selector(Some(name))?)))
            }
            _ => Err(Fault::Unexpected),
        }
    }

    fn paren(&mut self) -> Parsed<Node> {
        let open = self.take()?;
        let Node { expr, height } = self.expression(Binding::Or)?;
        let close = self.expect(Kind::RightParen)?;
        let expr = Expr::Paren(Paren { expr: Box::new(expr), span: open.span.to(close.span) });
        Ok(Node { expr, height: self.above(height)? })
    }

    /// A number or a duration, which is a number of seconds.
    pub(super) fn number(&mut self) -> Parsed<Number> {
        let token = self.take()?;
        let (value, is_duration) = match token.kind {
            Kind::Number => (self.number_value(token)?, false),
            Kind::Duration => (self.duration_value(token)?, true),
            _ => return Err(Fault::Unexpected),
        };
        Ok(Number { value, is_duration, span: token.span })
    }

    fn number_value(&self, token: Token) -> Parsed<f64> {
        let text = self.text_of(token);
        parse_number(text).map_err(|fault| {
            let (text, fault) = (quoted(text.as_bytes()), fault.words());
            let message =
                format!("error parsing number: strconv.ParseFloat: parsing {text}: {fault}");
            self.refused(token.span, message)
        })
    }

    fn duration_value(&self, token: Token) -> Parsed<f64> {
        PromDuration::parse(self.text_of(token))
            .map(PromDuration::as_seconds)
            .map_err(|fault| self.refused(token.span, fault.to_string()))
    }
}

impl Number {
    /// The number with a sign that stands at `start`.
    pub(super) fn signed(self, sign: Sign, start: usize) -> Self {
        let value = match sign {
            Sign::Plus => self.value,
            Sign::Minus => -self.value,
        };
        Self { value, span: Span::new(start, self.span.end), ..self }
    }
}
