//! Whatever bytes a peer sends: no panic, and what is accepted is a message that can be said again
//! word for word. `TRIBUTARY_FUZZ_CASES` sets how many inputs each test tries (20,000).

mod arbitrary;

use std::cell::Cell;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any, prop_assert_eq, prop_oneof};
use proptest::sample::{Index, select};
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use prost::encoding::{WireType, encode_key, encode_varint};
use tributary_proto::decode::DecodeError;
use tributary_proto::limits::{API_MESSAGE_MAX_BYTES, WORKER_MESSAGE_MAX_BYTES};
use tributary_proto::{decode, encode};

/// Fewer inputs than this may well all be refused, or all accepted.
const ENOUGH_TO_JUDGE: u32 = 1_000;

fn cases() -> u32 {
    match std::env::var("TRIBUTARY_FUZZ_CASES") {
        Ok(text) => text.parse().expect("TRIBUTARY_FUZZ_CASES is a number"),
        Err(_) => 20_000,
    }
}

/// Gives both readers the same bytes; says whether one of them took them.
fn read(bytes: &[u8]) -> Result<bool, TestCaseError> {
    let mut accepted = false;
    if let Ok(heard) = decode::api_message(Bytes::copy_from_slice(bytes)) {
        prop_assert_eq!(decode::api_message(encode::api_message(heard.clone())), Ok(heard));
        accepted = true;
    }
    if let Ok(heard) = decode::worker_message(Bytes::copy_from_slice(bytes)) {
        prop_assert_eq!(decode::worker_message(encode::worker_message(heard.clone())), Ok(heard));
        accepted = true;
    }
    Ok(accepted)
}

/// Tries every input; returns how many were accepted, and how many refused.
fn fuzz(inputs: impl Strategy<Value = Vec<u8>>) -> (u32, u32) {
    let accepted = Cell::new(0);
    let cases = cases();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let result = TestRunner::new(config).run(&inputs, |bytes| {
        accepted.set(accepted.get() + u32::from(read(&bytes)?));
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    (accepted.get(), cases - accepted.get())
}

fn valid() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        arbitrary::api_message().prop_map(|said| encode::api_message(said).to_vec()),
        arbitrary::worker_message().prop_map(|said| encode::worker_message(said).to_vec()),
    ]
}

/// Something that goes wrong on the way.
#[derive(Clone, Debug)]
enum Damage {
    Truncate(Index),
    FlipBit(Index),
    Overwrite(Index, u8),
    Insert(Index, Vec<u8>),
    Remove(Index, u8),
    Append(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<Index>().prop_map(Damage::Truncate),
        any::<Index>().prop_map(Damage::FlipBit),
        any::<(Index, u8)>().prop_map(|(at, byte)| Damage::Overwrite(at, byte)),
        (any::<Index>(), vec(any::<u8>(), 1..9)).prop_map(|(at, new)| Damage::Insert(at, new)),
        (any::<Index>(), 1..9_u8).prop_map(|(at, len)| Damage::Remove(at, len)),
        vec(any::<u8>(), 1..40).prop_map(Damage::Append),
    ]
}

