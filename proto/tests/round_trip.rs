//! Every message reads back as it was written, and fits the size its receiver takes.

mod arbitrary;

use bytes::Bytes;
use core_workcoord::id::{AffinityKey, Attempt, LeafId, QueryId, TenantId, WorkId};
use core_workcoord::message::{ApiMessage, AssignWork};
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};
use tributary_proto::decode::DecodeError;
use tributary_proto::limits::{API_MESSAGE_MAX_BYTES, SPEC_MAX_BYTES, WORKER_MESSAGE_MAX_BYTES};
use tributary_proto::{decode, encode};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn what_an_api_node_says_is_what_the_worker_hears(said in arbitrary::api_message()) {
        let bytes = encode::api_message(said.clone());
        prop_assert!(bytes.len() <= API_MESSAGE_MAX_BYTES);
        prop_assert_eq!(decode::api_message(bytes), Ok(said));
    }

    #[test]
    fn what_a_worker_says_is_what_the_api_node_hears(said in arbitrary::worker_message()) {
        let bytes = encode::worker_message(said.clone());
        prop_assert!(bytes.len() <= WORKER_MESSAGE_MAX_BYTES);
        prop_assert_eq!(decode::worker_message(bytes), Ok(said));
    }
}

fn work_with_spec(len: usize) -> ApiMessage {
    ApiMessage::AssignWork(AssignWork {
        query_id: QueryId(u128::MAX),
        leaf_id: LeafId(u32::MAX),
        work_id: WorkId { query: QueryId(u128::MAX), item: u32::MAX },
        attempt: Attempt(u32::MAX),
        affinity_key: AffinityKey(u64::MAX),
        tenant: TenantId::new(&"t".repeat(253)).expect("the longest name"),
        deadline: std::time::Duration::MAX,
        traceparent: "x".repeat(256),
        spec: Bytes::from(vec![7; len]),
    })
}

#[test]
fn the_longest_spec_fits_with_the_longest_of_everything_around_it() {
    let bytes = encode::api_message(work_with_spec(SPEC_MAX_BYTES));
    assert!(bytes.len() <= API_MESSAGE_MAX_BYTES);
    let Ok(ApiMessage::AssignWork(heard)) = decode::api_message(bytes) else { panic!("refused") };
    assert_eq!(heard.spec.len(), SPEC_MAX_BYTES);
}

#[test]
fn a_longer_spec_is_refused_by_name() {
    let bytes = encode::api_message(work_with_spec(SPEC_MAX_BYTES + 1));
    let (field, len) = ("AssignWork.spec", SPEC_MAX_BYTES + 1);
    let too_long = DecodeError::TooLong { field, len, max: SPEC_MAX_BYTES };
    assert_eq!(decode::api_message(bytes), Err(too_long));
}
