//! The table against a plain list of promises, and small stories of shared files.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::disk_budget::{Budget, Kind, Limits};

const RETENTION: Retention =
    Retention { ttl: Duration::from_millis(600), ttl_after_ack: Duration::from_millis(30) };

const FACTS: Facts = Facts { row_count: 1, min_ts: 2, max_ts: 3, parquet_schema_version: 1 };

fn at(ms: u64) -> Moment {
    Moment::from_millis(ms)
}

/// Numbers of files, as the budget would give them.
fn file_ids(count: usize) -> Vec<FileId> {
    let mut budget = Budget::new(Limits {
        capacity_bytes: 1,
        high_percent: 90,
        low_percent: 80,
        floor_percent: 10,
        keep_free_bytes: 0,
    });
    (0..count).map(|_| budget.begin(Kind::Artifact)).collect()
}

fn artifact() -> SpooledArtifact {
    let checksum = Checksum([7; 32]);
    SpooledArtifact { id: ArtifactId::draw(), size_bytes: 10, checksum, facts: FACTS }
}

#[test]
fn a_token_opens_its_sessions_artifacts_and_no_others() {
    let mut table = ArtifactTable::new(RETENTION);
    let files = file_ids(2);
    let (one, two) = (Token::draw(), Token::draw());
    table.open_session(SessionId(1), one.clone());
    table.open_session(SessionId(2), two.clone());
    let mine = artifact();
    table.commit(files[0], ReuseKey([1; 32]), mine, SessionId(1), at(0));
    let decoy = Token::draw();
    assert_eq!(table.find(mine.id, &one.reveal(), &decoy), Some((files[0], mine)));
    assert_eq!(table.find(mine.id, &two.reveal(), &decoy), None);
    assert_eq!(table.find(mine.id, &decoy.reveal(), &decoy), None);
    assert_eq!(table.find(ArtifactId::draw(), &decoy.reveal(), &decoy), None);
    assert_eq!(table.close_session(SessionId(1)), [Left::Unclaimed(files[0])]);
    assert_eq!(table.find(mine.id, &one.reveal(), &decoy), None);
    assert_eq!(table.len(), 0);
}

#[test]
fn a_shared_file_stays_until_the_last_of_its_artifacts_goes() {
    let mut table = ArtifactTable::new(RETENTION);
    let file = file_ids(1)[0];
    let key = ReuseKey([1; 32]);
    let first = artifact();
    table.commit(file, key, first, SessionId(1), at(0));
    table.acknowledge(first.id, at(10));
    let second = ArtifactId::draw();
    let (reused, same, standing) = table.reuse(key, second, SessionId(2), at(20)).unwrap();
    assert_eq!((reused.id, reused.checksum, same), (second, first.checksum, file));
    assert_eq!(standing, Standing::Unacknowledged { since: at(20), until: at(620) });
    let due = table.expire(at(40));
    assert_eq!((due.expired, due.lost.len(), due.unclaimed.len()), (1, 0, 0));
    assert_eq!(table.release(second), Some(Left::Unclaimed(file)));
    assert_eq!(table.reuse(key, ArtifactId::draw(), SessionId(2), at(50)), None);
}

#[test]
fn an_artifact_nobody_came_for_is_told_as_lost_and_a_fetched_one_is_not() {
    let mut table = ArtifactTable::new(RETENTION);
    let files = file_ids(2);
    let (fetched, ignored) = (artifact(), artifact());
    table.commit(files[0], ReuseKey([1; 32]), fetched, SessionId(1), at(0));
    table.commit(files[1], ReuseKey([2; 32]), ignored, SessionId(1), at(0));
    assert!(table.acknowledge(fetched.id, at(5)).is_some());
    assert_eq!(table.acknowledge(fetched.id, at(6)), None, "once is enough");
    assert_eq!(table.expire(at(34)), Due::default());
    assert_eq!(table.expire(at(35)).unclaimed, [files[0]]);
    let due = table.expire(at(600));
    assert_eq!(due.lost, [LostArtifact { id: ignored.id, session: SessionId(1) }]);
    assert_eq!(due.unclaimed, [files[1]]);
}

#[derive(Clone, Debug)]
enum Step {
    Make { key: u8, session: u64 },
    Acknowledge(usize),
    Release(usize),
    Forget(usize),
    Close(u64),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u8..4, 0_u64..3).prop_map(|(key, session)| Step::Make { key, session }),
        3 => (0_usize..32).prop_map(Step::Acknowledge),
        1 => (0_usize..32).prop_map(Step::Release),
        1 => (0_usize..32).prop_map(Step::Forget),
        1 => (0_u64..3).prop_map(Step::Close),
        3 => (0_u64..200).prop_map(Step::Wait),
    ]
}

