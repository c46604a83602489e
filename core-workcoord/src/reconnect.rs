//! How long to wait before dialling again: exponential, with jitter that comes from a seed.

use std::time::Duration;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The pause before redial number `failures` (counted from one) to this address.
///
/// The pause doubles with every failure up to `max`, and the jitter takes away up to half of it, so
/// that API nodes that lost the same worker do not come back in step.
pub fn pause(seed: u64, address: &str, failures: u32, base: Duration, max: Duration) -> Duration {
    let doublings = failures.saturating_sub(1).min(32);
    let full = base.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(max);
    let dice = xxh3_64_with_seed(address.as_bytes(), seed ^ u64::from(failures));
    // The upper 32 bits as a fraction of the half that may go.
    let half = full / 2;
    half + half.mul_f64(f64::from((dice >> 32) as u32) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Duration = Duration::from_millis(100);
    const MAX: Duration = Duration::from_secs(5);

    #[test]
    fn pauses_grow_stay_within_bounds_and_repeat_for_the_same_seed() {
        for failures in 1..100 {
            let full = BASE.saturating_mul(1 << failures.min(10)).min(MAX * 2) / 2;
            let pause_1 = pause(1, "w1:9001", failures, BASE, MAX);
            assert!(pause_1 >= full / 2 && pause_1 <= full, "{failures}: {pause_1:?}");
            assert_eq!(pause_1, pause(1, "w1:9001", failures, BASE, MAX));
        }
    }

    #[test]
    fn two_seeds_and_two_addresses_do_not_march_in_step() {
        let all = [
            pause(1, "w1:9001", 3, BASE, MAX),
            pause(2, "w1:9001", 3, BASE, MAX),
            pause(1, "w2:9001", 3, BASE, MAX),
        ];
        assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2], "{all:?}");
    }
}
