//! Journals: what was recorded replays to the same decisions; what was cut short, damaged or
//! tampered with is found out, and never brings the reader down.

use core_workcoord::config::{CoordinatorConfig, IntakeConfig};
use core_workcoord::coordinator::{Action, CloseReason, Coordinator, Input};
use core_workcoord::id::SessionId;
use core_workcoord::intake::Identity;
use core_workcoord::journal::{
    Header, JournalError, MAGIC, Recorder, Replayed, ReplayedStep, replay,
};
use core_workcoord::moment::Moment;
use proptest::prelude::any;
use proptest::sample::Index;

use super::{api_moves, api_world, cases, check, worker_moves, worker_world};
use crate::support::words::{W1, api};

/// The journal of a coordinator's life that chance made.
fn api_journal(knobs: CoordinatorConfig, moves: &[api_moves::Move]) -> Vec<u8> {
    let mut world = api_world::World::new(knobs);
    world.play(moves);
    world.recorder.take()
}

/// The journal of an intake's life that chance made.
fn worker_journal(knobs: IntakeConfig, moves: &[worker_moves::Move]) -> Vec<u8> {
    let mut world = worker_world::World::new(knobs);
    world.play(moves);
    world.recorder.take()
}

/// A short life of a coordinator: a worker is discovered, dialled, and the stream breaks.
fn small_journal(tamper: impl Fn(usize, &mut Vec<Action>)) -> Vec<u8> {
    let config = CoordinatorConfig::default();
    let header = Header::Coordinator { config: config.clone(), api_id: api("api-1"), seed: 7 };
    let mut recorder = Recorder::new(&header);
    let mut core = Coordinator::new(config, api("api-1"), 7).expect("the defaults fit together");
    let session = SessionId(1);
    let inputs = [
        Input::WorkerDiscovered { endpoint: W1.endpoint() },
        Input::StreamOpened { session },
        Input::StreamClosed { session },
        Input::Tick,
    ];
    for (step, input) in inputs.into_iter().enumerate() {
        let now = Moment::from_millis(1_000 * step as u64);
        core.handle(now, input.clone());
        let mut actions: Vec<Action> = std::iter::from_fn(|| core.poll_action()).collect();
        tamper(step, &mut actions);
        recorder.record::<Coordinator>(now, &input, &actions);
    }
    recorder.take()
}

#[track_caller]
fn replayed(journal: &[u8]) -> (Replayed, Vec<ReplayedStep>) {
    let mut steps = Vec::new();
    let told = replay(journal, |step| steps.push(step.clone()));
    (told.expect("it can be read").1, steps)
}

#[test]
fn a_recorded_life_of_a_coordinator_replays_to_the_same_decisions() {
    let lives = (api_moves::tight_knobs(), api_moves::moves(150));
    check(cases(100), 5, &lives, |(knobs, moves)| {
        let journal = api_journal(knobs.clone(), &moves);
        let (replayed, steps) = replayed(&journal);
        assert_eq!((replayed.different, replayed.truncated), (0, false));
        assert_eq!(replayed.steps, steps.len() as u64);
        assert!(steps.iter().all(|step| step.recorded.is_none()));
        assert_eq!(journal, api_journal(knobs, &moves), "the same life, the same journal");
    });
}

#[test]
fn a_recorded_life_of_an_intake_replays_to_the_same_decisions() {
    let lives = (worker_moves::tight_knobs(), worker_moves::moves(150));
    check(cases(100), 6, &lives, |(knobs, moves)| {
        let (replayed, _) = replayed(&worker_journal(knobs, &moves));
        assert_eq!((replayed.different, replayed.truncated), (0, false));
    });
}