fn apply(damage: Damage, bytes: &mut Vec<u8>) {
    if bytes.is_empty() {
        return;
    }
    match damage {
        Damage::Truncate(at) => bytes.truncate(at.index(bytes.len())),
        Damage::FlipBit(at) => {
            let bit = at.index(bytes.len() * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        Damage::Overwrite(at, byte) => {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        Damage::Insert(at, new) => {
            let at = at.index(bytes.len());
            bytes.splice(at..at, new);
        }
        Damage::Remove(at, len) => {
            let at = at.index(bytes.len());
            bytes.drain(at..bytes.len().min(at + usize::from(len)));
        }
        Damage::Append(new) => bytes.extend(new),
    }
}

/// A field as no honest peer would choose it: right shape, any number, any content.
fn field(inner: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let content = prop_oneof![
        any::<u64>().prop_map(varint),
        (0..12_u64).prop_map(varint),
        any::<u64>().prop_map(|n| (WireType::SixtyFourBit, n.to_le_bytes().to_vec())),
        any::<u32>().prop_map(|n| (WireType::ThirtyTwoBit, n.to_le_bytes().to_vec())),
        inner.prop_map(|bytes| {
            let mut content = Vec::new();
            encode_varint(bytes.len() as u64, &mut content);
            content.extend(bytes);
            (WireType::LengthDelimited, content)
        }),
    ];
    (1..14_u32, content).prop_map(|(number, (wire_type, content))| {
        let mut bytes = Vec::new();
        encode_key(number, wire_type, &mut bytes);
        bytes.extend(content);
        bytes
    })
}

fn varint(value: u64) -> (WireType, Vec<u8>) {
    let mut content = Vec::new();
    encode_varint(value, &mut content);
    (WireType::Varint, content)
}

/// An envelope of any kind around any fields, many of which hold what some field is happy with.
fn plausible() -> impl Strategy<Value = Vec<u8>> {
    let query = "0123456789abcdef0123456789abcdef";
    let texts = vec![
        query.to_owned(),
        format!("{query}-0"),
        format!("{query}-4294967295"),
        format!("{query}-00"),
        "ab".repeat(32),
        "AB".repeat(32),
        "worker-1".to_owned(),
        "http://worker-1:9001/artifacts/1".to_owned(),
        "two words".to_owned(),
        "x".repeat(5_000),
        String::new(),
    ];
    // Two varints in the places of a span of time: negative, too large, or just right.
    let span = any::<(i64, i32)>().prop_map(|(seconds, nanos)| {
        let mut bytes = Vec::new();
        for (number, value) in [(1, seconds), (2, i64::from(nanos))] {
            encode_key(number, WireType::Varint, &mut bytes);
            encode_varint(value.cast_unsigned(), &mut bytes);
        }
        bytes
    });
    let inner = prop_oneof![
        4 => select(texts).prop_map(String::into_bytes),
        1 => span,
        1 => vec(any::<u8>(), 0..20),
    ];
    let envelope = field(vec(field(inner), 0..8).prop_map(|fields| fields.concat()));
    vec(envelope, 0..3).prop_map(|envelopes| envelopes.concat())
}

#[test]
fn noise_is_survived() {
    fuzz(vec(any::<u8>(), 0..256));
}

#[test]
fn damaged_messages_are_refused_or_make_sense() {
    let inputs = (valid(), vec(damage(), 1..4)).prop_map(|(mut bytes, damages)| {
        damages.into_iter().for_each(|damage| apply(damage, &mut bytes));
        bytes
    });
    let (accepted, refused) = fuzz(inputs);
    if cases() >= ENOUGH_TO_JUDGE {
        assert!(accepted > 0, "damage inside a free text goes unnoticed");
        assert!(refused > 0, "damage elsewhere is found");
    }
}

#[test]
fn plausible_messages_are_refused_or_make_sense() {
    let (accepted, refused) = fuzz(plausible());
    if cases() >= ENOUGH_TO_JUDGE {
        assert!(accepted > 0, "a heartbeat takes any numbers");
        assert!(refused > 0, "few other messages do");
    }
}

#[test]
fn two_messages_in_one_are_refused_or_make_sense() {
    fuzz((valid(), valid()).prop_map(|(one, other)| [one, other].concat()));
}

#[test]
fn every_truncation_of_a_message_is_refused_or_makes_sense() {
    let config =
        Config { cases: cases() / 100 + 1, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&valid(), |bytes| (0..bytes.len()).try_for_each(|len| read(&bytes[..len]).map(drop)))
        .unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn an_oversized_message_is_refused_before_it_is_read() {
    for (len, lie) in [(API_MESSAGE_MAX_BYTES + 1, 0x00), (API_MESSAGE_MAX_BYTES + 1, 0xff)] {
        let bytes = Bytes::from(vec![lie; len]);
        let too_large = |max| DecodeError::TooLarge { len, max };
        assert_eq!(decode::api_message(bytes.clone()), Err(too_large(API_MESSAGE_MAX_BYTES)));
        assert_eq!(decode::worker_message(bytes), Err(too_large(WORKER_MESSAGE_MAX_BYTES)));
    }
}

#[test]
fn a_length_that_promises_more_than_there_is_costs_nothing() {
    let mut bytes = Vec::new();
    encode_key(2, WireType::LengthDelimited, &mut bytes);
    encode_varint(u64::MAX >> 1, &mut bytes);
    let refused = decode::api_message(Bytes::from(bytes));
    assert!(matches!(refused, Err(DecodeError::NotProtobuf(_))), "{refused:?}");
}

#[test]
fn nothing_at_all_is_no_kind_of_message() {
    assert_eq!(decode::api_message(Bytes::new()), Err(DecodeError::UnknownKind));
    assert_eq!(decode::worker_message(Bytes::new()), Err(DecodeError::UnknownKind));
    // Kind 15, as a newer peer may know it.
    let newer = Bytes::from_static(&[0x7a, 0x00]);
    assert_eq!(decode::api_message(newer.clone()), Err(DecodeError::UnknownKind));
    assert_eq!(decode::worker_message(newer), Err(DecodeError::UnknownKind));
}

#[test]
fn the_empty_body_of_every_kind_is_told_what_it_lacks() {
    let body_of = |kind: u32| {
        let mut bytes = Vec::new();
        encode_key(kind, WireType::LengthDelimited, &mut bytes);
        encode_varint(0, &mut bytes);
        Bytes::from(bytes)
    };
    let missing = |field| Err(DecodeError::Missing { field });
    for (kind, field) in [
        (1, "Hello.api_id"),
        (2, "AssignWork.query_id"),
        (3, "CancelWork.work_id"),
        (4, "ArtifactAck.work_id"),
    ] {
        assert_eq!(decode::api_message(body_of(kind)).map(drop), missing(field));
    }
    for (kind, field) in [
        (1, "Welcome.worker_id"),
        (4, "WorkAccepted.work_id"),
        (5, "WorkStarted.work_id"),
        (6, "WorkRejected.work_id"),
        (7, "WorkReady.work_id"),
        (8, "WorkFailed.work_id"),
        (9, "WorkCancelled.work_id"),
        (10, "ArtifactLost.work_id"),
    ] {
        assert_eq!(decode::worker_message(body_of(kind)).map(drop), missing(field));
    }
}
