//! The judgement: what of all that happened breaks a promise. Pure: what happened in, violations out.

use std::time::Duration;

use crate::fault::Happened;
use crate::workload::{Asked, Outcome};

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    /// Which promise.
    pub promise: Promise,
    /// When it was noticed, in milliseconds of the run.
    pub at_ms: u64,
    /// What happened.
    pub what: String,
}

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// Every answer is the fault-free one, byte for byte.
    RightAnswers,
    /// Every query ends.
    NothingHangs,
    /// Every query ends once, as the protocol has it.
    OneEnd,
    /// A query fails only where the fault makes its answer impossible, and says why.
    NoNeedlessErrors,
    /// When the fault is over, everything finds its place again.
    Recovery,
    /// When nothing is asked, nothing runs, waits or is kept.
    NothingLeft,
    /// Files, memory and threads come back to what they were.
    NoLeaks,
    /// A process ends only when it is told to, and never panics.
    NoCrashes,
    /// A worker that can be heard answers every assignment and cancellation.
    WorkersAnswer,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::RightAnswers,
        Self::NothingHangs,
        Self::OneEnd,
        Self::NoNeedlessErrors,
        Self::Recovery,
        Self::NothingLeft,
        Self::NoLeaks,
        Self::NoCrashes,
        Self::WorkersAnswer,
    ];

    /// It in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::RightAnswers => "every finished answer is the fault-free one, byte for byte",
            Self::NothingHangs => "every query ends",
            Self::OneEnd => "every query ends exactly once, as the protocol has it",
            Self::NoNeedlessErrors => "errors only where the fault makes an answer impossible",
            Self::Recovery => "when a fault is over, everything finds its place again",
            Self::NothingLeft => "when nothing is asked, nothing runs, waits or is kept",
            Self::NoLeaks => "open files, memory and threads come back to what they were",
            Self::NoCrashes => "processes end only when told to, and never panic",
            Self::WorkersAnswer => "workers that can be heard answer what they are told",
        }
    }
}

impl Violation {
    /// One at this moment.
    pub fn new(promise: Promise, at: Duration, what: impl Into<String>) -> Self {
        let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        Self { promise, at_ms, what: what.into() }
    }
}

/// What a query's end breaks, given everything that was done meanwhile.
pub fn judge(asked: &Asked, faults: &[Happened]) -> Option<Violation> {
    let meanwhile =
        || faults.iter().filter(|fault| fault.from <= asked.to && asked.from <= fault.recovered);
    let during = || {
        let names: Vec<&str> = meanwhile().map(|fault| fault.kind.name()).collect();
        if names.is_empty() { "no fault".to_owned() } else { names.join(", ") }
    };
    let violation = |promise, why: &str| {
        let Asked { question, api, .. } = asked;
        let what = format!("question #{question} to api-{api} during {}: {why}", during());
        Some(Violation::new(promise, asked.to, what))
    };
    match &asked.outcome {
        Outcome::Right | Outcome::Left => None,
        Outcome::Wrong(why) => violation(Promise::RightAnswers, why),
        Outcome::Malformed(why) => violation(Promise::OneEnd, why),
        Outcome::Hung => violation(Promise::NothingHangs, "it did not end"),
        Outcome::Broken(why) => {
            let excused = meanwhile().any(|fault| fault.kind.excuses().broken);
            if excused { None } else { violation(Promise::NoNeedlessErrors, why) }
        }
        Outcome::Error(why) => {
            let excused = meanwhile()
                .any(|fault| fault.kind.excuses().errors.iter().any(|known| why.contains(known)));
            if excused { None } else { violation(Promise::NoNeedlessErrors, why) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Kind;

    fn asked(from: u64, to: u64, outcome: Outcome) -> Asked {
        let [from, to] = [from, to].map(Duration::from_secs);
        let (question, class, api, is_eager) = (1, "rate", 0, true);
        Asked { question, class, api, from, to, first_result: None, is_eager, outcome }
    }

    fn fault(kind: Kind, from: u64, recovered: u64) -> Happened {
        let [from, recovered] = [from, recovered].map(Duration::from_secs);
        let (what, drains) = (String::new(), Vec::new());
        Happened { kind, what, from, healed: recovered, recovered, drains }
    }

    #[test]
    fn an_error_is_excused_by_its_own_fault_and_its_own_time_alone() {
        let missing = Outcome::Error("work failed: segment file a.samples.parquet".into());
        let faults = [fault(Kind::SegmentsMissing, 10, 20), fault(Kind::KillWorker, 30, 40)];
        assert_eq!(judge(&asked(9, 11, missing.clone()), &faults), None);
        let elsewhere = judge(&asked(31, 32, missing), &faults).unwrap();
        assert_eq!(elsewhere.promise, Promise::NoNeedlessErrors);
        assert!(elsewhere.what.contains("kill-worker"), "{}", elsewhere.what);
        let other = Outcome::Error("timeout: deadline exceeded".into());
        assert!(judge(&asked(9, 11, other), &faults).is_some());
        assert!(judge(&asked(11, 12, Outcome::Broken("reset".into())), &faults).is_some());
    }

    #[test]
    fn nothing_excuses_a_wrong_answer_or_one_that_never_ends() {
        let faults = Kind::ALL.map(|kind| fault(kind, 0, 100));
        for (outcome, promise) in [
            (Outcome::Wrong(String::new()), Promise::RightAnswers),
            (Outcome::Hung, Promise::NothingHangs),
            (Outcome::Malformed(String::new()), Promise::OneEnd),
        ] {
            assert_eq!(judge(&asked(1, 2, outcome), &faults).unwrap().promise, promise);
        }
        assert_eq!(judge(&asked(1, 2, Outcome::Right), &faults), None);
        assert_eq!(judge(&asked(1, 2, Outcome::Left), &faults), None);
    }
}
