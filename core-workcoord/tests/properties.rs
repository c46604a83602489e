//! What holds for every sequence of inputs, sensible or not: no panic, every promise kept, every
//! query ended once, nothing left behind, journals that replay to the same decisions, and a
//! placement that disturbs no more than it must. Chance comes from fixed seeds; the number of cases
//! is `TRIBUTARY_FUZZ_CASES` where that is set.

mod support;

mod properties {
    mod api_moves;
    mod api_world;
    mod coordinator;
    mod intake;
    mod journal;
    mod rotation;
    mod worker_moves;
    mod worker_world;

    use proptest::strategy::Strategy;
    use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};

    /// How many cases to try.
    fn cases(default: u32) -> u32 {
        let asked = std::env::var("TRIBUTARY_FUZZ_CASES");
        asked.ok().and_then(|number| number.parse().ok()).unwrap_or(default)
    }

    /// Tries a property on this many values; a failure is shrunk and told.
    #[track_caller]
    fn check<S: Strategy>(cases: u32, seed: u64, values: &S, property: impl Fn(S::Value)) {
        let config = Config {
            cases,
            rng_seed: RngSeed::Fixed(seed),
            failure_persistence: None,
            max_shrink_iters: 2_000,
            ..Config::default()
        };
        let tried = TestRunner::new(config).run(values, |value| {
            property(value);
            Ok(())
        });
        match tried {
            Ok(()) => {}
            Err(TestError::Fail(why, least)) => panic!("{why}\nleast failing case: {least:#?}"),
            Err(TestError::Abort(why)) => panic!("given up: {why}"),
        }
    }
}
