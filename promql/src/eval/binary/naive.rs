//! Operators as they are written down: one step at a time, sample by sample, labels as plain maps.
//! Slow, and apart from the real thing in every line, so that the two can be held against each other.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::binary;
use crate::annotation::{Annotations, Level};
use crate::eval::{Context, Steps, Value};
use crate::expr::{Cardinality, FillValues, MatchingLabels, VectorMatching};
use crate::frame::{Frame, Row};
use crate::labels::Labels;
use crate::limits::EvalLimits;
use crate::op::BinaryOp;
use crate::span::Span;
use crate::window::{ABSENT, is_absent};

type Names = BTreeMap<String, String>;
/// What is compared in the end: bits by series, and whether the name goes.
type Outcome = Result<(Vec<(Names, bool, Vec<u64>)>, usize), String>;

#[derive(Clone, Debug)]
struct Sample {
    labels: Names,
    value: f64,
    drop_name: bool,
}

#[derive(Clone, Debug)]
enum Operand {
    Scalar(Vec<f64>),
    Vector(Vec<(Names, bool, Vec<f64>)>),
}

#[derive(Clone, Debug)]
struct Case {
    op: BinaryOp,
    return_bool: bool,
    matching: VectorMatching,
    lhs: Operand,
    rhs: Operand,
    steps: usize,
    delayed: bool,
}

const ARITHMETIC: [BinaryOp; 7] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Mod,
    BinaryOp::Pow,
    BinaryOp::Atan2,
];

fn text(labels: &Names) -> String {
    let pairs: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    format!("{{{}}}", pairs.join(", "))
}

fn without_metadata(labels: &mut Names) {
    labels.retain(|name, _| !["__name__", "__type__", "__unit__"].contains(&name.as_str()));
}

impl Case {
    fn key(&self, labels: &Names) -> Names {
        let mut key = labels.clone();
        match &self.matching.labels {
            MatchingLabels::On(names) => key.retain(|name, _| names.contains(name)),
            MatchingLabels::Ignoring(names) => {
                key.retain(|name, _| name != "__name__" && !names.contains(name));
            }
        }
        key
    }

    /// Value and whether it is kept; none if the operator has no use for floats.
    fn pair(&self, left: f64, right: f64) -> Option<(f64, bool)> {
        Some(match self.op {
            BinaryOp::Add => (left + right, true),
            BinaryOp::Sub => (left - right, true),
            BinaryOp::Mul => (left * right, true),
            BinaryOp::Div => (left / right, true),
            BinaryOp::Mod => (left % right, true),
            BinaryOp::Pow if right == 0.5 && left > 0.0 => (left.sqrt(), true),
            BinaryOp::Pow => (left.powf(right), true),
            BinaryOp::Atan2 => (left.atan2(right), true),
            BinaryOp::Equal => (left, left == right),
            BinaryOp::NotEqual => (left, left != right),
            BinaryOp::Less => (left, left < right),
            BinaryOp::LessOrEqual => (left, left <= right),
            BinaryOp::Greater => (left, left > right),
            BinaryOp::GreaterOrEqual => (left, left >= right),
            _ => return None,
        })
    }

    fn step(&self, step: usize, infos: &mut usize) -> Result<Vec<Sample>, String> {
        let at = |rows: &[(Names, bool, Vec<f64>)]| -> Vec<Sample> {
            let sample = |(labels, drop_name, values): &(Names, bool, Vec<f64>)| Sample {
                labels: labels.clone(),
                value: values[step],
                drop_name: *drop_name,
            };
            rows.iter().map(sample).filter(|sample| !is_absent(sample.value)).collect()
        };
        match (&self.lhs, &self.rhs) {
            (Operand::Scalar(left), Operand::Scalar(right)) => {
                let (value, kept) = self.pair(left[step], right[step]).unwrap();
                let value = if self.op.is_comparison() { f64::from(kept) } else { value };
                Ok(vec![Sample { labels: Names::new(), value, drop_name: false }])
            }
            (Operand::Vector(left), Operand::Scalar(right)) => {
                Ok(self.with_scalar(at(left), right[step], false, infos))
            }
            (Operand::Scalar(left), Operand::Vector(right)) => {
                Ok(self.with_scalar(at(right), left[step], true, infos))
            }
            (Operand::Vector(left), Operand::Vector(right)) if self.op.is_set_operator() => {
                Ok(self.sets(at(left), at(right)))
            }
            (Operand::Vector(left), Operand::Vector(right)) => {
                self.join(at(left), at(right), infos)
            }
        }
    }

