//! How things of the demo change with time: three waves of different length, seconds of trouble, and
//! dice. Everything is a pure function of time and a seed, and what is counted has an exact area, so
//! the samples of any time can be made at any time, and are the same.

use std::f64::consts::TAU;

/// Length in seconds and height of each wave: the day, about an hour, about ten minutes.
const WAVES: [(f64, f64); 3] = [(86_400.0, 0.45), (3_700.0, 0.12), (613.0, 0.08)];

/// A job has trouble this often, in seconds.
const TROUBLE_PERIOD_S: f64 = 11.0 * 3_600.0;

/// And for so long.
const TROUBLE_S: f64 = 20.0 * 60.0;

/// One moment, as all series of a target see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tide {
    /// Seconds of the Unix epoch.
    pub(super) t: f64,
    /// Seconds of trouble so far, counted from some moment long ago.
    pub(super) trouble_s: f64,
    /// There is trouble now.
    pub(super) is_trouble: bool,
    turns: [(f64, f64); 3],
}

/// Where in its waves a series is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase([(f64, f64); 3]);

impl Tide {
    /// The tide at a moment; `trouble_at` is a moment at which trouble begins.
    pub(super) fn at(t: f64, trouble_at: f64) -> Self {
        let since = t - trouble_at;
        let (rounds, rest) =
            (since.div_euclid(TROUBLE_PERIOD_S), since.rem_euclid(TROUBLE_PERIOD_S));
        let turns = WAVES.map(|(length, _)| (TAU * (t / length).fract()).sin_cos());
        let trouble_s = rounds * TROUBLE_S + rest.min(TROUBLE_S);
        Self { t, trouble_s, is_trouble: rest < TROUBLE_S, turns }
    }

    /// How high the waves are: between -0.65 and 0.65.
    pub(super) fn height(&self, phase: &Phase) -> f64 {
        let mut height = 0.0;
        for (((_, wave), (sin, cos)), (by_sin, by_cos)) in WAVES.iter().zip(self.turns).zip(phase.0)
        {
            height += wave * (sin * by_cos + cos * by_sin);
        }
        height
    }

    /// The area under the waves, counted from some moment: its slope is the height.
    pub(super) fn area(&self, phase: &Phase) -> f64 {
        let mut area = 0.0;
        for (((length, wave), (sin, cos)), (by_sin, by_cos)) in
            WAVES.iter().zip(self.turns).zip(phase.0)
        {
            area -= wave * length / TAU * (cos * by_cos - sin * by_sin);
        }
        area
    }
}

impl Phase {
    /// The waves of a seed. The day is about the same for all; the shorter waves are anywhere.
    pub(super) fn of(seed: u64) -> Self {
        let angles = [0.6 * dice(seed, 1), TAU * dice(seed, 2), TAU * dice(seed, 3)];
        Self(angles.map(f64::sin_cos))
    }

    /// The same waves, turned upside down.
    pub(super) fn opposite(self) -> Self {
        Self(self.0.map(|(sin, cos)| (-sin, -cos)))
    }
}

/// A number in [0, 1) that depends on the two numbers alone.
pub(super) fn dice(seed: u64, throw: u64) -> f64 {
    // The 53 bits that a double can hold.
    (mix(seed ^ mix(throw)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Spreads the bits of a number: SplitMix64's last step.
pub(super) fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_area_has_the_height_as_its_slope() {
        let phase = Phase::of(7);
        for t in [1_700_000_000.0, 1_700_012_345.0, 1_700_086_399.5] {
            let (before, after) = (Tide::at(t - 0.5, 0.0), Tide::at(t + 0.5, 0.0));
            let slope = after.area(&phase) - before.area(&phase);
            let height = Tide::at(t, 0.0).height(&phase);
            assert!((slope - height).abs() < 1e-4, "{slope} {height}");
            assert!(height.abs() <= 0.65);
        }
    }

    #[test]
    fn trouble_comes_back_and_its_seconds_only_grow() {
        let mut last = Tide::at(-1.0, 0.0).trouble_s;
        let mut troubled = 0;
        for t in 0..100_000 {
            let tide = Tide::at(f64::from(t), 0.0);
            assert!(tide.trouble_s >= last);
            troubled += i32::from(tide.is_trouble);
            last = tide.trouble_s;
        }
        assert_eq!(troubled, 3 * 1_200);
    }

    #[test]
    fn dice_are_even_and_repeat() {
        let throws: Vec<f64> = (0..10_000).map(|throw| dice(3, throw)).collect();
        let mean = throws.iter().sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert!(throws.iter().all(|throw| (0.0..1.0).contains(throw)));
        assert_eq!(dice(3, 17).to_bits(), throws[17].to_bits());
    }
}
