//! Other forms of a question: moved in time, and with parts taken away, to find the smallest one
//! that still shows a difference. Whether it does is for others to find out.

use tributary_promql::expr::{At, Grouping, MatrixSelector, VectorMatching, VectorSelector};
use tributary_promql::matcher::METRIC_NAME;
use tributary_promql::{Expr, Features, Options, ValueType, parse};

use super::grammar::{LOOKBACK_MS, Question, When};

/// What Prometheus 3.5 lets through when everything experimental is on.
pub fn options() -> Options {
    let features =
        Features { extended_range_selectors: false, fill_modifiers: false, ..Features::ALL };
    Options { features, ..Options::default() }
}

/// The tree of a question; none if it is refused.
pub fn tree(question: &Question) -> Option<Expr> {
    parse(&question.text, &options()).ok()
}

/// The question asked so many milliseconds later, the times it names included.
pub fn moved(question: &Question, by: i64) -> Question {
    let mut moved = question.clone();
    moved.when = question.when.moved(by);
    if let Some(mut expr) = tree(question).filter(|_| question.text.contains('@')) {
        move_times(&mut expr, by);
        moved.text = expr.to_string();
    }
    moved
}

fn move_times(expr: &mut Expr, by: i64) {
    let at = match expr {
        Expr::Vector(vector) => &mut vector.at,
        Expr::Matrix(matrix) => &mut matrix.vector.at,
        Expr::Subquery(subquery) => &mut subquery.at,
        _ => &mut None,
    };
    if let Some(At::Timestamp(t)) = at {
        *t += by;
    }
    for child in expr.children_mut() {
        move_times(child, by);
    }
}

/// Smaller questions of the same kind, the smallest first.
pub fn smaller(question: &Question) -> Vec<Question> {
    let mut all = Vec::new();
    if question.lookback != LOOKBACK_MS {
        all.push(Question { lookback: LOOKBACK_MS, ..question.clone() });
    }
    if question.delayed_name_removal {
        all.push(Question { delayed_name_removal: false, ..question.clone() });
    }
    if let When::Range { .. } = question.when {
        all.extend(question.when.instants().into_iter().map(|t| at(question, t)));
    }
    let Some(expr) = tree(question) else { return all };
    let mut trees = Vec::new();
    descendants(&expr, &mut trees);
    trees.extend(variants(&expr));
    let instant = matches!(question.when, When::Instant(_));
    trees.retain(|tree| match tree.value_type() {
        ValueType::Vector | ValueType::Scalar => true,
        ValueType::Matrix | ValueType::String => instant,
    });
    let mut texts: Vec<String> = trees.iter().map(Expr::to_string).collect();
    texts.retain(|text| text.len() < question.text.len());
    texts.sort_by_key(String::len);
    texts.dedup();
    all.extend(texts.into_iter().map(|text| Question { text, ..question.clone() }));
    all
}

/// The question for one instant only.
pub fn at(question: &Question, t: i64) -> Question {
    Question { when: When::Instant(t), ..question.clone() }
}

fn descendants(expr: &Expr, into: &mut Vec<Expr>) {
    for child in expr.children() {
        into.push(child.clone());
        descendants(child, into);
    }
}

/// Trees with one thing less, here or further down.
fn variants(expr: &Expr) -> Vec<Expr> {
    let mut all: Vec<Expr> = Vec::new();
    let mut below = Vec::new();
    descendants(expr, &mut below);
    all.extend(below.into_iter().filter(|part| part.value_type() == expr.value_type()));
    all.extend(plainer(expr));
    for (index, child) in expr.children().into_iter().enumerate() {
        for variant in variants(child) {
            let mut changed = expr.clone();
            *changed.children_mut()[index] = variant;
            all.push(changed);
        }
    }
    all
}

/// The same expression with one of its own modifiers taken away.
fn plainer(expr: &Expr) -> Vec<Expr> {
    match expr {
        Expr::Vector(vector) => plainer_selector(vector)
            .into_iter()
            .map(|vector| Expr::Vector(Box::new(vector)))
            .collect(),
        Expr::Matrix(matrix) => plainer_selector(&matrix.vector)
            .into_iter()
            .map(|vector| Expr::Matrix(Box::new(MatrixSelector { vector, ..(**matrix).clone() })))
            .collect(),
        Expr::Subquery(subquery) => {
            let mut all = Vec::new();
            for change in 0..3 {
                let mut plainer = subquery.clone();
                match change {
                    0 => plainer.offset = None,
                    1 => plainer.at = None,
                    _ => plainer.step = None,
                }
                all.push(Expr::Subquery(plainer));
            }
            all
        }
        Expr::Aggregate(aggregate) => {
            let mut plainer = aggregate.clone();
            plainer.grouping = Grouping::default();
            vec![Expr::Aggregate(plainer)]
        }
        Expr::Binary(binary) => {
            let mut all = Vec::new();
            if binary.matching.is_some() && !binary.op.is_set_operator() {
                let mut plainer = binary.clone();
                plainer.matching = Some(VectorMatching::default());
                all.push(Expr::Binary(plainer));
            }
            all
        }
        _ => Vec::new(),
    }
}

fn plainer_selector(selector: &VectorSelector) -> Vec<VectorSelector> {
    let mut all = vec![
        VectorSelector { offset: None, ..selector.clone() },
        VectorSelector { at: None, ..selector.clone() },
    ];
    for (index, matcher) in selector.matchers.iter().enumerate() {
        if matcher.name != METRIC_NAME {
            let mut plainer = selector.clone();
            plainer.matchers.remove(index);
            all.push(plainer);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(text: &str, when: When) -> Question {
        Question { text: text.to_owned(), when, lookback: LOOKBACK_MS, delayed_name_removal: false }
    }

    #[test]
    fn times_in_the_text_move_along() {
        let asked = question("a @ 10 + max_over_time(b[1m:] @ 20.5) @ 3", When::Instant(5));
        assert_eq!(moved(&asked, 1000).text, asked.text, "not an expression, so not touched");
        let asked = question("a @ 10 + max_over_time(b[1m:] @ 20.5)", When::Instant(5));
        let moved = moved(&asked, 1000);
        assert_eq!(moved.text, "a @ 11.000 + max_over_time(b[1m:] @ 21.500)");
        assert_eq!(moved.when, When::Instant(1005));
    }

    #[test]
    fn every_part_of_an_expression_can_go() {
        let asked = question("sum by (a) (rate(m{x=\"1\"}[5m] offset 1m)) + n", When::Instant(5));
        let texts: Vec<String> = smaller(&asked).into_iter().map(|asked| asked.text).collect();
        for expected in [
            "n",
            "sum by (a) (rate(m{x=\"1\"}[5m] offset 1m))",
            "rate(m{x=\"1\"}[5m] offset 1m) + n",
            "sum(rate(m{x=\"1\"}[5m] offset 1m)) + n",
            "sum by (a) (rate(m[5m] offset 1m)) + n",
            "sum by (a) (rate(m{x=\"1\"}[5m])) + n",
            "m{x=\"1\"}[5m] offset 1m",
        ] {
            assert!(texts.iter().any(|text| text == expected), "{expected} in {texts:#?}");
        }
        assert!(texts.is_sorted_by_key(String::len));
    }

    #[test]
    fn a_range_is_tried_at_every_instant() {
        let asked = question("m", When::Range { start: 0, end: 25, step: 10 });
        let whens: Vec<When> = smaller(&asked).into_iter().map(|asked| asked.when).collect();
        assert_eq!(whens, [When::Instant(0), When::Instant(10), When::Instant(20)]);
    }
}
