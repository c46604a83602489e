//! Whatever bytes a store gives for the files of a segment: an error that names the file, or the
//! data that was written; never a panic, never more memory than the limits of the format allow.
//! `TRIBUTARY_FUZZ_CASES` sets how many files the tests try (20,000); a failure prints its seed.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]
#![allow(clippy::cast_possible_truncation, reason = "small figures, on machines of 64 bits")]

#[path = "../common/mod.rs"]
mod common;
mod forger;

use std::cell::Cell;

use bytes::Bytes;
use peak_alloc::PeakAlloc;
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_oneof};
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tributary_segment::{MatchOp, Matcher, SegmentError, TimeRange};

use common::{Chance, Files, Model, label_set, read_all, read_some, scraped};
use forger::Forger;

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What the tests together may take: a page of texts may be as large as 256 MiB, and claim to be
/// for as long as it takes to find out that it is not.
const MOST_MIB: f32 = 1_024.0;

const SERIES: &str = "a.series.parquet";
const SAMPLES: &str = "a.samples.parquet";

fn cases() -> u32 {
    u32::try_from(common::fuzz_cases(20_000)).unwrap()
}

/// A small segment with pages of every layout: shared times, dictionaries, noise.
fn files() -> Files {
    let mut series = scraped("counter_total", 3, 2, 20);
    let mut chance = Chance(9);
    for host in ["a", "b", "c", "é"] {
        let ts: Vec<i64> = (0..30).map(|i| i * 1_000).collect();
        let percent = ts.iter().map(|t| (t / 1_000 % 7) as f64 / 10.0).collect();
        series.push((label_set(&[("__name__", "cpu"), ("host", host)]), ts, percent));
    }
    let ts: Vec<i64> = vec![i64::MIN, -1, 0, 1, 5_000, i64::MAX];
    let noise = ts.iter().map(|_| f64::from_bits(chance.next())).collect();
    series.push((label_set(&[("__name__", "noise")]), ts, noise));
    Files::of_series(&series)
}

/// Opens the files and reads everything, as a whole and in part.
fn read(files: &Files) -> Result<Model, SegmentError> {
    let segment = files.open()?;
    let all = read_all(&segment)?;
    let index = segment.index();
    let _ = (index.time_bounds(), index.metrics().count(), index.families().count());
    for name in index.label_names() {
        let _ = index.label_values(name);
    }
    for (name, op, value) in [
        ("__name__", MatchOp::Equal, "cpu"),
        ("host", MatchOp::NotEqual, "a"),
        ("host", MatchOp::Regex, "a|b.*"),
        ("code", MatchOp::NotRegex, ".+0"),
    ] {
        let matcher = Matcher::new(name, op, value).unwrap();
        let range = TimeRange { start: 0, end: 10_000 };
        let chosen = index.select(&[matcher], range);
        let _ = segment.byte_ranges(&chosen);
        let some = read_some(&segment, &chosen, range)?;
        assert!(some.len() <= chosen.len());
    }
    Ok(all)
}

