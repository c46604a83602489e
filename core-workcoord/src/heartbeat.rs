//! Signs of life on one stream: when to send the next one, what the last echo took, and when
//! silence has lasted too long. Anything heard counts; only silence is a verdict.

use std::collections::VecDeque;
use std::time::Duration;

use crate::message::Heartbeat;
use crate::moment::Moment;

/// Heartbeats sent whose echo may still come. More than the timeout allows are never awaited.
const AWAITED: usize = 8;

/// One side's view of a stream's heartbeats.
#[derive(Clone, Debug)]
pub struct Pulse {
    interval: Duration,
    timeout: Duration,
    last_heard: Moment,
    next_beat: Moment,
    seq: u64,
    peer_seq: u64,
    awaited: VecDeque<(u64, Moment)>,
}

/// What the clock says about a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to do before the next wake.
    Quiet,
    /// Send this.
    Beat(Heartbeat),
    /// Nothing was heard for too long.
    Lost,
}

impl Pulse {
    /// Starts now; the first heartbeat is due at once.
    pub fn new(now: Moment, interval: Duration, timeout: Duration) -> Self {
        Self {
            interval,
            timeout,
            last_heard: now,
            next_beat: now,
            seq: 0,
            peer_seq: 0,
            awaited: VecDeque::new(),
        }
    }

    /// Something arrived.
    pub fn heard(&mut self, now: Moment) {
        self.last_heard = self.last_heard.max(now);
    }

    /// A heartbeat arrived. Gives the round trip when it echoes one of ours.
    pub fn heard_beat(&mut self, now: Moment, beat: Heartbeat) -> Option<Duration> {
        self.heard(now);
        self.peer_seq = self.peer_seq.max(beat.seq);
        while let Some((seq, sent)) = self.awaited.front().copied() {
            if seq > beat.echo_seq {
                break;
            }
            self.awaited.pop_front();
            if seq == beat.echo_seq {
                return Some(now.since(sent));
            }
        }
        None
    }

    /// Makes the next heartbeat now, whether or not it was due, and counts the interval from here.
    pub fn beat(&mut self, now: Moment) -> Heartbeat {
        self.seq += 1;
        self.next_beat = now + self.interval;
        if self.awaited.len() == AWAITED {
            self.awaited.pop_front();
        }
        self.awaited.push_back((self.seq, now));
        Heartbeat { seq: self.seq, sent_unix_nanos: 0, echo_seq: self.peer_seq }
    }

    /// What is due.
    pub fn tick(&mut self, now: Moment) -> Verdict {
        if now.since(self.last_heard) >= self.timeout {
            Verdict::Lost
        } else if now >= self.next_beat {
            Verdict::Beat(self.beat(now))
        } else {
            Verdict::Quiet
        }
    }

    /// When to look again. Hearing something moves silence's end later; waking at the old one is
    /// cheap, so nobody has to be told.
    pub fn wake_at(&self) -> Moment {
        self.next_beat.min(self.last_heard + self.timeout)
    }

    /// When something was last heard.
    pub fn last_heard(&self) -> Moment {
        self.last_heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pulse() -> Pulse {
        Pulse::new(Moment::ZERO, Duration::from_secs(1), Duration::from_secs(3))
    }

    #[test]
    fn beats_every_interval_and_is_lost_after_three_silent_ones() {
        let mut pulse = pulse();
        let mut beats = 0;
        loop {
            let now = pulse.wake_at();
            match pulse.tick(now) {
                Verdict::Beat(beat) => {
                    beats += 1;
                    assert_eq!(beat.seq, beats);
                }
                Verdict::Lost => {
                    assert_eq!(now, Moment::from_millis(3_000));
                    break;
                }
                Verdict::Quiet => panic!("woken for nothing at {now}"),
            }
        }
        assert_eq!(beats, 3);
    }

    #[test]
    fn anything_heard_puts_the_verdict_off() {
        let mut pulse = pulse();
        pulse.heard(Moment::from_millis(2_900));
        pulse.heard(Moment::from_millis(100));
        assert_ne!(pulse.tick(Moment::from_millis(5_800)), Verdict::Lost);
        assert_eq!(pulse.tick(Moment::from_millis(5_900)), Verdict::Lost);
        assert_eq!(pulse.last_heard(), Moment::from_millis(2_900));
    }

    #[test]
    fn an_echo_gives_the_round_trip_once() {
        let mut pulse = pulse();
        assert_eq!(pulse.beat(Moment::from_millis(10)).seq, 1);
        assert_eq!(pulse.beat(Moment::from_millis(20)).seq, 2);
        let echo = |echo_seq| Heartbeat { seq: 7, sent_unix_nanos: 0, echo_seq };
        assert_eq!(pulse.heard_beat(Moment::from_millis(25), echo(0)), None);
        let trip = pulse.heard_beat(Moment::from_millis(26), echo(2));
        assert_eq!(trip, Some(Duration::from_millis(6)));
        assert_eq!(pulse.heard_beat(Moment::from_millis(27), echo(2)), None);
        assert_eq!(pulse.heard_beat(Moment::from_millis(27), echo(1)), None, "older than the last");
        assert_eq!(pulse.beat(Moment::from_millis(30)).echo_seq, 7);
        assert_eq!(pulse.tick(Moment::from_millis(31)), Verdict::Quiet);
    }

    #[test]
    fn awaited_echoes_are_bounded() {
        let mut pulse = pulse();
        for i in 0..100 {
            pulse.beat(Moment(i));
        }
        assert_eq!(pulse.awaited.len(), AWAITED);
    }
}
