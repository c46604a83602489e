//! The intake under arbitrary sequences of inputs.

use core_workcoord::intake::Counts;

use super::worker_moves::{moves, tight_knobs};
use super::worker_world::World;
use super::{cases, check};

#[test]
fn no_sequence_of_inputs_breaks_a_promise_or_leaves_anything_behind() {
    check(cases(400), 4, &(tight_knobs(), moves(200)), |(knobs, moves)| {
        let mut world = World::new(knobs);
        world.play(&moves);
        world.wind_down();
    });
}

#[test]
fn the_moves_get_somewhere() {
    let seen = std::cell::RefCell::new(Counts::default());
    check(400, 4, &(tight_knobs(), moves(200)), |(knobs, moves)| {
        let mut world = World::new(knobs);
        world.play(&moves);
        seen.borrow_mut().merge(world.core.counts());
    });
    let seen = seen.into_inner();
    for (name, count) in seen.each() {
        assert!(count >= 20, "{name}: {count} times only; {seen:?}");
    }
}
