//! Texts to import: files and standard input, plain or compressed, and which of the two formats
//! they have. Reads bytes; what the lines mean is `tributary_segment`'s.

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use tributary_segment::Format;

use super::read_ahead::ReadAhead;

/// Bytes that tell how a text is compressed.
const MAGIC_BYTES: usize = 4;

/// Of a text whose end can't be looked up this much is read ahead, to see whether it ends there.
const PEEK_BYTES: u64 = 1 << 20;

/// Bytes at the end of a text that tell its format.
const END_BYTES: usize = 64;

/// Where a text comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Standard,
    File(PathBuf),
}

/// A text that can be read.
pub(super) struct Input {
    pub(super) text: Box<dyn Read>,
    pub(super) format: Format,
    /// The format is a guess: the user did not say, and the end can't be seen from here.
    pub(super) is_guess: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Source {
    /// The source that an argument names; `-` is standard input.
    pub(super) fn of(argument: &OsStr) -> Self {
        if argument == "-" { Self::Standard } else { Self::File(argument.into()) }
    }

    /// Bytes there are to read, where that is known.
    pub(super) fn size_bytes(&self) -> io::Result<Option<u64>> {
        match self {
            Self::Standard => Ok(None),
            Self::File(path) => {
                let metadata = File::open(path)?.metadata()?;
                if metadata.is_dir() {
                    return Err(io::ErrorKind::IsADirectory.into());
                }
                Ok(metadata.is_file().then_some(metadata.len()))
            }
        }
    }

    /// Opens it. Bytes that are read, before they are decompressed, are added to `read`.
    pub(super) fn open(&self, format: Option<Format>, read: &Arc<AtomicU64>) -> io::Result<Input> {
        let counted = |from: Box<dyn Read + Send>| Counted { from, read: Arc::clone(read) };
        let (raw, can_seek) = match self {
            Self::Standard => (counted(Box::new(io::stdin())), false),
            Self::File(path) => {
                let file = File::open(path)?;
                let can_seek = file.metadata()?.is_file();
                (counted(Box::new(file)), can_seek)
            }
        };
        let (compression, mut text) = decompressed(raw)?;
        if let Some(format) = format {
            return Ok(Input { text, format, is_guess: false });
        }
        let mut head = Vec::new();
        (&mut text).take(PEEK_BYTES).read_to_end(&mut head)?;
        let (format, is_guess) = match self {
            _ if (head.len() as u64) < PEEK_BYTES => (Format::of_end(&head), false),
            Self::File(path) if can_seek => {
                let file = File::open(path)?;
                let end = if compression == Compression::None {
                    end_of_file(file)
                } else {
                    end_of_stream(decompressed(file)?.1)
                };
                (Format::of_end(&end?), false)
            }
            _ => (Format::OpenMetrics, true),
        };
        Ok(Input { text: Box::new(Cursor::new(head).chain(text)), format, is_guess })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Standard => f.write_str("<stdin>"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

fn decompressed(mut raw: impl Read + Send + 'static) -> io::Result<(Compression, Box<dyn Read>)> {
    let mut magic = Vec::with_capacity(MAGIC_BYTES);
    raw.by_ref().take(MAGIC_BYTES as u64).read_to_end(&mut magic)?;
    let compression = Compression::of_start(&magic);
    let whole = Cursor::new(magic).chain(raw);
    // Decompressing costs about as much as understanding the text, so it has a thread of its own.
    let text: Box<dyn Read> = match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => Box::new(ReadAhead::start(MultiGzDecoder::new(whole))),
        Compression::Zstd => Box::new(ReadAhead::start(zstd::Decoder::new(whole)?)),
    };
    Ok((compression, text))
}

impl Compression {
    /// By the first bytes: whatever a file is called, and standard input has no name.
    fn of_start(bytes: &[u8]) -> Self {
        match bytes {
            [0x1f, 0x8b, ..] => Self::Gzip,
            // A frame, or one to skip, which some tools put in front.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }
}

fn end_of_file(mut file: File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES as u64)))?;
    let mut end = Vec::new();
    file.take(END_BYTES as u64).read_to_end(&mut end)?;
    Ok(end)
}

/// The end of a text that can only be read from its start.
fn end_of_stream(mut text: impl Read) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; 1 << 20];
    let mut end = Vec::new();
    loop {
        let read = match text.read(&mut buffer) {
            Ok(0) => return Ok(end),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        end.extend_from_slice(&buffer[read.saturating_sub(END_BYTES)..read]);
        end.drain(..end.len().saturating_sub(END_BYTES));
    }
}

/// Counts the bytes that go through.
struct Counted {
    from: Box<dyn Read + Send>,
    read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_known_by_the_first_bytes() {
        for (bytes, compression) in [
            (&b""[..], Compression::None),
            (b"up 1 2\n", Compression::None),
            (&[0x1f, 0x8b, 8, 0], Compression::Gzip),
            (&[0x28, 0xb5, 0x2f, 0xfd], Compression::Zstd),
            (&[0x53, 0x2a, 0x4d, 0x18], Compression::Zstd),
            (&[0x28, 0xb5, 0x2f], Compression::None),
        ] {
            assert_eq!(Compression::of_start(bytes), compression, "{bytes:?}");
        }
    }

    #[test]
    fn the_end_of_a_stream_is_kept_however_it_is_cut() {
        let text: Vec<u8> = (0..=255).cycle().take(3_000_001).collect();
        let end = end_of_stream(Cursor::new(&text[..7]).chain(&text[7..])).unwrap();
        assert_eq!(end, text[text.len() - END_BYTES..]);
        assert_eq!(end_of_stream(&b"ab"[..]).unwrap(), b"ab");
        let one_by_one = (b"a\n".iter()).map(std::slice::from_ref);
        let drip = one_by_one.fold(Box::new(io::empty()) as Box<dyn Read>, |before, byte| {
            Box::new(before.chain(byte))
        });
        assert_eq!(end_of_stream(drip).unwrap(), b"a\n");
    }
}