    fn with_scalar(
        &self,
        vector: Vec<Sample>,
        scalar: f64,
        swap: bool,
        infos: &mut usize,
    ) -> Vec<Sample> {
        let mut result = Vec::new();
        for mut sample in vector {
            let (left, right) = if swap { (scalar, sample.value) } else { (sample.value, scalar) };
            let Some((value, kept)) = self.pair(left, right) else {
                *infos = 1;
                continue;
            };
            if self.return_bool {
                sample.value = f64::from(kept);
            } else if !self.op.is_comparison() {
                sample.value = value;
            } else if !kept {
                continue;
            }
            if self.return_bool || !self.op.is_comparison() {
                sample.drop_name = true;
                if !self.delayed {
                    without_metadata(&mut sample.labels);
                }
            }
            result.push(sample);
        }
        result
    }

    fn sets(&self, left: Vec<Sample>, right: Vec<Sample>) -> Vec<Sample> {
        let keys = |side: &[Sample]| -> BTreeSet<Names> {
            side.iter().map(|sample| self.key(&sample.labels)).collect()
        };
        let (in_left, in_right) = (keys(&left), keys(&right));
        let has = |set: &BTreeSet<Names>, sample: &Sample| set.contains(&self.key(&sample.labels));
        let mut result = left;
        match self.op {
            BinaryOp::And => result.retain(|sample| has(&in_right, sample)),
            BinaryOp::Unless => result.retain(|sample| !has(&in_right, sample)),
            _ => result.extend(right.into_iter().filter(|sample| !has(&in_left, sample))),
        }
        result
    }

    fn join(
        &self,
        left: Vec<Sample>,
        right: Vec<Sample>,
        infos: &mut usize,
    ) -> Result<Vec<Sample>, String> {
        let FillValues { left: fill_many, right: fill_one } = self.matching.fill;
        let fills = fill_many.is_some() || fill_one.is_some();
        if (left.is_empty() || right.is_empty()) && !fills {
            return Ok(Vec::new());
        }
        let group_right = self.matching.cardinality == Cardinality::OneToMany;
        let (many, one) = if group_right { (right, left) } else { (left, right) };
        let mut partners: BTreeMap<Names, &Sample> = BTreeMap::new();
        for sample in &one {
            let key = self.key(&sample.labels);
            let Some(held) = partners.get(&key) else {
                partners.insert(key, sample);
                continue;
            };
            let mut two = [text(&held.labels), text(&sample.labels)];
            two.sort();
            let side = if group_right { "left" } else { "right" };
            return Err(format!(
                "found duplicate series for the match group {} on the {side} hand-side of the operation: [{}, {}];many-to-many matching not allowed: matching labels must be unique on one side",
                text(&key),
                two[0],
                two[1],
            ));
        }
        let filled = |key: &Names, value| Sample { labels: key.clone(), value, drop_name: false };
        let mut pairs = Vec::new();
        let mut leftover: BTreeSet<&Names> = partners.keys().collect();
        for sample in &many {
            let key = self.key(&sample.labels);
            match (partners.get(&key), fill_one) {
                (Some(partner), _) => pairs.push((sample.clone(), (*partner).clone())),
                (None, Some(fill)) => pairs.push((sample.clone(), filled(&key, fill))),
                (None, None) => {}
            }
            leftover.remove(&key);
        }
        if let Some(fill) = fill_many {
            for sample in &one {
                let key = self.key(&sample.labels);
                if leftover.contains(&key) {
                    pairs.push((filled(&key, fill), sample.clone()));
                }
            }
        }
        let mut result = Vec::new();
        let mut seen = BTreeSet::new();
        for (many, one) in pairs {
            let (left, right) =
                if group_right { (one.value, many.value) } else { (many.value, one.value) };
            let Some((value, kept)) = self.pair(left, right) else {
                *infos = 1;
                continue;
            };
            let labels = self.result_labels(&many.labels, &one.labels);
            let key = self.key(&many.labels);
            let is_new = if self.matching.cardinality == Cardinality::OneToOne {
                seen.insert((key, Names::new()))
            } else {
                seen.insert((key, labels.clone()))
            };
            if !is_new {
                return Err(if self.matching.cardinality == Cardinality::OneToOne {
                    "multiple matches for labels: many-to-one matching must be explicit (group_left/group_right)".into()
                } else {
                    "multiple matches for labels: grouping labels must ensure unique matches".into()
                });
            }
            if self.return_bool {
                result.push(Sample { labels, value: f64::from(kept), drop_name: true });
            } else if kept {
                result.push(Sample { labels, value, drop_name: false });
            }
        }
        Ok(result)
    }