#[test]
fn secrets_and_specs_are_not_written_down() {
    let lives = (api_moves::tight_knobs(), api_moves::moves(150));
    let contains = |journal: &[u8], word: &[u8]| journal.windows(word.len()).any(|at| at == word);
    check(20, 7, &lives, |(knobs, moves)| {
        let journal = api_journal(knobs, &moves);
        assert!(!contains(&journal, b"a leaf over some cells"));
        assert!(!contains(&journal, b"a secret token"));
    });
    let lives = (worker_moves::tight_knobs(), worker_moves::moves(150));
    check(20, 8, &lives, |(knobs, moves)| {
        let journal = worker_journal(knobs, &moves);
        assert!(!contains(&journal, b"a leaf over some cells"));
        assert!(!contains(&journal, b"a secret token"));
    });
}

#[test]
fn a_journal_cut_short_replays_what_is_whole_and_says_so() {
    let lives = (api_moves::tight_knobs(), api_moves::moves(60), any::<Index>());
    check(cases(200), 9, &lives, |(knobs, moves, cut)| {
        let journal = api_journal(knobs, &moves);
        let (whole, all) = replayed(&journal);
        let cut = cut.index(journal.len());
        let mut told = Vec::new();
        match replay(&journal[..cut], |step| told.push(step.clone())) {
            Ok((_, part)) => {
                assert!(part.steps < whole.steps);
                assert_eq!(part.different, 0);
                assert_eq!(told[..], all[..told.len()]);
            }
            Err(why) => assert_eq!(why, JournalError::NotAJournal, "not even its header is whole"),
        }
    });
}

#[test]
fn only_a_cut_between_two_steps_goes_unnoticed() {
    let journal = small_journal(|_, _| {});
    let (whole, _) = replayed(&journal);
    let mut clean = 0;
    for cut in 0..journal.len() {
        match replay(&journal[..cut], |_| {}) {
            Ok((_, part)) if part.truncated => assert!(part.steps < whole.steps),
            Ok((_, part)) => {
                assert_eq!(part.steps, clean, "cut at {cut}");
                clean += 1;
            }
            Err(why) => assert_eq!((why, clean), (JournalError::NotAJournal, 0), "cut at {cut}"),
        }
    }
    assert_eq!(clean, whole.steps, "once before each step");
}

#[test]
fn damaged_bytes_are_found_out() {
    let journal = small_journal(|_, _| {});
    for at in 0..journal.len() {
        for flip in [0x01, 0x10, 0x80, 0xff] {
            let mut damaged = journal.clone();
            damaged[at] ^= flip;
            match replay(&damaged, |_| {}) {
                Err(why) => assert!(!why.to_string().is_empty()),
                Ok((_, part)) => {
                    let found_out = part.truncated || part.different > 0;
                    assert!(found_out, "byte {at} with {flip:#x} flipped goes unnoticed: {part:?}");
                }
            }
        }
    }
}

#[test]
fn damaged_bytes_of_any_life_are_found_out() {
    let lives = (worker_moves::tight_knobs(), worker_moves::moves(60), any::<Index>(), 1..=u8::MAX);
    check(cases(300), 10, &lives, |(knobs, moves, at, flip)| {
        let mut journal = worker_journal(knobs, &moves);
        let at = at.index(journal.len());
        journal[at] ^= flip;
        if let Ok((_, part)) = replay(&journal, |_| {}) {
            assert!(part.truncated || part.different > 0, "byte {at}: {part:?}");
        }
    });
}

#[test]
fn no_bytes_bring_the_reader_down() {
    let bytes = proptest::collection::vec(any::<u8>(), 0..300);
    check(cases(3_000), 11, &bytes, |bytes| {
        // Most random bytes are no journal; with its first bytes right, some of it is read.
        let _ = replay(&bytes, |_| {});
        let journal: Vec<u8> = MAGIC.iter().copied().chain(bytes).collect();
        let _ = replay(&journal, |_| {});
    });
}

#[test]
fn random_bytes_in_place_of_a_step_are_damage_or_an_end_cut_short() {
    let bytes = proptest::collection::vec(any::<u8>(), 1..200);
    let honest = small_journal(|_, _| {});
    check(cases(2_000), 12, &bytes, |bytes| {
        let mut journal = honest.clone();
        journal.extend(&bytes);
        match replay(&journal, |_| {}) {
            Ok((_, part)) => assert!(part.truncated, "{part:?}"),
            Err(why) => assert_eq!(why, JournalError::Damaged { at: honest.len() }),
        }
    });
}

