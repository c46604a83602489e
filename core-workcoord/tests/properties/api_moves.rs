//! Everything that can happen to an API node's coordinator, as moves that chance can draw: sensible
//! steps of workers that play along, trouble, and nonsense with names from pools so small that they
//! collide. `api_world` makes inputs of them.

use std::time::Duration;

use core_workcoord::config::CoordinatorConfig;
use proptest::prelude::{Just, Strategy, any, prop_oneof};

/// Something that happens. Numbers choose from what there is, counted from the newest.
#[derive(Clone, Debug)]
pub enum Move {
    Discover(u8),
    Gone(u8),
    /// A stream is opened, its worker introduces itself and takes work; or says so again.
    Connect(u8),
    Open(u8),
    Close(u8),
    Malformed(u8),
    Welcome(u8, u8),
    Status(u8, u8, u8),
    Heartbeat(u8, u8),
    /// Every worker is heard of.
    Alive,
    /// An attempt comes one sensible step further, up to its fetch.
    Advance(u8),
    /// An attempt goes wrong the way it can where it is.
    Spoil(u8, bool),
    /// A worker says something of an attempt, sensible or not.
    Answer(u8, u8),
    /// A session says something of work it may never have heard of.
    Nonsense(u8, u128, u32, u32, u8),
    /// What was said before is said again, out of turn.
    Again(u8),
    ConfirmCancel(u8),
    EndFetch(u8, u8),
    StrangeFetch(u8, u128, u32, u32, u8),
    Submit {
        query: u128,
        tenant: u8,
        items: u32,
        window: u32,
        deadline: u64,
    },
    Consume(u128, u32),
    CancelQuery(u128),
    /// Milliseconds pass, and the clock is looked at.
    Pass(u16),
    /// The clock goes back.
    Back(u16),
    /// Time passes until something is due.
    Due,
}

/// Moves, the sensible ones more often, so that stories get somewhere before they go wrong.
pub fn moves(most: usize) -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![40 => sensible(), 4 => trouble(), 1 => nonsense()];
    proptest::collection::vec(one, 1..most)
}

fn few() -> std::ops::Range<u8> {
    0..6
}

fn query() -> std::ops::Range<u128> {
    1..9
}

fn sensible() -> impl Strategy<Value = Move> {
    let submission = (query(), 0..3_u8, 0..7_u32, 0..5_u32, 0..30_000_u64);
    let submit = submission.prop_map(|(query, tenant, items, window, deadline)| Move::Submit {
        query,
        tenant,
        items,
        window,
        deadline,
    });
    let status = (few(), 3..8_u8, 0..4_u8);
    prop_oneof![
        3 => (0..4_u8).prop_map(Move::Discover),
        12 => few().prop_map(Move::Connect),
        3 => status.prop_map(|(at, kind, slots)| Move::Status(at, kind, slots)),
        12 => Just(Move::Alive),
        50 => (0..12_u8).prop_map(Move::Advance),
        8 => few().prop_map(Move::ConfirmCancel),
        10 => submit,
        4 => (query(), 0..8_u32).prop_map(|(query, through)| Move::Consume(query, through)),
        8 => (0..300_u16).prop_map(Move::Pass),
        2 => Just(Move::Due),
    ]
}

fn trouble() -> impl Strategy<Value = Move> {
    let status = (few(), 0..3_u8, 0..4_u8);
    prop_oneof![
        2 => few().prop_map(Move::Close),
        2 => status.prop_map(|(at, kind, slots)| Move::Status(at, kind, slots)),
        1 => (0..4_u8).prop_map(Move::Gone),
        10 => (0..8_u8, any::<bool>()).prop_map(|(at, lasting)| Move::Spoil(at, lasting)),
        4 => (few(), 0..8_u8).prop_map(|(at, result)| Move::EndFetch(at, result)),
        1 => query().prop_map(Move::CancelQuery),
        1 => (0..9_000_u16).prop_map(Move::Pass),
    ]
}

fn nonsense() -> impl Strategy<Value = Move> {
    let any_work = || (few(), query(), 0..6_u32, 0..4_u32, 0..11_u8);
    prop_oneof![
        few().prop_map(Move::Open),
        few().prop_map(Move::Malformed),
        (few(), 0..4_u8).prop_map(|(at, name)| Move::Welcome(at, name)),
        (few(), any::<u8>()).prop_map(|(at, seq)| Move::Heartbeat(at, seq)),
        (0..12_u8, 0..11_u8).prop_map(|(at, answer)| Move::Answer(at, answer)),
        any_work().prop_map(|(at, query, item, attempt, answer)| {
            Move::Nonsense(at, query, item, attempt, answer)
        }),
        (0..20_u8).prop_map(Move::Again),
        any_work().prop_map(|(at, query, item, attempt, result)| {
            Move::StrangeFetch(at, query, item, attempt, result)
        }),
        (0..5_000_u16).prop_map(Move::Back),
    ]
}

/// Knobs at which every limit is soon reached.
pub fn tight_knobs() -> impl Strategy<Value = CoordinatorConfig> {
    let placement = (0..3_u32, 1..5_u32);
    let limits = (1..5_u32, 1..4_u32, 1..5_u32, 4..30_u32);
    let fetches = (1..3_u32, 1..4_u32);
    let hedges = (0..3_u32, 0..5_u64);
    (placement, limits, fetches, hedges).prop_map(|(placement, limits, fetches, hedges)| {
        CoordinatorConfig {
            worker_queue_ahead: placement.0,
            query_window: placement.1,
            max_attempts: limits.0,
            poison_workers: limits.1,
            max_tenant_queries: limits.2,
            max_queued_items: limits.3,
            max_query_items: 6,
            max_fetches: fetches.0,
            max_fetch_bytes: u64::from(fetches.1) * 1_000,
            max_artifact_bytes: 4_000,
            hedge_budget_per_mille: hedges.0 * 500,
            hedge_factor: 1.0,
            hedge_floor: Duration::from_millis(hedges.1),
            answer_timeout: Duration::from_millis(1_500),
            ..CoordinatorConfig::default()
        }
    })
}
