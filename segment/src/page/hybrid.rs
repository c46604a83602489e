//! Parquet's mix of runs and bit-packed groups, for dictionary numbers and for the levels of the
//! label columns.

use super::Malformed;

/// Appends an integer in groups of seven bits.
pub(crate) fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).expect("seven bits") | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).expect("less than 128"));
}

/// Takes an integer in groups of seven bits from the front, with its length.
pub(crate) fn get_varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (i, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * u32::try_from(i).ok()?)?;
        if byte & 0x80 == 0 {
            return Some((value, i + 1));
        }
    }
    None
}

/// The width in bits for numbers up to `max`, in whole bytes: compression finds more in them.
pub(crate) fn byte_width(max: u32) -> u8 {
    match max {
        0..=0xff => 8,
        0x100..=0xffff => 16,
        0x1_0000..=0xff_ffff => 24,
        _ => 32,
    }
}

/// Appends numbers as one bit-packed run of whole bytes each. `width` is a multiple of 8.
pub(crate) fn put_bytes_run(out: &mut Vec<u8>, numbers: &[u32], width: u8) {
    let groups = numbers.len().div_ceil(8);
    put_varint(out, (groups as u64) << 1 | 1);
    let bytes = usize::from(width / 8);
    for number in numbers {
        out.extend_from_slice(&number.to_le_bytes()[..bytes]);
    }
    out.resize(out.len() + (groups * 8 - numbers.len()) * bytes, 0);
}

/// Appends bits as runs of equal ones, or packed where they change too often for that.
pub(crate) fn put_bits(out: &mut Vec<u8>, bits: &[bool]) {
    if let Some(first) = bits.first().filter(|first| bits.iter().all(|bit| bit == *first)) {
        put_varint(out, (bits.len() as u64) << 1);
        out.push(u8::from(*first));
        return;
    }
    let groups = bits.len().div_ceil(8);
    put_varint(out, (groups as u64) << 1 | 1);
    for group in bits.chunks(8) {
        out.push(group.iter().rev().fold(0, |byte, bit| byte << 1 | u8::from(*bit)));
    }
}

/// Decodes exactly `count` numbers of `width` bits and hands them on.
pub(crate) fn read(
    mut bytes: &[u8],
    width: u8,
    count: usize,
    mut each: impl FnMut(u32),
) -> Result<(), Malformed> {
    if width > 32 {
        return Err("numbers are wider than 32 bits".into());
    }
    let mut left = count;
    while left > 0 {
        let (head, len) = get_varint(bytes).ok_or("a run has no head")?;
        bytes = &bytes[len..];
        let run = usize::try_from(head >> 1).map_err(|_| "a run is too long")?;
        if run == 0 {
            return Err("a run is empty".into());
        }
        if head & 1 == 0 {
            let value_bytes = usize::from(width.div_ceil(8));
            let value = bytes.get(..value_bytes).ok_or("a run ends beyond its page")?;
            let value = value.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
            bytes = &bytes[value_bytes..];
            let take = run.min(left);
            (0..take).for_each(|_| each(value));
            left -= take;
        } else {
            let packed = run.checked_mul(usize::from(width)).ok_or("a run is too long")?;
            let values = run.saturating_mul(8).min(left);
            // The last group may be cut off after its last value.
            let needed = (values * usize::from(width)).div_ceil(8);
            let run_bytes = bytes.get(..packed.min(bytes.len())).expect("not more than there are");
            if run_bytes.len() < needed {
                return Err("a run ends beyond its page".into());
            }
            unpack(run_bytes, width, values, &mut each);
            bytes = &bytes[run_bytes.len()..];
            left -= values;
        }
    }
    Ok(())
}

fn unpack(bytes: &[u8], width: u8, count: usize, each: &mut impl FnMut(u32)) {
    match width {
        0 => (0..count).for_each(|_| each(0)),
        8 => bytes[..count].iter().for_each(|byte| each(u32::from(*byte))),
        16 => {
            for two in bytes[..count * 2].chunks_exact(2) {
                each(u32::from(u16::from_le_bytes([two[0], two[1]])));
            }
        }
        _ => {
            let mask = (1_u64 << width) - 1;
            let (mut held, mut bits, mut next) = (0_u64, 0_u32, 0);
            for _ in 0..count {
                while bits < u32::from(width) {
                    held |= u64::from(bytes[next]) << bits;
                    next += 1;
                    bits += 8;
                }
                each(u32::try_from(held & mask).expect("at most 32 bits"));
                held >>= width;
                bits -= u32::from(width);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(bytes: &[u8], width: u8, count: usize) -> Result<Vec<u32>, Malformed> {
        let mut out = Vec::new();
        read(bytes, width, count, |n| out.push(n)).map(|()| out)
    }

    proptest! {
        #[test]
        fn numbers_and_bits_read_back(
            numbers in prop::collection::vec(any::<u32>(), 1..100),
            shift in 0_u32..32,
        ) {
            let numbers: Vec<u32> = numbers.iter().map(|n| n >> shift).collect();
            let width = byte_width(*numbers.iter().max().unwrap());
            let mut bytes = Vec::new();
            put_bytes_run(&mut bytes, &numbers, width);
            prop_assert_eq!(all(&bytes, width, numbers.len()).unwrap(), numbers.clone());

            let bits: Vec<bool> = numbers.iter().map(|n| n % 3 == 0).collect();
            let mut bytes = Vec::new();
            put_bits(&mut bytes, &bits);
            let back: Vec<bool> =
                all(&bytes, 1, bits.len()).unwrap().iter().map(|n| *n == 1).collect();
            prop_assert_eq!(back, bits);
        }

        #[test]
        fn any_bytes_give_numbers_or_an_error(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            width in 0_u8..40,
            count in 0_usize..300,
        ) {
            if let Ok(numbers) = all(&bytes, width, count) {
                prop_assert_eq!(numbers.len(), count);
            }
        }

        #[test]
        fn varints_read_back(value: u64, tail in prop::collection::vec(any::<u8>(), 0..3)) {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            let len = bytes.len();
            bytes.extend(tail);
            prop_assert_eq!(get_varint(&bytes), Some((value, len)));
        }
    }

    #[test]
    fn widths_between_the_bytes_are_understood_too() {
        // Eight numbers of three bits, 0 to 7, as the specification shows them.
        let packed = [0x03, 0b1000_1000, 0b1100_0110, 0b1111_1010];
        assert_eq!(all(&packed, 3, 8).unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}
