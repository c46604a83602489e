//! The coordinator under arbitrary sequences of inputs.

use core_workcoord::coordinator::Counts;

use super::api_moves::{moves, tight_knobs};
use super::api_world::World;
use super::{cases, check};

#[test]
fn no_sequence_of_inputs_breaks_a_promise_or_leaves_anything_behind() {
    check(cases(400), 1, &(tight_knobs(), moves(300)), |(knobs, moves)| {
        let mut world = World::new(knobs);
        world.play(&moves);
        world.wind_down();
    });
}

#[test]
fn every_query_ends_exactly_once_when_time_runs_past_its_deadline() {
    check(cases(200), 2, &(tight_knobs(), moves(200)), |(knobs, moves)| {
        let mut world = World::new(knobs);
        world.play(&moves);
        world.outlive_every_deadline();
        world.wind_down();
    });
}

#[test]
fn the_moves_get_somewhere() {
    // Properties that never see a hedge, a drain or a mismatch would show little.
    let seen = std::cell::RefCell::new(Counts::default());
    check(400, 1, &(tight_knobs(), moves(300)), |(knobs, moves)| {
        let mut world = World::new(knobs);
        world.play(&moves);
        seen.borrow_mut().merge(world.core.counts());
    });
    let seen = seen.into_inner();
    for (name, count) in seen.each() {
        assert!(count > 0 || name == "diverged", "{name}: {count} times only; {seen:?}");
    }
}
