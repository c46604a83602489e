//! Exact sums as bytes.

use super::{ExactSum, LIMBS, Wide};
use crate::bytes::{BadState, Reader, put_f64, put_u64};

/// Limbs whose carries were taken, but for the last, are within this.
const LIMB_END: i64 = 1 << super::LIMB_BITS;

impl ExactSum {
    /// The two doubles that are the sum, where two are enough.
    pub(crate) fn two(&self) -> Option<(f64, f64)> {
        self.wide.is_none().then_some((self.hi, self.lo))
    }

    /// The sum of two doubles.
    pub(crate) fn of_two(hi: f64, lo: f64) -> Self {
        let mut sum = Self::default();
        sum.add(hi);
        sum.add(lo);
        sum
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.wide.is_some()));
        let Some(wide) = &self.wide else {
            put_f64(out, self.hi);
            return put_f64(out, self.lo);
        };
        let mut wide = wide.clone();
        wide.carry();
        wide.limbs.iter().for_each(|limb| out.extend_from_slice(&limb.to_le_bytes()));
        for count in [wide.plus_infinities, wide.minus_infinities, wide.nans] {
            put_u64(out, count);
        }
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, BadState> {
        match input.u8()? {
            0 => Ok(Self::of_two(input.f64()?, input.f64()?)),
            1 => {
                let mut wide = Box::<Wide>::default();
                for limb in &mut wide.limbs {
                    *limb = input.i64()?;
                }
                let (top, others) = wide.limbs.split_last().ok_or(BadState)?;
                let fit = others.iter().all(|limb| (0..LIMB_END).contains(limb));
                if !fit || !(-LIMB_END..=LIMB_END).contains(top) {
                    return Err(BadState);
                }
                debug_assert_eq!(wide.limbs.len(), LIMBS);
                // Counts matter only as far as there are any; sums of them must not overflow.
                wide.plus_infinities = input.u64()?.min(1);
                wide.minus_infinities = input.u64()?.min(1);
                wide.nans = input.u64()?.min(1);
                Ok(Self { hi: 0.0, lo: 0.0, wide: Some(wide) })
            }
            _ => Err(BadState),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_sum_with_a_limb_beyond_all_doubles_is_refused() {
        let mut sum = ExactSum::default();
        [1e100, 1.0, 1e-100].iter().for_each(|term| sum.add(*term));
        let mut bytes = Vec::new();
        sum.write(&mut bytes);
        assert!(ExactSum::read(&mut Reader::new(&bytes)).is_ok());
        for limb in [i64::MIN, i64::MAX] {
            let top = 1 + (LIMBS - 1) * 8;
            bytes[top..top + 8].copy_from_slice(&limb.to_le_bytes());
            assert_eq!(ExactSum::read(&mut Reader::new(&bytes)).unwrap_err(), BadState, "{limb}");
        }
    }
}
