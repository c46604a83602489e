//! The shape of trees: what belongs to what. Canonical text has no parentheses of its own, so these
//! tests add them.

use tributary_promql::expr::{
    At, Cardinality, Extension, FillValues, Grouping, MatchingLabels, Number,
};
use tributary_promql::span::Span;
use tributary_promql::{Expr, ValueType, parse};

use super::support::{all, none, tree};

/// The query with parentheses around every operator.
fn shape(expr: &Expr) -> String {
    match expr {
        Expr::Binary(binary) => {
            format!("({} {} {})", shape(&binary.lhs), binary.op, shape(&binary.rhs))
        }
        Expr::Unary(unary) => format!("({}{})", unary.sign.text(), shape(&unary.expr)),
        Expr::Paren(paren) => format!("<{}>", shape(&paren.expr)),
        other => other.to_string(),
    }
}

#[test]
fn operators_bind_as_tightly_as_they_should() {
    for (text, expected) in [
        ("1 + 2 * 3", "(1 + (2 * 3))"),
        ("1 - 2 - 3", "((1 - 2) - 3)"),
        ("2 ^ 3 ^ 4", "(2 ^ (3 ^ 4))"),
        ("-1 ^ 2", "(-(1 ^ 2))"),
        ("-a ^ b ^ c", "(-(a ^ (b ^ c)))"),
        ("2 ^ -1 ^ 3", "(2 ^ (-(1 ^ 3)))"),
        ("2 ^ -1 * 3", "((2 ^ -1) * 3)"),
        ("-a * b", "((-a) * b)"),
        ("- a + b", "((-a) + b)"),
        ("-a offset 5m", "(-a offset 5m)"),
        ("(1 + 2) * 3", "(<(1 + 2)> * 3)"),
        ("a atan2 b * c", "((a atan2 b) * c)"),
        ("a + b > c * d", "((a + b) > (c * d))"),
        ("a > b == c", "((a > b) == c)"),
        ("a </ 1 + 2", "(a </ (1 + 2))"),
        ("a and b or c unless d", "((a and b) or (c unless d))"),
        ("a or b and c", "(a or (b and c))"),
        ("a == b and c", "((a == b) and c)"),
        ("a + b offset 5m", "(a + b offset 5m)"),
        ("a * b @ 5", "(a * b @ 5.000)"),
        ("a offset 5m + b", "(a offset 5m + b)"),
        ("a offset -2 ^ 2", "(a offset -2s ^ 2)"),
        ("a offset step() * 2", "(a offset step() * 2)"),
        ("a offset (1m) * 2", "a offset (1m) * 2"),
        ("a offset (1m) * 2 == b", "(a offset (1m) * 2 == b)"),
    ] {
        assert_eq!(shape(&tree(text)), expected, "{text}");
    }
}

#[test]
fn a_sign_before_a_number_is_part_of_it() {
    let number = |text: &str| match tree(text) {
        Expr::Number(Number { value, is_duration, .. }) => (value, is_duration),
        other => panic!("{other:?}"),
    };
    assert_eq!(number("-1"), (-1.0, false));
    assert_eq!(number("--1"), (1.0, false));
    assert_eq!(number("+5m"), (300.0, true));
    assert_eq!(number("1001ms"), (1.001, true));
    assert!(matches!(tree("-(1)"), Expr::Unary(_)));
}

#[test]
fn matching_is_there_between_vectors_only() {
    let matching = |text: &str| match tree(text) {
        Expr::Binary(binary) => binary.matching,
        other => panic!("{other:?}"),
    };
    assert_eq!(matching("1 + 2"), None);
    assert_eq!(matching("foo + 2"), None);
    assert_eq!(matching("foo + bar"), Some(Default::default()));
    let sets = matching("foo and bar").unwrap();
    assert_eq!(sets.cardinality, Cardinality::ManyToMany);
    let grouped = matching("foo / on(a) group_left(b) fill_right(2) bar").unwrap();
    assert_eq!(grouped.cardinality, Cardinality::ManyToOne);
    assert_eq!(grouped.labels, MatchingLabels::On(vec!["a".to_owned()]));
    assert_eq!(grouped.include, ["b"]);
    assert_eq!(grouped.fill, FillValues { left: None, right: Some(2.0) });
    let right = matching("foo / ignoring(a) group_right bar").unwrap();
    assert_eq!(right.cardinality, Cardinality::OneToMany);
    assert_eq!(right.labels, MatchingLabels::Ignoring(vec!["a".to_owned()]));
}

