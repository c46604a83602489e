//! Text columns of the series file: a sorted dictionary of strings and numbers into it.

use super::{Malformed, hybrid};

/// Strings in rising order, each once, in one piece of memory. A string's place is its rank.
#[derive(Clone, Debug, Default)]
pub(crate) struct Strings {
    text: String,
    ends: Vec<u32>,
}

impl Strings {
    /// The string with this number.
    pub(crate) fn get(&self, number: u32) -> &str {
        let at = number as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] as usize };
        &self.text[start..self.ends[at] as usize]
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.ends.len()).expect("decoding counts them in 32 bits")
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * size_of::<u32>()
    }

    /// The number of a string.
    pub(crate) fn find(&self, wanted: &str) -> Option<u32> {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from + (to - from) / 2;
            match self.get(middle).cmp(wanted) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }

    /// Reads a dictionary page's body of `count` strings, which must be sorted.
    pub(crate) fn decode(mut body: &[u8], count: usize) -> Result<Self, Malformed> {
        if count > body.len() / 4 || u32::try_from(body.len()).is_err() {
            return Err("a dictionary is shorter than its count".into());
        }
        let mut strings =
            Self { text: String::with_capacity(body.len()), ends: Vec::with_capacity(count) };
        while !body.is_empty() {
            let (len, rest) = body.split_at_checked(4).ok_or("a dictionary is cut off")?;
            let len = u32::from_le_bytes(len.try_into().expect("four bytes")) as usize;
            let (text, rest) = rest.split_at_checked(len).ok_or("a dictionary is cut off")?;
            let text = std::str::from_utf8(text).map_err(|_| "a text is not UTF-8")?;
            if let Some(last) = strings.ends.len().checked_sub(1) {
                let last = u32::try_from(last).expect("fewer than bytes");
                if strings.get(last) >= text {
                    return Err("a dictionary is not sorted".into());
                }
            }
            strings.text.push_str(text);
            strings.ends.push(u32::try_from(strings.text.len()).expect("fewer than bytes"));
            body = rest;
        }
        if strings.ends.len() != count {
            return Err("a dictionary has another count than its header says".into());
        }
        Ok(strings)
    }
}

/// Appends strings as a dictionary page's body.
pub(crate) fn put_dictionary<'a>(out: &mut Vec<u8>, strings: impl Iterator<Item = &'a str>) {
    for text in strings {
        let len = u32::try_from(text.len()).expect("labels are limited when they come in");
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(text.as_bytes());
    }
}

/// Appends dictionary numbers as a data page's values.
pub(crate) fn put_numbers(out: &mut Vec<u8>, numbers: &[u32], dictionary_len: u32) {
    let width = hybrid::byte_width(dictionary_len.saturating_sub(1));
    out.push(width);
    if !numbers.is_empty() {
        hybrid::put_bytes_run(out, numbers, width);
    }
}

/// Reads `count` dictionary numbers, each less than `dictionary_len`.
pub(crate) fn read_numbers(
    body: &[u8],
    count: usize,
    dictionary_len: u32,
    out: &mut Vec<u32>,
) -> Result<(), Malformed> {
    let (width, body) = body.split_first().ok_or("a page has no width")?;
    let mut outside = false;
    hybrid::read(body, *width, count, |number| {
        outside |= number >= dictionary_len;
        out.push(number);
    })?;
    if outside { Err("a number is outside its dictionary".into()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dictionary_reads_back_and_finds_its_strings() {
        let mut body = Vec::new();
        put_dictionary(&mut body, ["", "a", "ab", "é"].into_iter());
        let strings = Strings::decode(&body, 4).unwrap();
        assert_eq!(strings.len(), 4);
        for (i, text) in ["", "a", "ab", "é"].into_iter().enumerate() {
            let i = u32::try_from(i).unwrap();
            assert_eq!(strings.get(i), text);
            assert_eq!(strings.find(text), Some(i));
        }
        assert_eq!(strings.find("aa"), None);
        assert_eq!(strings.find("zz"), None);
    }

    #[test]
    fn bad_dictionaries_are_refused() {
        let mut unsorted = Vec::new();
        put_dictionary(&mut unsorted, ["b", "a"].into_iter());
        assert!(Strings::decode(&unsorted, 2).unwrap_err().0.contains("sorted"));
        let mut good = Vec::new();
        put_dictionary(&mut good, ["a", "b"].into_iter());
        assert!(Strings::decode(&good, 1).is_err());
        assert!(Strings::decode(&good, usize::MAX).is_err());
        assert!(Strings::decode(&good[..good.len() - 1], 2).is_err());
        assert!(Strings::decode(&[1, 0, 0, 0, 0xff], 1).unwrap_err().0.contains("UTF-8"));
    }

    #[test]
    fn numbers_outside_the_dictionary_are_refused() {
        let mut body = Vec::new();
        put_numbers(&mut body, &[0, 2, 1], 3);
        let mut back = Vec::new();
        read_numbers(&body, 3, 3, &mut back).unwrap();
        assert_eq!(back, [0, 2, 1]);
        assert!(read_numbers(&body, 3, 2, &mut back).is_err());
    }
}
