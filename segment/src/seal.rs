//! The seal of a file: a checksum of its footer and indexes, kept inside the footer itself, so that
//! damage is found before anything in there is believed.
//!
//! The metadata has a text of fixed length: from where on the file is sealed, then the checksum of
//! everything from there to the end, with zeros in the checksum's own place. The file of series is
//! sealed as a whole; in the file of samples each page has its own checksum and the seal covers the
//! rest. The text is found by its name without understanding the footer.

use memchr::memmem;
use xxhash_rust::xxh3::Xxh3;

use crate::schema::key;

const FROM_DIGITS: usize = 16;
const SUM_DIGITS: usize = 32;

/// Length of the text: two hexadecimal numbers.
const SEAL_BYTES: usize = FROM_DIGITS + SUM_DIGITS;

/// A seal that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seal {
    /// The first sealed byte of the file.
    pub(crate) from: u64,
    /// The checksum, as text. Two files with one seal have the same footer.
    pub(crate) sum: String,
}

/// What stands in the metadata until the file is complete.
pub(crate) fn blank(from: u64) -> String {
    format!("{from:0FROM_DIGITS$x}{:0SUM_DIGITS$x}", 0)
}

/// Where the seal's text is within `bytes`, the end of a file.
fn find(bytes: &[u8]) -> Option<usize> {
    // In the footer a text follows its name after a field head and its length.
    let mut needle = key::SEAL.as_bytes().to_vec();
    needle.extend([0x18, u8::try_from(SEAL_BYTES).expect("48")]);
    let at = memmem::rfind(bytes, &needle)? + needle.len();
    (at + SEAL_BYTES <= bytes.len()).then_some(at)
}

fn sum(sealed: &[u8], sum_at: usize) -> String {
    let mut hash = Xxh3::new();
    hash.update(&sealed[..sum_at]);
    hash.update(&[b'0'; SUM_DIGITS]);
    hash.update(&sealed[sum_at + SUM_DIGITS..]);
    format!("{:0SUM_DIGITS$x}", hash.digest128())
}

/// Closes a file whose bytes from `from` on are `sealed`, with a blank seal among them.
pub(crate) fn close(sealed: &mut [u8], from: u64) -> Seal {
    let at = find(sealed).expect("a blank seal is part of every footer") + FROM_DIGITS;
    let sum = sum(sealed, at);
    sealed[at..at + SUM_DIGITS].copy_from_slice(sum.as_bytes());
    Seal { from, sum }
}

/// From where on the file is sealed, as its end says.
pub(crate) fn sealed_from(end: &[u8]) -> Option<u64> {
    let at = find(end)?;
    let digits = std::str::from_utf8(&end[at..at + FROM_DIGITS]).ok()?;
    u64::from_str_radix(digits, 16).ok()
}

/// The seal of a file whose bytes from `from` on are `sealed`, if it holds.
pub(crate) fn check(sealed: &[u8], from: u64) -> Option<Seal> {
    let at = find(sealed)? + FROM_DIGITS;
    let sum = sum(sealed, at);
    (sealed[at..at + SUM_DIGITS] == *sum.as_bytes()).then_some(Seal { from, sum })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_byte_breaks_the_seal() {
        let mut bytes = b"before ".to_vec();
        bytes.extend(key::SEAL.as_bytes());
        bytes.extend([0x18, 48]);
        bytes.extend(blank(0x1234).as_bytes());
        bytes.extend(b" after");
        let seal = close(&mut bytes, 0x1234);
        assert_eq!(sealed_from(&bytes), Some(0x1234));
        assert_eq!(check(&bytes, 0x1234), Some(seal));
        for at in 0..bytes.len() {
            bytes[at] ^= 0x20;
            assert_eq!(check(&bytes, 0x1234), None, "byte {at}");
            bytes[at] ^= 0x20;
        }
    }
}