#[derive(Clone, Copy)]
struct Kept {
    id: ArtifactId,
    key: u8,
    session: u64,
    promise: Promise,
}

proptest! {
    /// Equal work is made once for as long as any artifact of it lives, and no longer.
    #[test]
    fn a_file_lives_exactly_as_long_as_its_artifacts(steps in prop::collection::vec(step(), 1..100)) {
        let mut table = ArtifactTable::new(RETENTION);
        let mut files = file_ids(steps.len()).into_iter();
        let mut kept: Vec<Kept> = Vec::new();
        let mut now = 0;
        (0..3).for_each(|session| table.open_session(SessionId(session), Token::draw()));
        for step in steps {
            match step {
                Step::Make { key, session } => {
                    let here = kept.iter().any(|other| other.key == key);
                    let artifact = artifact();
                    let reuse_key = ReuseKey([key; 32]);
                    let reused = table.reuse(reuse_key, artifact.id, SessionId(session), at(now));
                    prop_assert_eq!(reused.is_some(), here);
                    if !here {
                        let file = files.next().unwrap();
                        table.commit(file, reuse_key, artifact, SessionId(session), at(now));
                    }
                    let promise = Promise::Announced { since: at(now) };
                    kept.push(Kept { id: artifact.id, key, session, promise });
                }
                Step::Acknowledge(i) if i < kept.len() => {
                    let first = matches!(kept[i].promise, Promise::Announced { .. });
                    prop_assert_eq!(table.acknowledge(kept[i].id, at(now)).is_some(), first);
                    if first {
                        kept[i].promise = Promise::Acknowledged { since: at(now) };
                    }
                }
                Step::Release(i) if i < kept.len() => {
                    let gone = kept.remove(i);
                    let last = !kept.iter().any(|other| other.key == gone.key);
                    let left = table.release(gone.id).unwrap();
                    prop_assert_eq!(matches!(left, Left::Unclaimed(_)), last);
                    prop_assert_eq!(table.release(gone.id), None);
                }
                Step::Forget(i) if i < kept.len() => {
                    let key = kept[i].key;
                    let file = table.by_key[&ReuseKey([key; 32])];
                    let told = table.forget(file);
                    let (gone, rest): (Vec<Kept>, Vec<Kept>) = kept.iter().partition(|other| other.key == key);
                    prop_assert_eq!(told.len(), gone.len());
                    for (lost, waited) in told {
                        let known = gone.iter().find(|other| other.id == lost.id).unwrap();
                        prop_assert_eq!(lost.session, SessionId(known.session));
                        prop_assert_eq!(waited, matches!(known.promise, Promise::Announced { .. }));
                    }
                    kept = rest;
                }
                Step::Close(session) => {
                    table.close_session(SessionId(session));
                    table.open_session(SessionId(session), Token::draw());
                    kept.retain(|other| other.session != session);
                }
                Step::Wait(by) => {
                    now += by;
                    let due = table.expire(at(now));
                    let over = |other: &Kept| other.promise.is_over(&RETENTION, at(now));
                    prop_assert_eq!(due.expired, kept.iter().filter(|other| over(other)).count() as u64);
                    kept.retain(|other| !over(other));
                }
                Step::Acknowledge(_) | Step::Release(_) | Step::Forget(_) => {}
            }
            prop_assert_eq!(table.len(), kept.len());
            let keys: BTreeSet<u8> = kept.iter().map(|other| other.key).collect();
            prop_assert_eq!(table.contents.len(), keys.len());
            prop_assert_eq!(table.by_key.len(), keys.len());
            prop_assert_eq!(table.expiry.len(), kept.len());
        }
    }
}

/// Each step looked at every owner once, and so many owners took a minute.
#[test]
fn a_file_that_many_share_costs_each_of_them_no_more_than_the_first() {
    let mut table = ArtifactTable::new(RETENTION);
    let file = file_ids(1)[0];
    let key = ReuseKey([1; 32]);
    let first = artifact();
    table.commit(file, key, first, SessionId(1), at(0));
    let mut owners = vec![first.id];
    for ms in 1..=30_000 {
        let id = ArtifactId::draw();
        let (_, _, standing) = table.reuse(key, id, SessionId(1), at(ms)).unwrap();
        assert_eq!(standing, Promise::Announced { since: at(ms) }.rank().standing(&RETENTION));
        owners.push(id);
    }
    // While the first still waits, that counts, however many have it.
    let waits = Promise::Announced { since: at(0) }.rank().standing(&RETENTION);
    for id in owners.drain(1..).rev() {
        let left = table.acknowledge(id, at(30_001)).unwrap();
        assert_eq!(left, Left::Needed(file, table.standing(file).unwrap()));
    }
    assert_eq!(table.standing(file), Some(waits));
    assert_eq!(table.expire(at(40_000)).unclaimed, [file]);
}
