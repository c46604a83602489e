//! Texts that may or may not be queries: words in any order, queries with some damage, and calls of
//! every function with arguments of the right types.

use proptest::collection::vec;
use proptest::prelude::{BoxedStrategy, Strategy, any, prop_oneof};
use proptest::sample::{Index, select};
use tributary_promql::ValueType;
use tributary_promql::functions::{Arity, Function, functions};

use super::grammar::one_of;
use super::support::{cases, script_queries};

/// Everything that is a word of the language, or nearly.
const WORDS: &[&str] = &[
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "=",
    "=~",
    "!~",
    "@",
    "</",
    ">/",
    "and",
    "or",
    "unless",
    "atan2",
    "bool",
    "on",
    "ignoring",
    "group_left",
    "group_right",
    "by",
    "without",
    "offset",
    "anchored",
    "smoothed",
    "fill",
    "fill_left",
    "fill_right",
    "start",
    "end",
    "step",
    "range",
    "start()",
    "end()",
    "step()",
    "range()",
    "max_of",
    "min_of",
    "sum",
    "avg",
    "count",
    "min",
    "max",
    "group",
    "stddev",
    "stdvar",
    "topk",
    "bottomk",
    "limitk",
    "limit_ratio",
    "quantile",
    "count_values",
    "foo",
    "bar:baz",
    "http_requests_total",
    "h_bucket",
    "nothing",
    "a",
    "b",
    "le",
    "job",
    "\"a\"",
    "'b'",
    "`c`",
    "\"\\xff\"",
    "\"",
    "'",
    "`",
    "#",
    "\n",
    "1",
    "0",
    "-1",
    "1e308",
    "Inf",
    "NaN",
    "0x1f",
    "1_000",
    "1m",
    "5m",
    "1h",
    "1ms",
    "292y",
    "0.0001",
    "__name__",
    ".+",
    ".*",
    "[5m]",
    "[5m:1m]",
    "[1h:]",
    "{job=\"api\"}",
    "offset 5m",
    "offset -1h",
    "@ 0",
    "@ 9e99",
    "é",
    "\u{0}",
    "\u{fffd}",
];

/// Words in any order.
pub fn soup() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = functions().iter().map(|function| function.name).collect();
    let word = prop_oneof![6 => one_of(WORDS), 1 => select(names).prop_map(str::to_owned)];
    (vec(word, 1..16), one_of(&["", " "])).prop_map(|(words, between)| words.join(&between))
}

/// Something that happens to a text, byte by byte.
#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    Flip(Index, u8),
    Insert(Index, String),
    Remove(Index, usize),
    Repeat(Index, usize, usize),
    Continue(Index, Index, String),
}

fn damage(queries: Vec<String>) -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<Index>().prop_map(Damage::Cut),
        (any::<Index>(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (any::<Index>(), one_of(WORDS)).prop_map(|(at, word)| Damage::Insert(at, word)),
        (any::<Index>(), 1..8_usize).prop_map(|(at, len)| Damage::Remove(at, len)),
        (any::<Index>(), 1..12_usize, 2..40_usize)
            .prop_map(|(at, len, times)| Damage::Repeat(at, len, times)),
        (any::<Index>(), any::<Index>(), select(queries))
            .prop_map(|(at, from, other)| Damage::Continue(at, from, other)),
    ]
}

impl Damage {
    fn apply(self, bytes: &mut Vec<u8>) {
        let place = |at: Index, len: usize| at.index(len + 1);
        let len = bytes.len();
        match self {
            Self::Cut(at) => bytes.truncate(place(at, len)),
            Self::Flip(at, bit) if len > 0 => bytes[at.index(len)] ^= 1 << bit,
            Self::Flip(..) => {}
            Self::Insert(at, word) => {
                let at = place(at, len);
                bytes.splice(at..at, word.into_bytes());
            }
            Self::Remove(at, count) => {
                let at = place(at, len);
                bytes.drain(at..len.min(at + count));
            }
            Self::Repeat(at, count, times) => {
                let at = place(at, len);
                let repeated = bytes[at..len.min(at + count)].repeat(times);
                bytes.splice(at..at, repeated);
            }
            Self::Continue(at, from, other) => {
                bytes.truncate(place(at, len));
                let other = other.into_bytes();
                bytes.extend_from_slice(&other[place(from, other.len())..]);
            }
        }
    }
}

