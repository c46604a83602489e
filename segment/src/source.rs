//! Where the bytes of a file come from: memory, a local file, or whatever a caller makes of it.
//! Knows ranges of bytes and nothing of what they mean.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;

/// A file of fixed size whose ranges can be read in any order.
pub trait ByteSource: Send + Sync {
    /// What the file is called in errors.
    fn name(&self) -> &str;

    /// Length of the file.
    fn size_bytes(&self) -> u64;

    /// The bytes of a range that lies within the file. Fewer bytes are an error.
    fn read_range(&self, range: Range<u64>) -> io::Result<Bytes>;
}

/// A file that is already in memory.
#[derive(Clone, Debug)]
pub struct MemorySource {
    name: String,
    bytes: Bytes,
}

impl MemorySource {
    /// Takes the bytes of a file under a name.
    pub fn new(name: impl Into<String>, bytes: impl Into<Bytes>) -> Self {
        Self { name: name.into(), bytes: bytes.into() }
    }
}

impl ByteSource for MemorySource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_range(&self, range: Range<u64>) -> io::Result<Bytes> {
        let within = |at: u64| usize::try_from(at).ok().filter(|at| *at <= self.bytes.len());
        match (within(range.start), within(range.end)) {
            (Some(start), Some(end)) if start <= end => Ok(self.bytes.slice(start..end)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// A file on the local disk. Reads do not move a shared position, so threads may share it.
#[derive(Debug)]
pub struct FileSource {
    name: String,
    file: File,
    size_bytes: u64,
}

impl FileSource {
    /// Opens a file.
    pub fn open(path: &Path) -> io::Result<Self> {
        Self::new(path.display().to_string(), File::open(path)?)
    }

    /// Takes a file that is open and stays as long as it is.
    pub(crate) fn new(name: String, file: File) -> io::Result<Self> {
        let size_bytes = file.metadata()?.len();
        Ok(Self { name, file, size_bytes })
    }
}

impl ByteSource for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn read_range(&self, range: Range<u64>) -> io::Result<Bytes> {
        let len = range.end.checked_sub(range.start).filter(|_| range.end <= self.size_bytes);
        let len = len.and_then(|len| usize::try_from(len).ok());
        let mut buffer = vec![0; len.ok_or(io::ErrorKind::UnexpectedEof)?];
        read_exact_at(&self.file, &mut buffer, range.start)?;
        Ok(buffer.into())
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, at)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut buffer: &mut [u8], mut at: u64) -> io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !buffer.is_empty() {
        match file.seek_read(buffer, at)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => {
                buffer = &mut buffer[n..];
                at += n as u64;
            }
        }
    }
    Ok(())
}

impl<S: ByteSource + ?Sized> ByteSource for std::sync::Arc<S> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn size_bytes(&self) -> u64 {
        (**self).size_bytes()
    }

    fn read_range(&self, range: Range<u64>) -> io::Result<Bytes> {
        (**self).read_range(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_beyond_the_end_is_an_error_not_a_panic() {
        let dir = std::env::temp_dir().join(format!("tributary-source-{}", std::process::id()));
        std::fs::write(&dir, b"0123456789").unwrap();
        let file = FileSource::open(&dir).unwrap();
        std::fs::remove_file(&dir).unwrap();
        let memory = MemorySource::new("m", &b"0123456789"[..]);
        let sources: [&dyn ByteSource; 2] = [&file, &memory];
        for source in sources {
            assert_eq!(source.size_bytes(), 10);
            assert_eq!(source.read_range(3..6).unwrap(), &b"345"[..]);
            assert_eq!(source.read_range(10..10).unwrap(), &b""[..]);
            #[expect(clippy::reversed_empty_ranges, reason = "that is the bad range")]
            for bad in [9..11, 11..12, 6..3, 0..u64::MAX] {
                assert!(source.read_range(bad).is_err());
            }
        }
    }
}
