//! The compact Thrift protocol, as much of it as page headers and offset indexes need.
//! The file's footer is written and read by the Parquet library.

use super::Malformed;

const BOOL_TRUE: u8 = 1;
const BOOL_FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// Structs within structs that are followed when skipping what we do not know.
const MAX_DEPTH: u32 = 8;

/// Writes one struct, field by field in rising order.
#[derive(Default)]
pub(crate) struct StructWriter {
    bytes: Vec<u8>,
    last_field: u8,
}

impl StructWriter {
    /// Adds an integer field of 32 bits.
    pub(crate) fn i32(&mut self, field: u8, value: i32) {
        self.field(field, I32);
        self.varint(u64::from(((value << 1) ^ (value >> 31)).cast_unsigned()));
    }

    /// Adds a truth value.
    pub(crate) fn bool(&mut self, field: u8, value: bool) {
        self.field(field, if value { BOOL_TRUE } else { BOOL_FALSE });
    }

    /// Adds a struct.
    pub(crate) fn nested(&mut self, field: u8, inner: Self) {
        self.field(field, STRUCT);
        self.bytes.extend(inner.finish());
    }

    /// The bytes of the struct.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    fn field(&mut self, field: u8, kind: u8) {
        let step = field - self.last_field;
        debug_assert!((1..16).contains(&step), "fields come in rising order, close together");
        self.bytes.push(step << 4 | kind);
        self.last_field = field;
    }

    fn varint(&mut self, value: u64) {
        super::hybrid::put_varint(&mut self.bytes, value);
    }
}

/// Walks over Thrift bytes. Never reads past them and never allocates.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A field of a struct: its number and the code of its type.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) number: i16,
    kind: u8,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes walked over so far.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// The next field of a struct whose last field had the given number, or its end.
    pub(crate) fn field(&mut self, last: i16) -> Result<Option<Field>, Malformed> {
        let head = self.byte()?;
        if head == 0 {
            return Ok(None);
        }
        let number = match i16::from(head >> 4) {
            0 => i16::try_from(self.zigzag()?).map_err(|_| "a field number is out of range")?,
            step => last.checked_add(step).ok_or("a field number is out of range")?,
        };
        Ok(Some(Field { number, kind: head & 0x0f }))
    }

    /// The value of an integer field of 32 bits.
    pub(crate) fn i32(&mut self, field: Field) -> Result<i32, Malformed> {
        if field.kind != I32 {
            return Err("an integer field has another type".into());
        }
        i32::try_from(self.zigzag()?).map_err(|_| "an integer is out of range".into())
    }

    /// The value of an integer field of 64 bits.
    pub(crate) fn i64(&mut self, field: Field) -> Result<i64, Malformed> {
        if field.kind != I64 {
            return Err("an integer field has another type".into());
        }
        self.zigzag()
    }

    /// Enters a struct field.
    pub(crate) fn enter(&mut self, field: Field) -> Result<(), Malformed> {
        if field.kind == STRUCT { Ok(()) } else { Err("a struct field has another type".into()) }
    }

    /// Enters a list of structs and returns how many there are; each takes a byte at least.
    pub(crate) fn list_of_structs(&mut self, field: Field) -> Result<usize, Malformed> {
        let (kind, len) = if field.kind == LIST { self.list_head()? } else { (0, 0) };
        if kind != STRUCT && !(field.kind == LIST && len == 0) {
            return Err("a list has another type".into());
        }
        Ok(len)
    }

    /// Steps over a field whose meaning is unknown or unimportant.
    pub(crate) fn skip(&mut self, field: Field) -> Result<(), Malformed> {
        self.skip_value(field.kind, false, MAX_DEPTH)
    }

    fn skip_value(&mut self, kind: u8, in_list: bool, depth: u32) -> Result<(), Malformed> {
        let depth = depth.checked_sub(1).ok_or("structs are nested too deep")?;
        match kind {
            BOOL_TRUE | BOOL_FALSE if !in_list => Ok(()),
            BOOL_TRUE | BOOL_FALSE | BYTE => self.byte().map(|_| ()),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => self.advance(8),
            BINARY => {
                let len = usize::try_from(self.varint()?).map_err(|_| "a text is too long")?;
                self.advance(len)
            }
            LIST | SET => {
                let (kind, len) = self.list_head()?;
                (0..len).try_for_each(|_| self.skip_value(kind, true, depth))
            }
            STRUCT => {
                let mut last = 0;
                while let Some(field) = self.field(last)? {
                    last = field.number;
                    self.skip_value(field.kind, false, depth)?;
                }
                Ok(())
            }
            other => Err(Malformed(format!("a field has type {other}"))),
        }
    }

    fn list_head(&mut self) -> Result<(u8, usize), Malformed> {
        let head = self.byte()?;
        let len = match head >> 4 {
            15 => usize::try_from(self.varint()?).unwrap_or(usize::MAX),
            short => usize::from(short),
        };
        if len > self.bytes.len() - self.at {
            return Err("a list is longer than its bytes".into());
        }
        Ok((head & 0x0f, len))
    }

    fn advance(&mut self, len: usize) -> Result<(), Malformed> {
        if len > self.bytes.len() - self.at {
            return Err("a field ends beyond its bytes".into());
        }
        self.at += len;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = *self.bytes.get(self.at).ok_or("a struct ends beyond its bytes")?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let (value, len) =
            super::hybrid::get_varint(&self.bytes[self.at..]).ok_or("an integer has no end")?;
        self.at += len;
        Ok(value)
    }

    fn zigzag(&mut self) -> Result<i64, Malformed> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_the_unknown_is_skipped() {
        let mut inner = StructWriter::default();
        inner.i32(1, -7);
        inner.bool(3, true);
        let mut outer = StructWriter::default();
        outer.i32(2, i32::MIN);
        outer.nested(5, inner);
        outer.i32(6, i32::MAX);
        let bytes = outer.finish();

        let mut reader = Reader::new(&bytes);
        let two = reader.field(0).unwrap().unwrap();
        assert_eq!((two.number, reader.i32(two).unwrap()), (2, i32::MIN));
        let five = reader.field(2).unwrap().unwrap();
        reader.skip(five).unwrap();
        let six = reader.field(5).unwrap().unwrap();
        assert_eq!((six.number, reader.i32(six).unwrap()), (6, i32::MAX));
        assert!(reader.field(6).unwrap().is_none());
        assert_eq!(reader.position(), bytes.len());
    }

    #[test]
    fn endless_nesting_and_huge_lists_are_refused() {
        let nested = [0x1c; 100];
        let mut reader = Reader::new(&nested);
        let field = reader.field(0).unwrap().unwrap();
        assert!(reader.skip(field).unwrap_err().0.contains("nested"));
        let list = [0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f];
        let mut reader = Reader::new(&list);
        let field = reader.field(0).unwrap().unwrap();
        assert!(reader.list_of_structs(field).unwrap_err().0.contains("longer"));
    }
}
