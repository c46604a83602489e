//! The end-to-end promises, numbered. Each is checked from outside, on what the nodes were told and
//! what they decided; the state machines' own promises about their tables are in
//! `core_workcoord::invariant`.

macro_rules! promises {
    ($($(#[doc = $sentence:literal])+ $name:ident,)*) => {
        /// One promise. Its number is its place in this list, counted from one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Promise {
            $($(#[doc = $sentence])+ $name,)*
        }

        impl Promise {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// What is promised.
            pub fn sentence(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($sentence),+).trim_ascii(),)*
                }
            }
        }
    };
}

promises! {
    /// A query ends once, and nothing is said of it after its end.
    EndsOnce,
    /// Every query submitted to an API that lives on ends.
    Ends,
    /// Items are delivered in order, each once.
    DeliversInOrder,
    /// An item is delivered only after the artifact of that very attempt was fetched and verified
    /// from a session that was alive then.
    DeliversVerified,
    /// What is delivered is what the spec asks for.
    DeliversRight,
    /// A query is complete only after every item was delivered.
    CompleteWhenAll,
    /// Nothing is sent on, or fetched from, a session that is over or not open yet.
    SpeaksOnOpenSessions,
    /// After a rejection nothing is assigned to that session until it has spoken of itself.
    NoPingPong,
    /// Work goes only to workers that discovery names and that last said they accept work and do
    /// not drain.
    AssignsToTheWilling,
    /// No unstarted work is left on a draining session.
    TakesBackFromDraining,
    /// What an API has on a worker never exceeds its slots and the configured queue ahead.
    BoundedLoad,
    /// A worker runs no more than its slots, keeps no more than its queue and its sessions, and
    /// leaves no slot free while work waits.
    Slots,
    /// Every cancellation is confirmed exactly once while the session lives, and no attempt is
    /// cancelled twice.
    CancelsOnce,
    /// What is confirmed as cancelled neither runs nor has a file.
    CancelledIsGone,
    /// When a session ends on a worker, each of its runs is told to stop and each of its artifacts
    /// is removed in the same step.
    SessionEndCleans,
    /// A worker starts, stops and removes nothing without a reason.
    ReasonForEverything,
    /// The files on a worker's disk and the runs of its executor are those its intake believes in.
    BooksMatchDisk,
    /// Attempts are counted from one without gaps, a rejected one is given back, and there are no
    /// more than are allowed.
    AttemptNumbers,
    /// A work item never has two live attempts on one worker.
    OneAttemptPerWorker,
    /// Every end has its reason: the deadline, the client, the limit, what a worker said.
    ReasonForEveryEnd,
    /// When a query ends, everything of it that is on its way is cancelled in the same step.
    EndCancels,
    /// No session is given up for silence, for a missing answer or for a broken protocol unless
    /// something was wrong with it.
    NoFalseLoss,
    /// No tenant with waiting work is passed over more often than the stated bound.
    Fair,
    /// A client is told to wait for workers only when nobody is in rotation.
    ScaleUpWhenEmpty,
    /// No work waits while a worker in rotation has room for it.
    WorkConserving,
    /// Nothing said on a living stream is lost.
    NothingLost,
    /// Fetches keep to their limits in number and bytes.
    FetchLimits,
    /// Only announced artifacts are fetched, from the session that announced them, one fetch at a
    /// time, and no fetch outlives its session.
    FetchesAnnounced,
    /// No item beyond the query's window is given out.
    Window,
    /// No query outlives its deadline.
    Deadline,
    /// Once every fault is over, every table empties, nothing runs, and no file is left.
    Settles,
    /// When nothing goes wrong, every query is answered and no session is lost.
    QuietCompletes,
    /// Every assignment is accepted or rejected in the step that brings it.
    AnswersAtOnce,
    /// What a worker says of its work is what happened, in order.
    WorkerTellsTruth,
    /// Every announced artifact is acknowledged or cancelled, and none is acknowledged that was
    /// neither verified nor superseded.
    Acknowledges,
    /// A tick moves the timer on.
    TimersHelp,
    /// Only addresses that discovery names are dialled, one stream at a time each.
    DialsNamed,
    /// Once every fault is over, every API has every worker in rotation.
    Reconnects,
    /// A session that is silent for too long is given up.
    SilenceIsLoss,
    /// An API takes in no more queries and items than its limits allow.
    AdmissionLimits,
    /// A second attempt is paid for by finished work, and comes only after the first has had its
    /// time.
    HedgeBudget,
    /// Work that failed on a worker goes to another, as long as there is one.
    AvoidsFailure,
    /// No announced artifact waits while nothing is fetched.
    FetchesAtOnce,
    /// Heartbeats are sent on time, counted and echoed, by either side.
    HeartbeatsOnTime,
    /// A session that leaves an assignment or a cancellation unanswered for too long is given up.
    DemandsAnswers,
    /// No query with waiting work is passed over by others of its tenant more often than the stated
    /// bound.
    FairWithinTenant,
    /// A query that waits only for a straggler gets a second attempt, if there is budget and room.
    HedgesStragglers,
    /// With every heartbeat a worker has told how much waits and runs, unless it refused and has no
    /// room yet.
    StatusIsFresh,
    /// The sessions of a worker take turns for its slots.
    FairSlots,
    /// An address that discovery names is dialled soon after its stream is over, and not at once.
    RedialsInTime,
    /// An attempt is cancelled for the reason that is given; running work on a draining worker is
    /// left to finish.
    ReasonForEveryCancel,
}

impl Promise {
    /// Its number.
    pub fn number(self) -> u32 {
        self as u32 + 1
    }

    /// The promise with this number.
    pub fn numbered(number: u32) -> Option<Self> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        Self::ALL.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_list_and_every_promise_is_a_sentence() {
        for (number, promise) in (1..).zip(Promise::ALL) {
            assert_eq!(promise.number(), number);
            assert_eq!(Promise::numbered(number), Some(*promise));
            let sentence = promise.sentence();
            assert!(sentence.ends_with('.') && !sentence.starts_with(' '), "{sentence}");
        }
        assert_eq!(Promise::numbered(0), None);
        let sentence = Promise::EndsOnce.sentence();
        assert_eq!(sentence, "A query ends once, and nothing is said of it after its end.");
    }
}