/// Real queries with some damage.
pub fn damaged() -> impl Strategy<Value = String> {
    let mut queries: Vec<String> = cases().into_iter().map(|case| case.query).collect();
    queries.extend(script_queries().into_iter().map(|query| query.query));
    let damages = vec(damage(queries.clone()), 0..3);
    let whole = prop_oneof![select(queries), calls()];
    (whole, damages).prop_map(|(query, damages)| {
        let mut bytes = query.into_bytes();
        damages.into_iter().for_each(|damage| damage.apply(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn selector() -> impl Strategy<Value = String> {
    one_of(&[
        "foo",
        "foo{a=\"x\"}",
        "foo{a!=\"\"}",
        "{__name__=~\"foo|bar:baz\"}",
        "{__name__!=\"\"}",
        "bar:baz",
        "http_requests_total",
        "h_bucket",
        "extremes",
        "dense_total",
        "target_info",
        "nothing",
    ])
}

fn modifier() -> impl Strategy<Value = String> {
    one_of(&[
        "",
        "",
        "",
        "",
        " offset 1m",
        " offset -2m",
        " offset 292y",
        " @ 60",
        " @ start()",
        " @ end()",
        " @ 9e99",
        " @ -9e99 offset -292y",
        " offset (step() * 3)",
    ])
}

fn duration() -> impl Strategy<Value = String> {
    one_of(&[
        "5m",
        "1m",
        "90s",
        "1ms",
        "1h",
        "292y",
        "step()",
        "step() / 7",
        "range() / 1e9",
        "1e-9 * 3",
        "max_of(step(), 1m)",
    ])
}

fn scalar() -> impl Strategy<Value = String> {
    let numbers = one_of(&[
        "0", "1", "2", "-1", "0.5", "0.9", "1.5", "1e18", "-1e19", "1e308", "NaN", "Inf", "-Inf",
        "1e-320", "pi()", "time()",
    ]);
    prop_oneof![
        3 => numbers,
        1 => selector().prop_map(|inner| format!("scalar({inner})")),
        1 => one_of(&["(time() % 600 - 300) / 200", "step()", "range()", "time() * 1e300"]),
    ]
}

fn string() -> impl Strategy<Value = String> {
    one_of(&[
        "\"a\"",
        "\"b\"",
        "\"job\"",
        "\"instance\"",
        "\"__name__\"",
        "\"le\"",
        "\"\"",
        "\"$1-$0\"",
        "\"$1$1$1$1\"",
        "\"(.*)\"",
        "\"(\"",
        "\"a{1000}\"",
        "\"\\xff\"",
        "\"é\"",
        "\", \"",
    ])
}

/// Calls and aggregations whose arguments have the types they ask for.
pub fn calls() -> BoxedStrategy<String> {
    let leaf = prop_oneof![
        4 => (selector(), modifier()).prop_map(|(selector, modifier)| selector + &modifier),
        1 => scalar().prop_map(|scalar| format!("vector({scalar})")),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operator = one_of(&[
            "+",
            "/",
            "%",
            "^",
            "atan2",
            "> bool",
            "<=",
            "* on(a)",
            "* on(a) group_left(b)",
            "- ignoring(a, b) group_right",
            "and",
            "or",
            "unless on(a)",
            "+ fill(0)",
        ]);
        let grouping = one_of(&["", "by (a)", "without (b)", "by (job, le)", "without ()"]).boxed();
        prop_oneof![
            3 => select(functions()).prop_flat_map({
                let inner = inner.clone();
                move |function| call(&function, &inner)
            }),
            1 => (one_of(&["sum", "avg", "count", "group", "min", "max", "stddev", "stdvar"]),
                grouping.clone(), inner.clone())
                .prop_map(|(op, grouping, inner)| format!("{op} {grouping} ({inner})")),
            1 => (one_of(&["topk", "bottomk", "limitk", "limit_ratio", "quantile"]), grouping.clone(),
                scalar(), inner.clone())
                .prop_map(|(op, grouping, param, inner)| format!("{op} {grouping} ({param}, {inner})")),
            1 => (grouping, string(), inner.clone()).prop_map(|(grouping, label, inner)|
                format!("count_values {grouping} ({label}, {inner})")),
            2 => (inner.clone(), operator, inner.clone())
                .prop_map(|(left, operator, right)| format!("({left}) {operator} ({right})")),
            1 => (inner.clone(), scalar()).prop_map(|(left, right)| format!("{left} * {right}")),
            1 => inner.prop_map(|inner| format!("-({inner})")),
        ]
    })
    .boxed()
}

/// A call of a function.
fn call(function: &Function, vectors: &BoxedStrategy<String>) -> BoxedStrategy<String> {
    let (least, most) = match function.arity {
        Arity::Exactly(count) => (count, count),
        Arity::Between(least, most) => (least, most),
        Arity::AtLeast(least) => (least, least + 3),
    };
    let (name, is_scalar) = (function.name, function.returns == ValueType::Scalar);
    let argument = |index: usize| match function.argument_type(index) {
        Some(ValueType::Scalar) => scalar().boxed(),
        Some(ValueType::String) => string().boxed(),
        Some(ValueType::Matrix) => range(vectors),
        _ => vectors.clone(),
    };
    let arguments: Vec<BoxedStrategy<String>> = (0..most).map(argument).collect();
    (arguments, least..=most)
        .prop_map(move |(arguments, count)| {
            let call = format!("{name}({})", arguments[..count].join(", "));
            if is_scalar { format!("vector({call})") } else { call }
        })
        .boxed()
}

fn range(vectors: &BoxedStrategy<String>) -> BoxedStrategy<String> {
    let extension = one_of(&["", "", "", " anchored", " smoothed"]);
    let step = prop_oneof![one_of(&["", "30s", "1m", "1ms"]), duration()];
    prop_oneof![
        (selector(), duration(), extension, modifier()).prop_map(
            |(selector, range, extension, modifier)| {
                format!("{selector}[{range}]{extension}{modifier}")
            }
        ),
        (vectors.clone(), duration(), step, modifier()).prop_map(
            |(inner, range, step, modifier)| format!("({inner})[{range}:{step}]{modifier}")
        ),
    ]
    .boxed()
}
