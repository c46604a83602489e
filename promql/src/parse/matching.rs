//! What stands between an operator and its right operand: `bool`, `on`, `ignoring`, `group_left`,
//! `group_right`, `fill`; and lists of label names.

use super::cursor::{Cursor, Fault, Parsed};
use crate::expr::{Cardinality, FillValues, MatchingLabels, Sign, VectorMatching};
use crate::op::BinaryOp;
use crate::quote::{quoted, unquoted};
use crate::token::{Keyword, Kind};

/// Everything an operator may be modified by.
#[derive(Debug, Default)]
pub(super) struct BinaryModifiers {
    pub(super) return_bool: bool,
    pub(super) matching: VectorMatching,
}

impl Cursor<'_> {
    pub(super) fn binary_modifiers(&mut self) -> Parsed<BinaryModifiers> {
        let mut modifiers = BinaryModifiers {
            return_bool: self.take_if(Kind::Keyword(Keyword::Bool))?,
            ..BinaryModifiers::default()
        };
        let matching = &mut modifiers.matching;
        let labels = match self.peek()? {
            Kind::Keyword(Keyword::On) => Some(MatchingLabels::On as fn(_) -> _),
            Kind::Keyword(Keyword::Ignoring) => Some(MatchingLabels::Ignoring as fn(_) -> _),
            _ => None,
        };
        if let Some(labels) = labels {
            self.take()?;
            matching.labels = labels(self.label_names()?);
            self.grouping_side(matching)?;
        }
        matching.fill = self.fill_values()?;
        Ok(modifiers)
    }

    /// `group_left` or `group_right`, which go with `on` or `ignoring` only.
    fn grouping_side(&mut self, matching: &mut VectorMatching) -> Parsed<()> {
        matching.cardinality = match self.peek()? {
            Kind::Keyword(Keyword::GroupLeft) => Cardinality::ManyToOne,
            Kind::Keyword(Keyword::GroupRight) => Cardinality::OneToMany,
            _ => return Ok(()),
        };
        self.take()?;
        // A parenthesis here always opens the labels, never the right operand.
        let ahead = self.peek()?;
        if ahead == Kind::LeftParen || !ahead.begins_expression() {
            matching.include = self.label_names()?;
        }
        Ok(())
    }

    /// `fill`, or one or both of `fill_left` and `fill_right` in any order.
    fn fill_values(&mut self) -> Parsed<FillValues> {
        let mut fill = FillValues::default();
        match self.peek()? {
            Kind::Keyword(Keyword::Fill) => {
                fill.left = Some(self.fill_value()?);
                fill.right = fill.left;
            }
            Kind::Keyword(Keyword::FillLeft) => {
                fill.left = Some(self.fill_value()?);
                if self.peek()? == Kind::Keyword(Keyword::FillRight) {
                    fill.right = Some(self.fill_value()?);
                }
            }
            Kind::Keyword(Keyword::FillRight) => {
                fill.right = Some(self.fill_value()?);
                if self.peek()? == Kind::Keyword(Keyword::FillLeft) {
                    fill.left = Some(self.fill_value()?);
                }
            }
            _ => {}
        }
        Ok(fill)
    }

    /// The keyword ahead and the number in parentheses after it.
    fn fill_value(&mut self) -> Parsed<f64> {
        self.take()?;
        self.expect(Kind::LeftParen)?;
        let value = self.signed_number()?;
        self.expect(Kind::RightParen)?;
        Ok(value)
    }

    /// A number with or without a sign.
    pub(super) fn signed_number(&mut self) -> Parsed<f64> {
        let sign = match self.peek()? {
            Kind::Operator(BinaryOp::Add) => Some(Sign::Plus),
            Kind::Operator(BinaryOp::Sub) => Some(Sign::Minus),
            _ => None,
        };
        if sign.is_some() {
            self.take()?;
        }
        if !matches!(self.peek()?, Kind::Number | Kind::Duration) {
            return Err(Fault::Unexpected);
        }
        let value = self.number()?.value;
        Ok(if sign == Some(Sign::Minus) { -value } else { value })
    }

    /// Label names in parentheses, with a comma allowed after the last.
    pub(super) fn label_names(&mut self) -> Parsed<Vec<String>> {
        const CONTEXT: &str = "grouping opts";
        let open = self.expect(Kind::LeftParen);
        self.within(CONTEXT, "\"(\"", open)?;
        let mut names = Vec::new();
        while !self.take_if(Kind::RightParen)? {
            let name = self.label_name();
            names.push(self.within(CONTEXT, "label", name)?);
            match self.peek()? {
                Kind::Comma => {
                    self.take()?;
                }
                Kind::RightParen => {}
                _ => return Err(self.unexpected(CONTEXT, "\",\" or \")\"")),
            }
        }
        Ok(names)
    }

    fn label_name(&mut self) -> Parsed<String> {
        let kind = self.peek()?;
        if kind.may_name_a_label() {
            let token = self.take()?;
            return Ok(self.text_of(token).to_owned());
        }
        if kind != Kind::String {
            return Err(Fault::Unexpected);
        }
        let token = self.take()?;
        let bytes = unquoted(self.text_of(token));
        match String::from_utf8(bytes) {
            Ok(name) if !name.is_empty() => Ok(name),
            name => {
                let bytes = name.map_or_else(|error| error.into_bytes(), String::into_bytes);
                let message = format!("invalid label name for grouping: {}", quoted(&bytes));
                Err(self.refused(token.span, message))
            }
        }
    }
}