    fn result_labels(&self, many: &Names, one: &Names) -> Names {
        let mut labels = many.clone();
        if ARITHMETIC.contains(&self.op) || (self.return_bool && !self.delayed) {
            without_metadata(&mut labels);
        }
        if self.matching.cardinality == Cardinality::OneToOne {
            match &self.matching.labels {
                MatchingLabels::On(names) => labels.retain(|name, _| names.contains(name)),
                MatchingLabels::Ignoring(names) => labels.retain(|name, _| !names.contains(name)),
            }
        }
        for name in &self.matching.include {
            match one.get(name) {
                Some(value) => labels.insert(name.clone(), value.clone()),
                None => labels.remove(name),
            };
        }
        labels
    }

    fn naive(&self) -> Outcome {
        let mut series: Vec<(Names, bool, Vec<u64>)> = Vec::new();
        let mut infos = 0;
        for step in 0..self.steps {
            let mut seen = BTreeSet::new();
            let samples = self.step(step, &mut infos)?;
            for sample in samples {
                let is_new = seen.insert(sample.labels.clone());
                let bits = bits(sample.value);
                if self.steps == 1 {
                    if !is_new && !self.delayed {
                        return Err("vector cannot contain metrics with the same labelset".into());
                    }
                    series.push((sample.labels, sample.drop_name, vec![bits]));
                    continue;
                }
                if !is_new {
                    return Err("vector cannot contain metrics with the same labelset".into());
                }
                let held = series.iter().position(|held| held.0 == sample.labels);
                let held = held.unwrap_or_else(|| {
                    let nothing = vec![ABSENT.to_bits(); self.steps];
                    series.push((sample.labels, sample.drop_name, nothing));
                    series.len() - 1
                });
                series[held].2[step] = bits;
            }
        }
        if self.steps > 1 {
            series.sort();
        }
        Ok((series, infos))
    }

    fn real(&self) -> Outcome {
        let value = |operand: &Operand| match operand {
            Operand::Scalar(values) => Value::Scalar(values.clone()),
            Operand::Vector(rows) => {
                let row = |(labels, drop_name, values): &(Names, bool, Vec<f64>)| Row {
                    labels: Labels::new(labels).unwrap(),
                    drop_name: *drop_name,
                    values: values.clone(),
                };
                Value::Vector(Frame { rows: rows.iter().map(row).collect() })
            }
        };
        let mut ctx = Context {
            steps: Steps { start: 0, step: 1, count: self.steps },
            delayed_name_removal: self.delayed,
            is_instant: self.steps == 1,
            annotations: Annotations::default(),
            limits: EvalLimits::default(),
        };
        let (lhs, rhs) = (value(&self.lhs), value(&self.rhs));
        let span = Span::default();
        let result =
            binary(self.op, Some(&self.matching), self.return_bool, lhs, rhs, span, &mut ctx);
        let rows = match result.map_err(|error| error.to_string())? {
            Value::Scalar(values) => Frame::of_one(Labels::default(), values).rows,
            Value::Vector(frame) => frame.rows,
            Value::String(_) => panic!("operators make no strings"),
        };
        let mut series: Vec<_> = rows
            .into_iter()
            .map(|row| {
                let names = row.labels.iter().map(|(name, value)| (name.into(), value.into()));
                (names.collect(), row.drop_name, row.values.into_iter().map(bits).collect())
            })
            .collect();
        if self.steps > 1 {
            series.sort();
        }
        Ok((series, ctx.annotations.texts(Level::Info, "").len()))
    }
}

