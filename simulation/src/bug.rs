//! Drivers that are broken on purpose, to show that the checks bite. The state machines' own
//! deliberate bugs are switched on from outside, through [`crate::Options`].

/// One way for a driver of the simulation to be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SimBug {
    /// A full send buffer drops the message instead of closing the stream.
    DropOnFullBuffer,
    /// A worker sends heartbeats only while nothing runs.
    HeartbeatBehindWork,
    /// A worker's start finds files of its last life and leaves them.
    FileLeftAfterCrash,
    /// A worker's disk keeps what it was told to remove.
    DeleteForgotten,
    /// A run that was told to stop does, and never says so.
    StopNotTold,
    /// A run says twice how it ended.
    RunToldTwice,
    /// The fetcher does not compare checksums.
    FetchUnchecked,
    /// A stream hands over the second message first, now and then.
    MessagesSwapped,
    /// An API's timer comes two seconds late.
    TimerLate,
    /// A stream that the worker ended is never reported to the API.
    ClosedNotTold,
    /// A worker runs on for a second after it was told to stop.
    StopIgnored,
}

impl SimBug {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::DropOnFullBuffer,
        Self::HeartbeatBehindWork,
        Self::FileLeftAfterCrash,
        Self::DeleteForgotten,
        Self::StopNotTold,
        Self::RunToldTwice,
        Self::FetchUnchecked,
        Self::MessagesSwapped,
        Self::TimerLate,
        Self::ClosedNotTold,
        Self::StopIgnored,
    ];
}
