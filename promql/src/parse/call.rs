//! Calls of functions and aggregations.

use super::cursor::{Cursor, Fault, Node, Parsed};
use crate::expr::{Aggregate, Call, Expr, Grouping};
use crate::functions::function_named;
use crate::op::{AggregateOp, Binding};
use crate::pattern::CapturingPattern;
use crate::quote::quoted;
use crate::span::Span;
use crate::token::{Keyword, Kind, Token};

/// Arguments and the height of the highest.
struct Arguments {
    exprs: Vec<Expr>,
    height: usize,
}

impl Cursor<'_> {
    /// A call of the function whose name is read.
    pub(super) fn call(&mut self, name: Token) -> Parsed<Node> {
        let arguments = self.arguments()?;
        let text = self.text_of(name);
        let Some(function) = function_named(text) else {
            let message = format!("unknown function with name {}", quoted(text.as_bytes()));
            return Err(self.refused(name.span, message));
        };
        if function.experimental && !self.options.features.experimental_functions {
            let message = format!("function {} is not enabled", quoted(text.as_bytes()));
            return Err(self.refused(name.span, message));
        }
        let span = Span::new(name.span.start, self.taken_end);
        if function.name == "label_replace"
            && let Some(Expr::String(pattern)) = arguments.exprs.get(4).map(Expr::without_parens)
        {
            // Whether it is a pattern at all is found out when it is used, as in Prometheus.
            let most = self.options.limits.max_pattern_size;
            let text = str::from_utf8(&pattern.bytes).unwrap_or_default();
            if let Ok(pattern) = CapturingPattern::parse(text, most) {
                self.count_pattern(span, pattern.size())?;
            }
        }
        let expr = Expr::Call(Call { function, args: arguments.exprs, span });
        Ok(Node { expr, height: self.above(arguments.height)? })
    }

    /// An aggregation whose name is read.
    pub(super) fn aggregate(&mut self, name: Token, op: AggregateOp) -> Parsed<Node> {
        let parsed = self.aggregate_parts();
        let (grouping, arguments) = self.within("aggregation", "", parsed)?;
        let span = Span::new(name.span.start, self.taken_end);
        let height = self.above(arguments.height)?;
        let mut args = arguments.exprs;
        let refused = |message: String| Err(self.refused(span, message));
        if args.is_empty() {
            return refused("no arguments for aggregate expression provided".to_owned());
        }
        if op.is_experimental() && !self.options.features.experimental_functions {
            return refused(format!(
                "{op}() is experimental and must be enabled with \
                 --enable-feature=promql-experimental-functions"
            ));
        }
        let wanted = if op.has_parameter() { 2 } else { 1 };
        if args.len() != wanted {
            return refused(format!(
                "wrong number of arguments for aggregate expression provided, \
                 expected {wanted}, got {}",
                args.len()
            ));
        }
        let expr = Box::new(args.pop().expect("there are one or two arguments"));
        let param = args.pop().map(Box::new);
        let expr = Expr::Aggregate(Aggregate { op, param, expr, grouping, span });
        Ok(Node { expr, height })
    }

    /// `by` and `without` stand before the arguments or after them.
    fn aggregate_parts(&mut self) -> Parsed<(Grouping, Arguments)> {
        if let Some(grouping) = self.grouping()? {
            return Ok((grouping, self.arguments()?));
        }
        let arguments = self.arguments()?;
        let grouping = self.grouping()?.unwrap_or_default();
        Ok((grouping, arguments))
    }

    fn grouping(&mut self) -> Parsed<Option<Grouping>> {
        let group = match self.peek()? {
            Kind::Keyword(Keyword::By) => Grouping::By,
            Kind::Keyword(Keyword::Without) => Grouping::Without,
            _ => return Ok(None),
        };
        self.take()?;
        Ok(Some(group(self.label_names()?)))
    }

    fn arguments(&mut self) -> Parsed<Arguments> {
        self.expect(Kind::LeftParen)?;
        let mut arguments = Arguments { exprs: Vec::new(), height: 0 };
        if self.take_if(Kind::RightParen)? {
            return Ok(arguments);
        }
        loop {
            let most = self.options.limits.max_arguments;
            let Node { expr, height } = self.expression(Binding::Or)?;
            if arguments.exprs.len() == most {
                let message = format!("a call has more than {most} arguments");
                return Err(self.beyond_limit(expr.span(), message));
            }
            arguments.exprs.push(expr);
            arguments.height = arguments.height.max(height);
            match self.peek()? {
                Kind::Comma => {
                    let comma = self.take()?;
                    if !self.peek()?.begins_expression() {
                        let message = "trailing commas not allowed in function call args";
                        return Err(self.refused(comma.span, message));
                    }
                }
                Kind::RightParen => {
                    self.take()?;
                    return Ok(arguments);
                }
                _ => return Err(Fault::Unexpected),
            }
        }
    }
}
