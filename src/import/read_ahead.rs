//! A reader that reads ahead, in a thread of its own: what is slow to make, such as decompressed
//! text, is made while the part before is used.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes made in one go.
const CHUNK_BYTES: usize = 1 << 20;

/// Chunks that may wait to be used.
const CHUNKS_AHEAD: usize = 4;

/// The near end. The thread ends with its reader, or when this is dropped.
pub(super) struct ReadAhead {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Vec<u8>,
    used: usize,
}

impl ReadAhead {
    /// Starts to read.
    pub(super) fn start(reader: impl Read + Send + 'static) -> Self {
        let (send, chunks) = sync_channel(CHUNKS_AHEAD);
        // Detached: it owns all it needs, and stops at the first chunk that nobody takes.
        thread::spawn(move || read_all(reader, &send));
        Self { chunks, chunk: Vec::new(), used: 0 }
    }
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.used == self.chunk.len() {
            match self.chunks.recv() {
                Ok(chunk) => (self.chunk, self.used) = (chunk?, 0),
                // Nobody sends any more: the end.
                Err(_) => return Ok(0),
            }
        }
        let part = &self.chunk[self.used..];
        let length = part.len().min(buffer.len());
        buffer[..length].copy_from_slice(&part[..length]);
        self.used += length;
        Ok(length)
    }
}

fn read_all(mut reader: impl Read, send: &SyncSender<io::Result<Vec<u8>>>) {
    loop {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        let result = (&mut reader).take(CHUNK_BYTES as u64).read_to_end(&mut chunk);
        let ends = matches!(result, Ok(0) | Err(_));
        // What came before an error is good and goes first.
        let sent = send.send(Ok(chunk)).and_then(|()| match result {
            Ok(_) => Ok(()),
            Err(error) => send.send(Err(error)),
        });
        if ends || sent.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_arrives_in_order_and_then_the_error() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::InvalidData.into())
            }
        }
        let text: Vec<u8> = (0..=250).cycle().take(5 * CHUNK_BYTES + 17).collect();
        let mut ahead = ReadAhead::start(io::Cursor::new(text.clone()).chain(Broken));
        let mut read = Vec::new();
        let error = ahead.read_to_end(&mut read).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(read, text);
    }

    #[test]
    fn a_reader_that_is_dropped_ends_its_thread() {
        let mut ahead = ReadAhead::start(io::repeat(7));
        let mut few = [0; 3];
        ahead.read_exact(&mut few).unwrap();
        assert_eq!(few, [7; 3]);
        drop(ahead);
    }
}