#[test]
fn a_length_beyond_reason_is_damage() {
    let honest = small_journal(|_, _| {});
    let mut journal = honest.clone();
    // 2^40 as a varint: more than any frame has, and more than there is memory for.
    journal.extend([0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0, 0, 0]);
    assert_eq!(
        replay(&journal, |_| {}).map(|_| ()),
        Err(JournalError::Damaged { at: honest.len() })
    );
}

#[test]
fn a_step_that_was_tampered_with_is_told_with_what_was_recorded() {
    let journal = small_journal(|step, actions| {
        if step == 1 {
            actions.clear();
            let reason = CloseReason::Silent;
            actions.push(Action::Close { session: SessionId(1), reason });
        }
    });
    let (told, steps) = replayed(&journal);
    assert_eq!((told.steps, told.different, told.truncated), (4, 1, false));
    let different: Vec<_> = steps.iter().filter(|step| step.recorded.is_some()).collect();
    let [step] = different[..] else { panic!("one step differs: {different:?}") };
    assert_eq!((step.number, step.now), (2, Moment::from_millis(1_000)));
    assert_eq!(step.input, "StreamOpened { session: s1 }");
    assert!(step.actions[0].contains("Hello"), "what it decides now: {:?}", step.actions);
    let recorded = step.recorded.as_deref().expect("it differs");
    assert_eq!(recorded, ["Close { session: s1, reason: Silent }"]);
}

#[test]
fn a_journal_tells_what_it_is_of() {
    let journal = small_journal(|_, _| {});
    let (header, told) = replay(&journal, |_| {}).expect("it can be read");
    assert!(matches!(header, Header::Coordinator { seed: 7, .. }), "{header:?}");
    assert_eq!(told, Replayed { steps: 4, different: 0, truncated: false });
    let mut newer = journal;
    newer[MAGIC.len() - 1] += 1;
    assert_eq!(replay(&newer, |_| {}).map(|_| ()), Err(JournalError::NotAJournal));
}

#[test]
fn knobs_that_make_no_sense_are_refused_on_replay() {
    let config = CoordinatorConfig { max_attempts: 0, ..CoordinatorConfig::default() };
    let header = Header::Coordinator { config, api_id: api("api-1"), seed: 7 };
    let refused = replay(&Recorder::new(&header).take(), |_| {}).map(|_| ());
    assert!(matches!(refused, Err(JournalError::Config(_))), "{refused:?}");
}

#[test]
fn steps_of_one_machine_under_the_header_of_the_other_are_damage() {
    let identity =
        Identity { worker_id: W1.id(), version: "1".into(), artifact_base_url: W1.base_url() };
    let header = Header::Intake { config: IntakeConfig::default(), identity };
    let mut recorder = Recorder::new(&header);
    let mut journal = recorder.take();
    let at = journal.len();
    let input = Input::WorkerGone { endpoint: W1.endpoint() };
    recorder.record::<Coordinator>(Moment::ZERO, &input, &[]);
    journal.extend(recorder.take());
    assert_eq!(replay(&journal, |_| {}).map(|_| ()), Err(JournalError::Damaged { at }));
}

#[test]
fn bytes_can_be_taken_bit_by_bit() {
    let config = CoordinatorConfig::default();
    let header = Header::Coordinator { config: config.clone(), api_id: api("api-1"), seed: 7 };
    let mut recorder = Recorder::new(&header);
    let mut core = Coordinator::new(config, api("api-1"), 7).expect("the defaults fit together");
    let mut journal = recorder.take();
    for step in 0..3 {
        core.handle(Moment::from_millis(step), Input::Tick);
        recorder.record::<Coordinator>(Moment::from_millis(step), &Input::Tick, &[]);
        journal.extend(recorder.take());
    }
    assert_eq!(recorder.take(), [], "nothing is given twice");
    assert_eq!(replayed(&journal).0, Replayed { steps: 3, different: 0, truncated: false });
}
