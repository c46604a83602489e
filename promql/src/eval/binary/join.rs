//! Arithmetic and comparisons between two vectors: every series of the many side meets its partner
//! on the one side, step by step. With one-to-one matching the left side counts as the many side.
//!
//! Prometheus evaluates one step after the other and ends at the first error. Here rows come first,
//! so errors are gathered and the one that Prometheus would have met first is told.

mod failure;
mod outputs;
mod partner;

use std::collections::BTreeMap;

use super::arithmetic::Calculation;
use super::matching::{MatchGroups, ResultLabels};
use super::note_incompatible_floats;
use super::step_set::StepSet;
use crate::eval::{Context, EvalError};
use crate::expr::{Cardinality, VectorMatching};
use crate::frame::{Frame, Row};
use crate::op::BinaryOp;
use crate::span::Span;
use crate::window::is_absent;

use failure::{Failures, Kind};
use outputs::Outputs;
use partner::Partners;

/// What an operator that is no set operator makes of two vectors.
pub(super) fn join(
    op: BinaryOp,
    matching: &VectorMatching,
    return_bool: bool,
    (lhs, rhs): (&Frame, &Frame),
    span: Span,
    ctx: &mut Context,
) -> Result<Frame, EvalError> {
    let swapped = matching.cardinality == Cardinality::OneToMany;
    let (many, one) = if swapped { (rhs, lhs) } else { (lhs, rhs) };
    let groups = MatchGroups::of(&matching.labels, many, one);
    let calculation = Calculation::of(op, return_bool);
    let changes_schema = matches!(calculation, Some(Calculation::Number(_)));
    let mut failures = Failures::default();
    let partners = Partners::of(&groups, (many, one), matching, ctx.steps.count, &mut failures);
    let mut join = Join {
        calculation,
        matching,
        swapped,
        many,
        one,
        groups: &groups,
        partners,
        // Arithmetic takes the name at once, even where names go at the end.
        labels: ResultLabels {
            matching,
            drop_metadata: changes_schema || (return_bool && !ctx.delayed_name_removal),
        },
        claims: Claims::new(ctx.steps.count),
        matched: Vec::new(),
        outputs: Outputs::new(ctx, return_bool),
        failures,
        is_incompatible: false,
    };
    if matching.fill.left.is_some() {
        join.matched = vec![StepSet::none(ctx.steps.count); groups.keys.len()];
    }
    (0..many.rows.len()).try_for_each(|row| join.meet_partner(row))?;
    if let Some(fill) = matching.fill.left {
        (0..one.rows.len()).try_for_each(|row| join.meet_fill(row, fill))?;
    }
    if let Some(failure) = join.failures.first() {
        return Err(failure.error(one, &groups, matching));
    }
    if join.is_incompatible {
        note_incompatible_floats(op, span, ctx);
    }
    Ok(join.outputs.finish())
}

struct Join<'a> {
    /// None if the operator has no use for two floats.
    calculation: Option<Calculation>,
    matching: &'a VectorMatching,
    /// The many side is the right one.
    swapped: bool,
    many: &'a Frame,
    one: &'a Frame,
    groups: &'a MatchGroups,
    partners: Partners<'a>,
    labels: ResultLabels<'a>,
    claims: Claims,
    /// By group, when it had a series on the many side. Empty unless that side is filled.
    matched: Vec<StepSet>,
    outputs: Outputs,
    failures: Failures,
    /// Two floats met that the operator has no use for.
    is_incompatible: bool,
}

/// Where the results of a row of the many side go as long as it has the same partner.
struct Target {
    /// The partner, if the labels depend on it.
    partner: Option<usize>,
    output: usize,
    claim: usize,
}

