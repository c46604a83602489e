//! Deliberate bugs, to show that the tests bite. Compiled in only with the feature `sabotage`;
//! without it no bug can be switched on and every question is answered "no" at compile time.

/// One deliberate bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// The API takes answers of an old attempt for answers of the present one.
    ForgetFence,
    /// The API leaves unstarted work on a draining worker.
    LoseDrainReassignment,
    /// The API does not requeue the work of a lost session.
    LoseLostWork,
    /// The API delivers an item a second time.
    DoubleDeliver,
    /// The API delivers in the order of arrival.
    DeliverOutOfOrder,
    /// The API keeps a finished query in its table.
    LeakQuery,
    /// The API keeps a confirmed cancellation in its table.
    LeakCancellation,
    /// The API assigns to a worker that has just refused.
    PingPong,
    /// The API does not cancel the work of a client that left.
    ForgetClientGone,
    /// The API lets a query run past its deadline.
    IgnoreDeadline,
    /// The API takes a wrong artifact for a right one.
    SkipChecksum,
    /// The API never takes silence for loss.
    TrustSilence,
    /// The API assigns more than a worker has room for.
    OverfillWorker,
    /// The API serves the first tenant only, as long as it has work.
    StarveTenants,
    /// The API counts a rejection as an attempt.
    ChargeRejection,
    /// The API never gives up on an item.
    RetryForever,
    /// The API assigns to a worker that does not accept.
    IgnoreAdmission,
    /// The API does not acknowledge what it fetched.
    ForgetAck,
    /// The API hedges on the straggler's own worker.
    HedgeOnSameWorker,
    /// The API does not redial a lost worker.
    ForgetRedial,
    /// The worker runs on after its session is gone.
    OrphanRun,
    /// The worker does not free the slot of a cancelled run.
    LeakSlot,
    /// The worker keeps artifacts for ever.
    IgnoreTtl,
    /// The worker takes new work while it drains.
    AcceptWhileDraining,
    /// The worker does not confirm a cancellation.
    UnconfirmedCancel,
    /// The worker frees the slot of a cancelled run before it has stopped.
    FreeSlotEarly,
    /// The worker loses every session when one is lost.
    CancelTooMuch,
    /// The worker does not tell that an artifact was evicted.
    SilentEviction,
    /// The worker drops what it has no room for instead of rejecting it.
    DropWhenFull,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 29] = [
        Self::ForgetFence,
        Self::LoseDrainReassignment,
        Self::LoseLostWork,
        Self::DoubleDeliver,
        Self::DeliverOutOfOrder,
        Self::LeakQuery,
        Self::LeakCancellation,
        Self::PingPong,
        Self::ForgetClientGone,
        Self::IgnoreDeadline,
        Self::SkipChecksum,
        Self::TrustSilence,
        Self::OverfillWorker,
        Self::StarveTenants,
        Self::ChargeRejection,
        Self::RetryForever,
        Self::IgnoreAdmission,
        Self::ForgetAck,
        Self::HedgeOnSameWorker,
        Self::ForgetRedial,
        Self::OrphanRun,
        Self::LeakSlot,
        Self::IgnoreTtl,
        Self::AcceptWhileDraining,
        Self::UnconfirmedCancel,
        Self::FreeSlotEarly,
        Self::CancelTooMuch,
        Self::SilentEviction,
        Self::DropWhenFull,
    ];
}

impl Bug {
    /// The bug with this name, as it is spelled here.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| format!("{bug:?}") == name)
    }
}

/// The bug a state machine has, if any.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sabotage {
    #[cfg(feature = "sabotage")]
    bug: Option<Bug>,
}

impl Sabotage {
    /// Switches a bug on.
    #[cfg(feature = "sabotage")]
    pub(crate) fn with(bug: Bug) -> Self {
        Self { bug: Some(bug) }
    }

    /// Whether this bug is on.
    #[cfg(feature = "sabotage")]
    #[inline]
    pub(crate) fn has(self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether this bug is on: never, in this build.
    #[cfg(not(feature = "sabotage"))]
    #[inline]
    pub(crate) fn has(self, _bug: Bug) -> bool {
        false
    }

    /// Whether nothing is wrong on purpose.
    #[inline]
    pub(crate) fn is_off(self) -> bool {
        #[cfg(feature = "sabotage")]
        return self.bug.is_none();
        #[cfg(not(feature = "sabotage"))]
        true
    }
}
