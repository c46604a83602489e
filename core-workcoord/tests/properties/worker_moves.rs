//! Everything that can happen to a worker's intake, as moves that chance can draw: API nodes that
//! play along, trouble, and nonsense with names from pools so small that they collide.
//! `worker_world` makes inputs of them.

use std::time::Duration;

use core_workcoord::config::IntakeConfig;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

/// Something that happens. Numbers choose from what there is, counted from the newest.
#[derive(Clone, Debug)]
pub enum Move {
    /// A new stream is opened and an API node introduces itself.
    Greet(u8),
    /// A stream is opened under a number that may be in use.
    Open(u64),
    Hello {
        session: u64,
        api: u8,
        number: u64,
        version: u32,
    },
    Close(u8),
    Malformed(u8),
    Heartbeat(u8),
    Assign {
        session: u8,
        query: u128,
        item: u32,
        attempt: u32,
        millis: u64,
    },
    /// Something that was accepted is cancelled.
    Cancel(u8),
    /// Anything is cancelled.
    CancelAny {
        session: u64,
        query: u128,
        item: u32,
        attempt: u32,
    },
    /// Something that was announced is acknowledged.
    Acknowledge(u8),
    AcknowledgeAny {
        session: u64,
        query: u128,
        item: u32,
        right: bool,
    },
    /// A run that is under way ends: finished, failed, or stopped.
    EndRun(u8, u8),
    /// A run that was told to stop does.
    ObeyStop(u8),
    /// Something is said of any run.
    StrangeRun(u64, u8),
    Evict(u8),
    Disk(bool),
    Drain,
    Pass(u16),
    Back(u16),
    Due,
}

/// Moves, the sensible ones more often, so that stories get somewhere before they go wrong.
pub fn moves(most: usize) -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![30 => sensible(), 4 => trouble(), 1 => nonsense()];
    proptest::collection::vec(one, 1..most)
}

fn few() -> std::ops::Range<u8> {
    0..5
}

fn sensible() -> impl Strategy<Value = Move> {
    let assign = (few(), 1..4_u128, 0..6_u32, 1..4_u32, 1..9_000_u64);
    let assign = assign.prop_map(|(session, query, item, attempt, millis)| Move::Assign {
        session,
        query,
        item,
        attempt,
        millis,
    });
    prop_oneof![
        4 => (0..4_u8).prop_map(Move::Greet),
        6 => few().prop_map(Move::Heartbeat),
        25 => assign,
        5 => few().prop_map(Move::Cancel),
        8 => few().prop_map(Move::Acknowledge),
        16 => (few(), 0..6_u8).prop_map(|(at, end)| Move::EndRun(at, end)),
        6 => few().prop_map(Move::ObeyStop),
        5 => (0..500_u16).prop_map(Move::Pass),
        2 => Just(Move::Due),
    ]
}

fn trouble() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => few().prop_map(Move::Close),
        4 => few().prop_map(Move::Evict),
        4 => any::<bool>().prop_map(Move::Disk),
        2 => (0..9_000_u16).prop_map(Move::Pass),
        1 => Just(Move::Drain),
    ]
}

fn nonsense() -> impl Strategy<Value = Move> {
    let hello = (0..9_u64, 0..4_u8, 0..4_u64, 0..3_u32);
    let cancel = (0..9_u64, 1..4_u128, 0..6_u32, 0..4_u32);
    let acknowledge = (0..9_u64, 1..4_u128, 0..6_u32, any::<bool>());
    prop_oneof![
        (0..9_u64).prop_map(Move::Open),
        hello.prop_map(|(session, api, number, version)| Move::Hello {
            session,
            api,
            number,
            version
        }),
        few().prop_map(Move::Malformed),
        cancel.prop_map(|(session, query, item, attempt)| Move::CancelAny {
            session,
            query,
            item,
            attempt
        }),
        acknowledge.prop_map(|(session, query, item, right)| Move::AcknowledgeAny {
            session,
            query,
            item,
            right
        }),
        (0..40_u64, 0..6_u8).prop_map(|(run, kind)| Move::StrangeRun(run, kind)),
        (0..5_000_u16).prop_map(Move::Back),
    ]
}

/// Knobs at which every limit is soon reached.
pub fn tight_knobs() -> impl Strategy<Value = IntakeConfig> {
    (1..4_u32, 0..4_u32, 1..5_u32, 1..10_u64).prop_map(|(slots, queue_limit, max_sessions, ttl)| {
        IntakeConfig {
            slots,
            queue_limit,
            max_sessions,
            artifact_ttl: Duration::from_secs(ttl),
            artifact_ttl_after_ack: Duration::from_millis(ttl * 100),
            drain_timeout: Duration::from_secs(8),
            ..IntakeConfig::default()
        }
    })
}
