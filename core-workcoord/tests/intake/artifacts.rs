//! Artifacts on the worker's disk: kept until acknowledged or expired, evicted, never left behind.

use core_workcoord::artifact::Checksum;
use core_workcoord::intake::{DiskReport, Input};
use core_workcoord::message::{ApiMessage, ArtifactAck};

use crate::support::words::{HasItems, Q1, millis, seconds};
use crate::support::workshop::{S1, S2, Workshop};

/// One artifact that waits to be fetched.
fn one_artifact() -> Workshop {
    let mut w = Workshop::open().apis(2);
    w.assign(S1, Q1.item(0));
    w.finish(S1, Q1.item(0));
    w.news();
    w
}

#[test]
fn an_artifact_nobody_acknowledges_expires_and_its_loss_is_told() {
    let mut w = one_artifact();
    w.pass(millis(599_999));
    w.news();
    assert_eq!(w.core.snapshot(w.now).unacknowledged, 1);
    w.pass(millis(1));
    let news = w.news();
    assert!(news.ends_with(&["delete 0 of s1".into(), "s1 lost 0".into()]), "{news:?}");
    assert!(w.core.is_idle());
    assert_eq!((w.core.counts().expired, w.core.counts().deleted), (1, 1));
}

#[test]
fn an_acknowledged_artifact_lingers_a_little_and_goes_without_a_word() {
    let mut w = one_artifact();
    w.acknowledge(S1, Q1.item(0));
    w.expect(&[]);
    assert_eq!(w.core.snapshot(w.now).acknowledged, 1);
    w.pass(millis(29_999));
    assert_eq!(w.core.artifacts().count(), 1);
    w.news();
    w.pass(millis(1));
    w.expect(&["delete 0 of s1"]);
    assert_eq!((w.core.counts().acknowledged, w.core.counts().expired), (1, 1));
}

#[test]
fn only_the_owner_and_only_the_right_checksum_acknowledge() {
    let mut w = one_artifact();
    w.acknowledge(S2, Q1.item(0));
    w.acknowledge(S1, Q1.item(1));
    let wrong = ArtifactAck { work_id: Q1.item(0), checksum: Checksum([7; 32]) };
    w.say(S1, ApiMessage::ArtifactAck(wrong));
    assert_eq!((w.core.counts().acknowledged, w.core.counts().late), (0, 3));
    w.acknowledge(S1, Q1.item(0));
    w.acknowledge(S1, Q1.item(0));
    assert_eq!((w.core.counts().acknowledged, w.core.counts().late), (1, 4), "once is enough");
}

#[test]
fn an_evicted_artifact_is_told_unless_it_was_fetched() {
    let mut w = one_artifact();
    w.evict(S1, Q1.item(0));
    w.expect(&["s1 lost 0"]);
    let mut w2 = one_artifact();
    w2.acknowledge(S1, Q1.item(0));
    w2.evict(S1, Q1.item(0));
    w2.expect(&[]);
    for w in [&w, &w2] {
        assert!(w.core.is_idle());
        assert_eq!(w.core.counts().evicted, 1);
    }
}

#[test]
fn artifacts_go_with_the_session_that_owns_them() {
    let mut w = one_artifact();
    w.assign(S2, Q1.item(0));
    w.finish(S2, Q1.item(0));
    w.news();
    w.lose(S1);
    w.expect(&["delete 0 of s1"]);
    assert_eq!(w.core.artifacts().collect::<Vec<_>>(), [w.run_of(S2, Q1.item(0))]);
}

#[test]
fn a_full_disk_closes_admission_and_room_opens_it_again() {
    let mut w = one_artifact();
    w.assign(S1, Q1.item(1));
    w.news();
    let full = DiskReport { room: false, spool_bytes: 9, cache_bytes: 8, free_bytes: 7 };
    w.tell(Input::Disk(full));
    w.expect(&["s1 not accepting, 0 queued, 1 running", "s2 not accepting, 0 queued, 1 running"]);
    assert!(!w.core.accepts());
    let status = w.core.snapshot(w.now).status;
    assert_eq!((status.spool_bytes, status.cache_bytes, status.free_bytes), (9, 8, 7));
    w.assign(S2, Q1.item(2));
    w.expect(&["s2 rejected 2 NotAccepting"]);
    w.tell(Input::Disk(DiskReport { free_bytes: 6, ..full }));
    w.expect(&[]);
    w.finish(S1, Q1.item(1));
    w.expect(&["s1 ready 1"]);
    w.tell(Input::Disk(DiskReport { room: true, ..full }));
    w.expect(&["s1 accepting, 0 queued, 0 running", "s2 accepting, 0 queued, 0 running"]);
    w.assign(S2, Q1.item(2));
    w.expect(&["s2 accepted 2", "start 2 of s2", "s2 started 2"]);
}

#[test]
fn figures_of_the_disk_are_told_with_the_next_heartbeat() {
    let mut w = one_artifact();
    w.tell(Input::Disk(DiskReport { room: true, spool_bytes: 9, ..DiskReport::default() }));
    w.expect(&[]);
    w.pass(seconds(1));
    w.expect(&["s1 accepting, 0 queued, 0 running", "s2 accepting, 0 queued, 0 running"]);
}