/// Tries every input; returns how many were refused.
fn fuzz<T: std::fmt::Debug>(
    cases: u32,
    inputs: impl Strategy<Value = T>,
    attempt: impl Fn(T) -> Result<Result<Model, SegmentError>, TestCaseError>,
) -> u32 {
    let refused = Cell::new(0);
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&inputs, |input| {
        if let Err(error) = attempt(input)? {
            refused.set(refused.get() + 1);
            let text = error.to_string();
            prop_assert!(text.contains(SERIES) || text.contains(SAMPLES), "{text}");
        }
        let peak = MEMORY.peak_usage_as_mb();
        prop_assert!(peak < MOST_MIB, "{peak} MiB");
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    refused.get()
}

/// Something that happens to bytes.
#[derive(Clone, Debug)]
enum Damage {
    Cut(Index),
    Flip(Index, u8),
    Set(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, usize),
    Copy(Index, Index, usize),
}

fn damage() -> impl Strategy<Value = Damage> {
    let index = any::<Index>;
    prop_oneof![
        1 => index().prop_map(Damage::Cut),
        3 => (index(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        2 => (index(), select(vec![0, 1, 0x7f, 0x80, 0xff])).prop_map(|(at, to)| Damage::Set(at, to)),
        1 => (index(), vec(any::<u8>(), 1..9)).prop_map(|(at, new)| Damage::Insert(at, new)),
        1 => (index(), 1..9_usize).prop_map(|(at, len)| Damage::Remove(at, len)),
        // Shorter than any page: a whole page in another's place goes unnoticed if both are as long.
        1 => (index(), index(), 1..16_usize).prop_map(|(to, from, len)| Damage::Copy(to, from, len)),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let len = bytes.len();
        if len == 0 {
            return;
        }
        match self {
            Self::Cut(at) => bytes.truncate(at.index(len)),
            Self::Flip(at, bit) => bytes[at.index(len)] ^= 1 << bit,
            Self::Set(at, to) => bytes[at.index(len)] = *to,
            Self::Insert(at, new) => {
                let at = at.index(len);
                bytes.splice(at..at, new.iter().copied());
            }
            Self::Remove(at, count) => {
                let at = at.index(len);
                bytes.drain(at..len.min(at + count));
            }
            Self::Copy(to, from, count) => {
                let (to, from) = (to.index(len), from.index(len));
                let count = (*count).min(len - to.max(from));
                bytes.copy_within(from..from + count, to);
            }
        }
    }

    /// The same damage, if it leaves bytes as many as they are.
    fn in_place(self) -> Option<Self> {
        matches!(self, Self::Flip(..) | Self::Set(..) | Self::Copy(..)).then_some(self)
    }
}

fn changed(bytes: &Bytes, damages: &[Damage]) -> Bytes {
    let mut bytes = bytes.to_vec();
    damages.iter().for_each(|damage| damage.apply(&mut bytes));
    bytes.into()
}

#[test]
fn noise_is_no_segment() {
    let files = files();
    let noise = vec(any::<u8>(), 0..400);
    let ends = prop_oneof![
        Just(Vec::new()),
        (0..500_u32).prop_map(|len| [&len.to_le_bytes()[..], b"PAR1"].concat()),
        any::<u32>().prop_map(|len| [&len.to_le_bytes()[..], b"PAR1"].concat()),
    ];
    let cases = cases();
    let refused = fuzz(cases, (noise, ends, any::<bool>()), |(noise, end, as_series)| {
        let bytes = Bytes::from([noise, end].concat());
        let bad = if as_series {
            Files { series: bytes, ..files.clone() }
        } else {
            Files { samples: bytes, ..files.clone() }
        };
        Ok(read(&bad))
    });
    assert_eq!(refused, cases);
}

#[test]
fn damaged_files_are_refused_or_hold_what_was_written() {
    let files = files();
    let good = read(&files).unwrap();
    let cases = cases();
    let refused = fuzz(cases, (vec(damage(), 1..4), any::<bool>()), |(damages, of_series)| {
        let mut bad = files.clone();
        let file = if of_series { &mut bad.series } else { &mut bad.samples };
        *file = changed(file, &damages);
        let outcome = read(&bad);
        if let Ok(model) = &outcome {
            prop_assert!(*model == good, "the data has changed");
        }
        Ok(outcome)
    });
    assert!(refused * 2 > cases, "{refused} of {cases} were refused");
}

/// Whoever can write files can also seal them: nothing behind the seal may be believed.
#[test]
fn forged_ends_of_files_do_no_harm() {
    let files = files();
    let forger = Forger::new(&files);
    let in_place = damage().prop_filter_map("keeps the length", Damage::in_place);
    let refused =
        fuzz(cases() / 2, (vec(in_place, 1..4), any::<bool>()), |(damages, of_series)| {
            Ok(read(&forger.with_end(of_series, |end| {
                let mut bytes = end.to_vec();
                damages.iter().for_each(|damage| damage.apply(&mut bytes));
                end.copy_from_slice(&bytes);
            })))
        });
    assert!(refused > 0, "most changes make no sense");
}

#[test]
fn forged_pages_do_no_harm() {
    let files = files();
    let forger = Forger::new(&files);
    let in_place = damage().prop_filter_map("keeps the length", Damage::in_place);
    let forged = Cell::new(0);
    let inputs = (any::<Index>(), vec(in_place, 1..4), any::<bool>());
    let cases = cases() / 4;
    let refused = fuzz(cases, inputs, |(page, damages, of_series)| {
        let page = page.index(forger.pages(of_series));
        let files = forger.with_page(of_series, page, |body| {
            damages.iter().for_each(|damage| damage.apply(body));
        });
        match files {
            Some(files) => {
                forged.set(forged.get() + 1);
                Ok(read(&files))
            }
            // What was changed did not fit into the place of the page.
            None => Ok(Ok(Model::new())),
        }
    });
    let forged = forged.get();
    assert!(forged * 10 > cases, "{forged} of {cases} were forged");
    assert!((1..forged).contains(&refused), "{refused} of {forged} were refused");
}

#[test]
fn no_single_damaged_byte_changes_samples_unnoticed() {
    let files = files();
    let good = read(&files).unwrap();
    for at in 0..files.samples.len() {
        let byte = files.samples[at];
        for new in (0..8).map(|bit| byte ^ (1 << bit)).chain([0, 1, 0x7f, 0x80, 0xff]) {
            let mut bytes = files.samples.to_vec();
            bytes[at] = new;
            let bad = Files { samples: bytes.into(), ..files.clone() };
            if let Ok(model) = read(&bad) {
                assert!(model == good, "byte {at} became {new} and nobody noticed");
            }
        }
    }
}
