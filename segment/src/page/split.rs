//! Eight-byte values as bytes and back: one after the other, or split so that the first bytes of
//! all values stand together, then the second bytes, and so on.

/// A value of eight bytes: a timestamp or a sample value.
pub(crate) trait Word: Copy + Default {
    /// The value with these bits.
    fn from_bits(bits: u64) -> Self;
    /// The bits of the value.
    fn bits(self) -> u64;
}

impl Word for i64 {
    fn from_bits(bits: u64) -> Self {
        bits.cast_signed()
    }

    fn bits(self) -> u64 {
        self.cast_unsigned()
    }
}

impl Word for f64 {
    fn from_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }

    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// Appends values one after the other.
pub(crate) fn put_plain<T: Word>(out: &mut Vec<u8>, values: &[T]) {
    let start = out.len();
    out.resize(start + values.len() * 8, 0);
    let (words, _) = out[start..].as_chunks_mut::<8>();
    for (word, value) in words.iter_mut().zip(values) {
        *word = value.bits().to_le_bytes();
    }
}

/// Appends the values that stand one after the other in `bytes`.
pub(crate) fn read_plain<T: Word>(bytes: &[u8], out: &mut Vec<T>) {
    let (words, _) = bytes.as_chunks::<8>();
    out.extend(words.iter().map(|word| T::from_bits(u64::from_le_bytes(*word))));
}

/// Appends values split into eight streams of bytes.
pub(crate) fn put_split<T: Word>(out: &mut Vec<u8>, values: &[T]) {
    let start = out.len();
    out.resize(start + values.len() * 8, 0);
    let mut streams = streams_mut(&mut out[start..], values.len());
    let (groups, rest) = values.as_chunks::<8>();
    for (i, group) in groups.iter().enumerate() {
        let words = transpose(group.map(Word::bits));
        for (stream, word) in streams.iter_mut().zip(words) {
            stream[i * 8..i * 8 + 8].copy_from_slice(&word.to_le_bytes());
        }
    }
    for (i, value) in rest.iter().enumerate() {
        for (stream, byte) in streams.iter_mut().zip(value.bits().to_le_bytes()) {
            stream[groups.len() * 8 + i] = byte;
        }
    }
}

/// Appends the values of rows `from..to` of a page of `rows` split values.
///
/// The caller has checked that `bytes` holds eight bytes a row and that the rows are among them.
pub(crate) fn read_split<T: Word>(
    bytes: &[u8],
    rows: usize,
    from: usize,
    to: usize,
    out: &mut Vec<T>,
) {
    let start = out.len();
    out.resize(start + (to - from), T::default());
    let streams: [&[u8]; 8] = std::array::from_fn(|k| &bytes[k * rows + from..k * rows + to]);
    let (groups, rest) = out[start..].as_chunks_mut::<8>();
    for (i, group) in groups.iter_mut().enumerate() {
        let words = streams.map(|stream| {
            let eight = stream[i * 8..i * 8 + 8].try_into().expect("a slice of eight bytes");
            u64::from_le_bytes(eight)
        });
        *group = transpose(words).map(T::from_bits);
    }
    for (i, value) in rest.iter_mut().enumerate() {
        let at = groups.len() * 8 + i;
        *value = T::from_bits(u64::from_le_bytes(streams.map(|stream| stream[at])));
    }
}

fn streams_mut(bytes: &mut [u8], rows: usize) -> Vec<&mut [u8]> {
    // Without rows there are no streams, and no chunks of length zero.
    bytes.chunks_exact_mut(rows.max(1)).collect()
}

/// Byte `j` of word `i` becomes byte `i` of word `j`. Swaps halves, then quarters, then eighths:
/// three times as fast as byte by byte.
#[inline]
fn transpose(mut x: [u64; 8]) -> [u64; 8] {
    const HALF: u64 = 0x0000_0000_ffff_ffff;
    const QUARTER: u64 = 0x0000_ffff_0000_ffff;
    const EIGHTH: u64 = 0x00ff_00ff_00ff_00ff;
    for i in 0..4 {
        let (a, b) = (x[i], x[i + 4]);
        x[i] = (a & HALF) | (b << 32);
        x[i + 4] = (a >> 32) | (b & !HALF);
    }
    for i in [0, 1, 4, 5] {
        let (a, b) = (x[i], x[i + 2]);
        x[i] = (a & QUARTER) | ((b & QUARTER) << 16);
        x[i + 2] = ((a >> 16) & QUARTER) | (b & !QUARTER);
    }
    for i in [0, 2, 4, 6] {
        let (a, b) = (x[i], x[i + 1]);
        x[i] = (a & EIGHTH) | ((b & EIGHTH) << 8);
        x[i + 1] = ((a >> 8) & EIGHTH) | (b & !EIGHTH);
    }
    x
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_part_of_a_split_page_reads_back(
            bits in prop::collection::vec(any::<u64>(), 0..70),
            a in 0_usize..70,
            b in 0_usize..70,
        ) {
            let values: Vec<f64> = bits.iter().map(|b| f64::from_bits(*b)).collect();
            let mut bytes = vec![7];
            put_split(&mut bytes, &values);
            // The plain definition: stream k has byte k of each value.
            for (i, value) in bits.iter().enumerate() {
                for (k, byte) in value.to_le_bytes().into_iter().enumerate() {
                    prop_assert_eq!(bytes[1 + k * bits.len() + i], byte);
                }
            }
            let (from, to) = (a.min(b).min(bits.len()), a.max(b).min(bits.len()));
            let mut back: Vec<f64> = vec![1.0];
            read_split(&bytes[1..], bits.len(), from, to, &mut back);
            let back: Vec<u64> = back[1..].iter().map(|v| v.to_bits()).collect();
            prop_assert_eq!(&back, &bits[from..to]);

            let mut plain = Vec::new();
            put_plain(&mut plain, &values);
            let mut back: Vec<i64> = Vec::new();
            read_plain(&plain, &mut back);
            prop_assert_eq!(back.iter().map(|v| v.cast_unsigned()).collect::<Vec<_>>(), bits);
        }
    }
}
