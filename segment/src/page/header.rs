//! The header in front of every page, and the offset index that says where a chunk's pages are.

use super::thrift::{Reader, StructWriter};
use super::{Layout, Malformed};

/// Longest header a page of ours can have; foreign statistics would make it longer.
const MAX_HEADER: usize = 256;

/// Whether a page holds rows or the dictionary of its chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageKind {
    Data,
    Dictionary,
}

/// What a header says of its page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageHeader {
    pub(crate) kind: PageKind,
    pub(crate) layout: Layout,
    /// Values in the page, which for a column without repetition is its rows.
    pub(crate) values: usize,
    /// Length of the page's body once it is decompressed.
    pub(crate) plain_bytes: usize,
    /// Length of the page's body as it is stored.
    pub(crate) stored_bytes: usize,
    /// CRC-32 of the body as it is stored.
    pub(crate) crc: u32,
}

impl PageHeader {
    /// The bytes of the header, or nothing where a size does not fit into one.
    pub(crate) fn encode(&self) -> Option<Vec<u8>> {
        let mut header = StructWriter::default();
        header.i32(1, if self.kind == PageKind::Data { 0 } else { 2 });
        header.i32(2, i32::try_from(self.plain_bytes).ok()?);
        header.i32(3, i32::try_from(self.stored_bytes).ok()?);
        header.i32(4, self.crc.cast_signed());
        let mut inner = StructWriter::default();
        inner.i32(1, i32::try_from(self.values).ok()?);
        inner.i32(2, self.layout.code());
        match self.kind {
            PageKind::Data => {
                // Levels, where there are any, are runs of bits.
                const RLE: i32 = 3;
                inner.i32(3, RLE);
                inner.i32(4, RLE);
                if self.layout == Layout::Split {
                    // Statistics without content. A page of plain values is as long as a split one:
                    // so one byte of damage to the layout's code can't make one of the other.
                    inner.nested(5, StructWriter::default());
                }
                header.nested(5, inner);
            }
            PageKind::Dictionary => {
                inner.bool(3, true);
                header.nested(7, inner);
            }
        }
        Some(header.finish())
    }

    /// Reads the header in front of a page; also gives its length.
    pub(crate) fn decode(page: &[u8]) -> Result<(Self, usize), Malformed> {
        let mut reader = Reader::new(&page[..page.len().min(MAX_HEADER)]);
        let (mut code, mut plain, mut stored, mut crc, mut inner) = (None, None, None, None, None);
        let mut last = 0;
        while let Some(field) = reader.field(last)? {
            last = field.number;
            match last {
                1 => code = Some(reader.i32(field)?),
                2 => plain = Some(reader.i32(field)?),
                3 => stored = Some(reader.i32(field)?),
                4 => crc = Some(reader.i32(field)?.cast_unsigned()),
                5 | 7 => {
                    reader.enter(field)?;
                    inner = Some((last, decode_inner(&mut reader)?));
                }
                _ => reader.skip(field)?,
            }
        }
        let size = |bytes: Option<i32>| bytes.and_then(|bytes| usize::try_from(bytes).ok());
        let (kind, (values, layout)) = match (code, inner) {
            (Some(0), Some((5, inner))) => (PageKind::Data, inner),
            (Some(2), Some((7, inner))) => (PageKind::Dictionary, inner),
            _ => return Err("a page is neither data nor dictionary".into()),
        };
        let header = Self {
            kind,
            layout,
            values,
            plain_bytes: size(plain).ok_or("a page has no size")?,
            stored_bytes: size(stored).ok_or("a page has no size")?,
            crc: crc.ok_or("a page has no checksum")?,
        };
        // The body has a checksum, the header has not: it must be what we would have written.
        let len = reader.position();
        if header.encode().as_deref() != page.get(..len) {
            return Err("a page's header is not as it was written".into());
        }
        Ok((header, len))
    }
}

fn decode_inner(reader: &mut Reader<'_>) -> Result<(usize, Layout), Malformed> {
    let (mut values, mut layout) = (None, None);
    let mut last = 0;
    while let Some(field) = reader.field(last)? {
        last = field.number;
        match last {
            1 => values = usize::try_from(reader.i32(field)?).ok(),
            2 => layout = Some(Layout::from_code(reader.i32(field)?)?),
            _ => reader.skip(field)?,
        }
    }
    values.zip(layout).ok_or_else(|| "a page has no count of values".into())
}

/// Where a page is and which rows it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageAt {
    /// First byte of the header, in the file.
    pub(crate) offset: u64,
    /// Length of header and body.
    pub(crate) bytes: u32,
    /// First row, counted from the start of the row group.
    pub(crate) first_row: u64,
}

/// Reads a chunk's offset index. The library's own reader believes the length that the bytes
/// claim and reserves memory for it, so a damaged index would end the process.
pub(crate) fn decode_offset_index(bytes: &[u8]) -> Result<Vec<PageAt>, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut pages = Vec::new();
    let mut last = 0;
    while let Some(field) = reader.field(last)? {
        last = field.number;
        if last != 1 {
            reader.skip(field)?;
            continue;
        }
        let count = reader.list_of_structs(field)?;
        pages.reserve_exact(count);
        for _ in 0..count {
            pages.push(decode_page_at(&mut reader)?);
        }
    }
    Ok(pages)
}

fn decode_page_at(reader: &mut Reader<'_>) -> Result<PageAt, Malformed> {
    let (mut offset, mut bytes, mut first_row) = (None, None, None);
    let mut last = 0;
    while let Some(field) = reader.field(last)? {
        last = field.number;
        match last {
            1 => offset = u64::try_from(reader.i64(field)?).ok(),
            2 => bytes = u32::try_from(reader.i32(field)?).ok(),
            3 => first_row = u64::try_from(reader.i64(field)?).ok(),
            _ => reader.skip(field)?,
        }
    }
    match (offset, bytes, first_row) {
        (Some(offset), Some(bytes), Some(first_row)) => Ok(PageAt { offset, bytes, first_row }),
        _ => Err("a page has no place".into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_read_back() {
        for (kind, layout) in [
            (PageKind::Data, Layout::Plain),
            (PageKind::Data, Layout::Split),
            (PageKind::Data, Layout::Dictionary),
            (PageKind::Dictionary, Layout::Plain),
        ] {
            let header = PageHeader {
                kind,
                layout,
                values: 32_768,
                plain_bytes: 262_144,
                stored_bytes: 50_000,
                crc: 0xdead_beef,
            };
            let mut bytes = header.encode().unwrap();
            let len = bytes.len();
            bytes.extend([1, 2, 3]);
            assert_eq!(PageHeader::decode(&bytes).unwrap(), (header, len));
        }
    }

    #[test]
    fn a_page_too_large_for_a_header_is_refused_when_written() {
        let header = PageHeader {
            kind: PageKind::Data,
            layout: Layout::Plain,
            values: 1,
            plain_bytes: 1 << 31,
            stored_bytes: 1,
            crc: 0,
        };
        assert!(header.encode().is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_header_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = PageHeader::decode(&bytes);
            let _ = decode_offset_index(&bytes);
        }
    }
}