/// One NaN is as good as another.
fn bits(value: f64) -> u64 {
    if value.is_nan() && !is_absent(value) { f64::NAN.to_bits() } else { value.to_bits() }
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => (-2..4_i8).prop_map(f64::from),
        1 => Just(0.5),
        1 => Just(-0.0),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(f64::NEG_INFINITY),
    ]
}

fn labels() -> impl Strategy<Value = Names> {
    let value = || prop_oneof![3 => Just(""), 2 => Just("1"), 2 => Just("2")];
    let kind = prop_oneof![6 => Just(""), 1 => Just("gauge")];
    (prop_oneof![Just("m"), Just("n"), Just("")], kind, value(), value(), value()).prop_map(
        |(name, kind, a, b, c)| {
            let pairs = [("__name__", name), ("__type__", kind), ("a", a), ("b", b), ("c", c)];
            let pairs = pairs.iter().filter(|pair| !pair.1.is_empty());
            pairs.map(|(name, value)| ((*name).into(), (*value).into())).collect()
        },
    )
}

fn vector(steps: usize) -> impl Strategy<Value = Operand> {
    let value = prop_oneof![1 => Just(ABSENT), 1 => number()];
    let values = prop::collection::vec(value, steps);
    prop::collection::vec((labels(), any::<bool>(), values), 0..8).prop_map(|mut rows| {
        let mut seen = BTreeSet::new();
        rows.retain(|row| seen.insert(row.0.clone()));
        Operand::Vector(rows)
    })
}

fn operand(steps: usize) -> impl Strategy<Value = Operand> {
    let scalar = prop::collection::vec(number(), steps).prop_map(Operand::Scalar);
    prop_oneof![1 => scalar, 6 => vector(steps)]
}

fn matching() -> impl Strategy<Value = VectorMatching> {
    let names = || prop::sample::subsequence(vec!["__name__", "a", "b", "c"], 0..4);
    let fill = || prop_oneof![3 => Just(None), 1 => number().prop_map(Some)];
    let cardinality = prop_oneof![
        Just(Cardinality::OneToOne),
        Just(Cardinality::ManyToOne),
        Just(Cardinality::OneToMany)
    ];
    (cardinality, any::<bool>(), names(), names(), fill(), fill()).prop_map(
        |(cardinality, on, names, include, left, right)| {
            let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
            let mut include: Vec<String> = owned(&include);
            include.retain(|name| !on || !names.contains(&name.as_str()));
            if cardinality == Cardinality::OneToOne {
                include.clear();
            }
            let names = owned(&names);
            let labels =
                if on { MatchingLabels::On(names) } else { MatchingLabels::Ignoring(names) };
            VectorMatching { cardinality, labels, include, fill: FillValues { left, right } }
        },
    )
}

fn op() -> impl Strategy<Value = BinaryOp> {
    let others = [
        BinaryOp::Equal,
        BinaryOp::NotEqual,
        BinaryOp::Less,
        BinaryOp::LessOrEqual,
        BinaryOp::Greater,
        BinaryOp::GreaterOrEqual,
        BinaryOp::TrimUpper,
        BinaryOp::TrimLower,
        BinaryOp::And,
        BinaryOp::Or,
        BinaryOp::Unless,
    ];
    prop::sample::select([&ARITHMETIC[..], &others].concat())
}

fn case() -> impl Strategy<Value = Case> {
    let operands =
        (1..5_usize).prop_flat_map(|steps| (operand(steps), operand(steps), Just(steps)));
    (op(), any::<bool>(), matching(), operands, any::<bool>()).prop_filter_map(
        "the language has no such expression",
        |(op, answer, mut matching, (lhs, rhs, steps), delayed)| {
            let scalars = [&lhs, &rhs].map(|side| matches!(side, Operand::Scalar(_)));
            if op.is_set_operator() {
                matching.cardinality = Cardinality::ManyToMany;
                matching.include.clear();
                matching.fill = FillValues::default();
                if scalars != [false; 2] {
                    return None;
                }
            }
            let is_trim = matches!(op, BinaryOp::TrimUpper | BinaryOp::TrimLower);
            if is_trim && scalars == [true; 2] {
                return None;
            }
            let return_bool = op.is_comparison() && (answer || scalars == [true; 2]);
            Some(Case { op, return_bool, matching, lhs, rhs, steps, delayed })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whole_rows_give_what_single_steps_give(case in case()) {
        prop_assert_eq!(case.real(), case.naive());
    }
}