#[test]
fn grouping_by_nothing_is_no_grouping() {
    let grouping = |text: &str| match tree(text) {
        Expr::Aggregate(aggregate) => aggregate.grouping,
        other => panic!("{other:?}"),
    };
    assert_eq!(grouping("sum(foo)"), Grouping::By(Vec::new()));
    assert_eq!(grouping("sum by () (foo)"), Grouping::By(Vec::new()));
    assert_eq!(grouping("sum without () (foo)"), Grouping::Without(Vec::new()));
}

#[test]
fn modifiers_go_to_the_selector_they_follow() {
    let Expr::Matrix(matrix) = tree("foo[5m] anchored @ 10.5 offset -1m") else {
        panic!("no matrix selector");
    };
    assert_eq!(matrix.vector.at, Some(At::Timestamp(10_500)));
    assert_eq!(matrix.vector.extension, Some(Extension::Anchored));
    assert_eq!(matrix.vector.offset.as_ref().map(ToString::to_string).as_deref(), Some("-1m"));
    let Expr::Subquery(subquery) = tree("foo[1h:] @ end() offset 1m") else {
        panic!("no subquery");
    };
    assert_eq!((subquery.at, &subquery.step), (Some(At::End), &None));
    assert!(matches!(&subquery.expr, Expr::Vector(vector) if vector.offset.is_none()));
}

#[test]
fn every_part_knows_where_it_stands() {
    let text = "sum by (a) (rate(foo{b=\"c\"}[5m] offset 1m)) / -bar[1h:] @ 5";
    let error = parse(text, &none()).unwrap_err();
    assert_eq!(&text[error.span.start..error.span.end], "-bar[1h:] @ 5");
    let text = " topk(2, foo) + (bar) ";
    let expr = parse(text, &none()).unwrap();
    let here = |span: Span| &text[span.start..span.end];
    assert_eq!(here(expr.span()), "topk(2, foo) + (bar)");
    let Expr::Binary(binary) = &expr else {
        panic!("no operator");
    };
    assert_eq!(here(binary.lhs.span()), "topk(2, foo)");
    assert_eq!(here(binary.rhs.span()), "(bar)");
    let children = binary.lhs.children();
    assert_eq!(children.iter().map(|expr| here(expr.span())).collect::<Vec<_>>(), ["foo", "2"]);
}

#[test]
fn types_follow_from_the_parts() {
    for (text, value_type) in [
        ("1", ValueType::Scalar),
        ("-(1 + time())", ValueType::Scalar),
        ("\"a\"", ValueType::String),
        ("(foo)", ValueType::Vector),
        ("1 + foo", ValueType::Vector),
        ("sum(foo)", ValueType::Vector),
        ("foo[5m]", ValueType::Matrix),
        ("foo[5m:]", ValueType::Matrix),
        ("scalar(foo)", ValueType::Scalar),
    ] {
        assert_eq!(parse(text, &all()).unwrap().value_type(), value_type, "{text}");
    }
}

#[test]
fn a_string_may_hold_any_bytes_but_a_label_is_text() {
    let Expr::String(string) = tree(r#""a\xc5z""#) else {
        panic!("no string");
    };
    assert_eq!((string.bytes.as_slice(), string.text()), (b"a\xc5z".as_slice(), None));
    for text in [r#"foo{a="\xff"}"#, r#"{"\xff"}"#, r#"foo{"\xff"="a"}"#, r#"foo{a=~"\xff"}"#] {
        let error = parse(text, &all()).unwrap_err();
        assert!(error.message.ends_with(r#""\xff" is not"#), "{error}");
    }
}
