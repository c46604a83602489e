//! Bytes on their way into a file without a name. They are gathered and written in large pieces, off
//! the threads that serve sockets.

use std::fs::File;
use std::io::{self, Seek as _, SeekFrom, Write as _};

use super::Sink;

/// Bytes gathered before they are written.
const PIECE_BYTES: usize = 1 << 20;

/// A file in the making.
#[derive(Debug)]
pub(crate) struct Spill {
    /// Gone while a piece is being written, and for good where that failed.
    file: Option<File>,
    gathered: Vec<u8>,
    len: u64,
}

impl Spill {
    pub(super) fn new() -> io::Result<Self> {
        let file = Some(tempfile::tempfile()?);
        Ok(Self { file, gathered: Vec::with_capacity(PIECE_BYTES), len: 0 })
    }

    /// The file, all bytes being written.
    pub(super) async fn into_file(mut self) -> io::Result<File> {
        self.write().await?;
        let mut file = self.file.take().ok_or_else(broken)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }

    async fn write(&mut self) -> io::Result<()> {
        let mut file = self.file.take().ok_or_else(broken)?;
        let gathered = std::mem::take(&mut self.gathered);
        let writing = move || {
            file.write_all(&gathered)?;
            Ok::<_, io::Error>((file, gathered))
        };
        let (file, mut gathered) =
            tokio::task::spawn_blocking(writing).await.map_err(io::Error::other)??;
        gathered.clear();
        (self.file, self.gathered) = (Some(file), gathered);
        Ok(())
    }
}

impl Sink for Spill {
    fn len(&self) -> u64 {
        self.len
    }

    async fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.gathered.extend_from_slice(bytes);
        self.len += bytes.len() as u64;
        if self.gathered.len() >= PIECE_BYTES { self.write().await } else { Ok(()) }
    }

    fn clear(&mut self) -> io::Result<()> {
        let file = self.file.as_mut().ok_or_else(broken)?;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        self.gathered.clear();
        self.len = 0;
        Ok(())
    }
}

fn broken() -> io::Error {
    io::Error::other("an earlier write failed")
}
