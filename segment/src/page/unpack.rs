//! From a stored page to its bytes: header, checksum, decompression. The caller says how large
//! the result may be before any memory is taken for it.

use zstd::bulk::Decompressor;

use super::Malformed;
use super::header::{PageHeader, PageKind};

/// Decompresses pages one after the other, keeping what it needs for that.
pub(crate) struct Unpacker {
    zstd: Decompressor<'static>,
}

impl Default for Unpacker {
    fn default() -> Self {
        Self { zstd: Decompressor::new().expect("a zstd context takes some hundred KiB") }
    }
}

impl Unpacker {
    /// Checks a stored page, header included, and decompresses its body into `body`, whose former
    /// content is lost. `limit` bounds the size of the body.
    pub(crate) fn unpack(
        &mut self,
        page: &[u8],
        kind: PageKind,
        limit: usize,
        body: &mut Vec<u8>,
    ) -> Result<PageHeader, Malformed> {
        let (header, len) = PageHeader::decode(page)?;
        let stored = &page[len..];
        if header.kind != kind {
            return Err("a page is of another kind than its place says".into());
        }
        if stored.len() != header.stored_bytes {
            return Err("a page has another length than the index says".into());
        }
        if crc32fast::hash(stored) != header.crc {
            return Err("a page fails its checksum".into());
        }
        if header.plain_bytes > limit {
            return Err("a page is larger than its rows can be".into());
        }
        // Growing only: a body that is as long as the last one is not cleared first.
        body.truncate(header.plain_bytes);
        body.resize(header.plain_bytes, 0);
        match self.zstd.decompress_to_buffer(stored, body.as_mut_slice()) {
            Ok(len) if len == header.plain_bytes => Ok(header),
            _ => Err("a page can't be decompressed".into()),
        }
    }
}
