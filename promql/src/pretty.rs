//! Tree → text over several lines, as Prometheus formats queries: whatever is longer than a line in
//! its canonical form is broken up, its parts indented by one level more.

use crate::expr::Expr;
use crate::print::Follower;

/// Longer texts are broken up, in bytes.
const MAX_LINE: usize = 100;

const INDENT: &str = "  ";

impl Expr {
    /// The query over as many lines as it takes to keep them short. Reads back as the same tree.
    pub fn pretty(&self) -> String {
        self.pretty_at(0, Follower::Other)
    }

    fn pretty_at(&self, level: usize, follower: Follower) -> String {
        let indent = INDENT.repeat(level);
        let line = self.before(follower).to_string();
        let fits = line.len() <= MAX_LINE;
        match self {
            Self::Unary(unary) => {
                let operand = unary.expr.pretty_at(level, follower);
                format!("{indent}{}{}", unary.sign.text(), operand.trim())
            }
            // Prometheus forgets the indent here.
            Self::Subquery(_) if fits => line,
            Self::Subquery(subquery) => {
                let expr = subquery.expr.pretty_at(level, Follower::Other);
                match follower {
                    Follower::Other => format!("{expr}{}", subquery.suffix()),
                    Follower::Power | Follower::Arithmetic => {
                        format!("{expr}{:#}", subquery.suffix())
                    }
                }
            }
            Self::Aggregate(aggregate) if !fits => {
                let parts = aggregate.param.as_deref().into_iter().chain([&*aggregate.expr]);
                format!("{indent}{}(\n{}\n{indent})", aggregate.head(), lines(parts, level + 1))
            }
            Self::Binary(binary) if !fits => {
                let operator = binary.operator();
                let lhs = binary.lhs.pretty_at(level + 1, Follower::of(binary.op));
                let rhs = binary.rhs.pretty_at(level + 1, follower);
                format!("{lhs}\n{indent}{operator}\n{rhs}")
            }
            Self::Call(call) if !fits => {
                let args = lines(&call.args, level + 1);
                format!("{indent}{}(\n{args}\n{indent})", call.function.name)
            }
            Self::Paren(paren) if !fits => {
                let inner = paren.expr.pretty_at(level + 1, Follower::Other);
                format!("{indent}(\n{inner}\n{indent})")
            }
            _ => format!("{indent}{line}"),
        }
    }
}

/// The parts, each on lines of its own.
fn lines<'e>(parts: impl IntoIterator<Item = &'e Expr>, level: usize) -> String {
    let parts = parts.into_iter().map(|part| part.pretty_at(level, Follower::Other));
    parts.collect::<Vec<_>>().join(",\n")
}
