//! Makes files that are wrong and whose checksums are right: changes what the seal covers and seals
//! it again; changes the content of a page, compresses it into the same place and corrects its
//! checksum. Knows the format by its description, not by the code under test.

use std::ops::Range;

use bytes::Bytes;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaDataReader};
use xxhash_rust::xxh3::Xxh3;

use super::common::Files;

const SEAL: &[u8] = b"tributary.seal\x18\x30";
const FROM_DIGITS: usize = 16;
const SUM_DIGITS: usize = 32;

/// Somebody who can write what he likes.
pub struct Forger {
    files: Files,
    series_pages: Vec<Range<usize>>,
    samples_pages: Vec<Range<usize>>,
}

impl Forger {
    pub fn new(files: &Files) -> Self {
        let (series_pages, samples_pages) = (pages_of(&files.series), pages_of(&files.samples));
        let forger = Self { files: files.clone(), series_pages, samples_pages };
        // A forger who cannot even copy would prove nothing.
        for of_series in [true, false] {
            forger.with_end(of_series, |_| {}).open().unwrap();
            forger.with_page(of_series, 0, |_| {}).unwrap().open().unwrap();
        }
        forger
    }

    /// How many pages a file has.
    pub fn pages(&self, of_series: bool) -> usize {
        if of_series { self.series_pages.len() } else { self.samples_pages.len() }
    }

    /// The files with a change to what the seal of one of them covers.
    pub fn with_end(&self, of_series: bool, change: impl FnOnce(&mut [u8])) -> Files {
        let (mut series, mut samples) = (self.files.series.to_vec(), self.files.samples.to_vec());
        if of_series {
            change(&mut series);
            seal(&mut series);
        } else if let Some(from) = sealed_from(&samples) {
            let old = sum_of(&samples).unwrap().to_vec();
            change(&mut samples[from..]);
            if let Some(new) = seal(&mut samples) {
                // The file of series names the other by its seal.
                let at = position(&series, &old).unwrap();
                series[at..at + SUM_DIGITS].copy_from_slice(new.as_bytes());
                seal(&mut series);
            }
        }
        Files { series: series.into(), samples: samples.into() }
    }

    /// The files with a change to the content of a page. None if it does not fit into its place.
    pub fn with_page(
        &self,
        of_series: bool,
        page: usize,
        change: impl FnOnce(&mut Vec<u8>),
    ) -> Option<Files> {
        let mut files = self.files.clone();
        let (file, pages) = if of_series {
            (&mut files.series, &self.series_pages)
        } else {
            (&mut files.samples, &self.samples_pages)
        };
        let mut bytes = file.to_vec();
        let page = &mut bytes[pages[page].clone()];
        let (crc_at, body_at) = parts_of_header(page);
        let mut content = zstd::decode_all(&page[body_at..]).unwrap();
        change(&mut content);
        let stored = compressed_to(&content, page.len() - body_at)?;
        let crc = varint(zigzag(crc32fast::hash(&stored)));
        if crc.len() != crc_at.len() {
            return None;
        }
        page[crc_at].copy_from_slice(&crc);
        page[body_at..].copy_from_slice(&stored);
        if of_series {
            seal(&mut bytes);
        }
        *file = bytes.into();
        Some(files)
    }
}

/// Where the pages of a file are, header included.
fn pages_of(file: &Bytes) -> Vec<Range<usize>> {
    let reader = ParquetMetaDataReader::new().with_page_index_policy(PageIndexPolicy::Required);
    let metadata = reader.parse_and_finish(file).unwrap();
    let at = |offset: i64| usize::try_from(offset).unwrap();
    let mut pages = Vec::new();
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let index = metadata.page_index_for_row_group(number);
        for (number, column) in group.columns().iter().enumerate() {
            let locations = index.page_locations(number).unwrap();
            if let (Some(start), Some(first)) = (column.dictionary_page_offset(), locations.first())
            {
                pages.push(at(start)..at(first.offset));
            }
            for page in locations {
                let start = at(page.offset);
                pages.push(start..start + usize::try_from(page.compressed_page_size).unwrap());
            }
        }
    }
    pages
}

/// Where in a page its checksum is, and where its body begins. Headers begin with four numbers,
/// the last of which is the checksum, and end with a struct in a struct.
fn parts_of_header(page: &[u8]) -> (Range<usize>, usize) {
    let mut at = 0;
    let mut numbers = Vec::new();
    for _ in 0..4 {
        assert_eq!(page[at], 0x15, "a field of 32 bits follows the one before");
        let len = 1 + page[at + 1..].iter().position(|byte| byte & 0x80 == 0).unwrap();
        numbers.push(at + 1..at + 1 + len);
        at += 1 + len;
    }
    // The third number says how long the body is, and the body is at the end.
    let stored = page[numbers[2].clone()]
        .iter()
        .enumerate()
        .fold(0_usize, |sum, (i, byte)| sum | usize::from(byte & 0x7f) << (7 * i));
    (numbers[3].clone(), page.len() - stored / 2)
}

/// Compresses to exactly so many bytes: what is left over is filled with a frame to be skipped.
fn compressed_to(content: &[u8], size: usize) -> Option<Vec<u8>> {
    const SKIPPED_FRAME: [u8; 4] = 0x184d_2a50_u32.to_le_bytes();
    for level in [3, 6, 19] {
        let mut stored = zstd::bulk::compress(content, level).unwrap();
        match size.checked_sub(stored.len()) {
            Some(0) => return Some(stored),
            Some(left) if left >= 8 => {
                stored.extend(SKIPPED_FRAME);
                stored.extend(u32::try_from(left - 8).unwrap().to_le_bytes());
                stored.resize(size, 0);
                return Some(stored);
            }
            _ => {}
        }
    }
    None
}

fn zigzag(number: u32) -> u32 {
    let number = number.cast_signed();
    ((number << 1) ^ (number >> 31)).cast_unsigned()
}

fn varint(mut number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let [low, ..] = number.to_le_bytes();
        number >>= 7;
        if number == 0 {
            bytes.push(low & 0x7f);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

fn position(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).rposition(|window| window == text)
}

/// Where the text of the seal is.
fn text_of_seal(file: &[u8]) -> Option<Range<usize>> {
    let at = position(file, SEAL)? + SEAL.len();
    let text = at..at + FROM_DIGITS + SUM_DIGITS;
    (text.end <= file.len()).then_some(text)
}

fn sealed_from(file: &[u8]) -> Option<usize> {
    let text = text_of_seal(file)?;
    let digits = std::str::from_utf8(&file[text.start..text.start + FROM_DIGITS]).ok()?;
    usize::from_str_radix(digits, 16).ok().filter(|from| *from < text.start)
}

fn sum_of(file: &[u8]) -> Option<&[u8]> {
    let text = text_of_seal(file)?;
    Some(&file[text.start + FROM_DIGITS..text.end])
}

/// Seals a file again; not if its seal can't be found any more.
fn seal(file: &mut [u8]) -> Option<String> {
    let from = sealed_from(file)?;
    let text = text_of_seal(file)?;
    let sum_at = text.start + FROM_DIGITS;
    let mut hash = Xxh3::new();
    hash.update(&file[from..sum_at]);
    hash.update(&[b'0'; SUM_DIGITS]);
    hash.update(&file[text.end..]);
    let sum = format!("{:0SUM_DIGITS$x}", hash.digest128());
    file[sum_at..text.end].copy_from_slice(sum.as_bytes());
    Some(sum)
}
