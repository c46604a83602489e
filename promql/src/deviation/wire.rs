//! Variances in the making as bytes.

use super::Deviation;
use crate::bytes::{BadState, Reader, put_u64};
use crate::exact::ExactSum;

impl Deviation {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_u64(out, self.count);
        out.push(match self.scale {
            ..0 => 0,
            0 => 1,
            1.. => 2,
        });
        self.sum.write(out);
        self.squares.write(out);
    }

    pub(crate) fn read(input: &mut Reader<'_>) -> Result<Self, BadState> {
        let count = input.u64()?;
        let scale = match input.u8()? {
            scale @ 0..=2 => i32::from(scale) - 1,
            _ => return Err(BadState),
        };
        let (sum, squares) = (ExactSum::read(input)?, ExactSum::read(input)?);
        Ok(Self { count, sum, squares, scale })
    }
}