impl Join<'_> {
    /// All results of one row of the many side.
    fn meet_partner(&mut self, index: usize) -> Result<(), EvalError> {
        let row = &self.many.rows[index];
        let group = self.groups.first[index];
        let fill = self.matching.fill.right;
        if !self.partners.has_any(group) && fill.is_none() {
            return Ok(());
        }
        let mut targets: Vec<Target> = Vec::new();
        let mut current = 0;
        for (step, value) in row.values.iter().enumerate() {
            if is_absent(*value) {
                continue;
            }
            let (partner, other) = match (self.partners.at(group, step), fill) {
                (Some((partner, other)), _) => (Some(partner), other),
                // As in Prometheus the value for the right side stands in for the one side, and the
                // one for the left side for the many, whichever of them really is on the left.
                (None, Some(fill)) => (None, fill),
                (None, None) => continue,
            };
            let Some(result) = self.calculate(*value, other) else { continue };
            let partner = partner.filter(|_| !self.matching.include.is_empty());
            if targets.get(current).is_none_or(|target| target.partner != partner) {
                let known = targets.iter().position(|target| target.partner == partner);
                current = known.unwrap_or(targets.len());
                if known.is_none() {
                    targets.push(self.target(row, group, partner)?);
                }
            }
            let target = &targets[current];
            // A result that a filter drops still makes the matching ambiguous.
            if !self.claims.claim(target.claim, step) {
                self.failures.add(step, Kind::MultipleMatches);
            }
            if let Some(matched) = self.matched.get_mut(group) {
                matched.insert(step);
            }
            if !is_absent(result) && !self.outputs.put(target.output, step, result)? {
                self.failures.add(step, Kind::SameLabels);
            }
        }
        Ok(())
    }

    /// The results of one row of the one side where the many side has nothing.
    fn meet_fill(&mut self, index: usize, fill: f64) -> Result<(), EvalError> {
        let row = &self.one.rows[index];
        let group = self.groups.second[index];
        let mut output = None;
        for (step, value) in row.values.iter().enumerate() {
            if is_absent(*value) || self.matched[group].contains(step) {
                continue;
            }
            let Some(result) = self.calculate(fill, *value) else { continue };
            let output = match output {
                Some(output) => output,
                None => {
                    let labels = self.labels.of(&self.groups.keys[group], &row.labels);
                    *output.insert(self.outputs.with_labels(labels)?)
                }
            };
            if !is_absent(result) && !self.outputs.put(output, step, result)? {
                self.failures.add(step, Kind::SameLabels);
            }
        }
        Ok(())
    }

    #[inline]
    fn calculate(&mut self, many: f64, one: f64) -> Option<f64> {
        let Some(calculation) = self.calculation else {
            self.is_incompatible = true;
            return None;
        };
        let (left, right) = if self.swapped { (one, many) } else { (many, one) };
        Some(calculation.apply(left, right))
    }

    fn target(
        &mut self,
        row: &Row,
        group: usize,
        partner: Option<usize>,
    ) -> Result<Target, EvalError> {
        // A partner that was filled in has the labels that are compared and no others.
        let one = partner.map_or(&self.groups.keys[group], |one| &self.one.rows[one].labels);
        let output = self.outputs.with_labels(self.labels.of(&row.labels, one))?;
        // One to one, a group has one result; else its results differ by their labels.
        let is_one_to_one = self.matching.cardinality == Cardinality::OneToOne;
        let claim = self.claims.of(group, (!is_one_to_one).then_some(output));
        Ok(Target { partner, output, claim })
    }
}

/// What has been matched at which step: a group, or a group's result with certain labels.
struct Claims {
    steps: usize,
    numbers: BTreeMap<(usize, Option<usize>), usize>,
    claimed: Vec<StepSet>,
}

impl Claims {
    fn new(steps: usize) -> Self {
        Self { steps, numbers: BTreeMap::new(), claimed: Vec::new() }
    }

    fn of(&mut self, group: usize, output: Option<usize>) -> usize {
        *self.numbers.entry((group, output)).or_insert_with(|| {
            self.claimed.push(StepSet::none(self.steps));
            self.claimed.len() - 1
        })
    }

    /// False if somebody has it already.
    #[inline]
    fn claim(&mut self, number: usize, step: usize) -> bool {
        self.claimed[number].insert(step)
    }
}
