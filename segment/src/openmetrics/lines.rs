//! Lines of a stream, lent one after the other from one buffer.

use std::io::{self, Read};

use memchr::memchr;

/// Longest line that is taken.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// Size of the buffer: reads are this large, and a line must fit.
const BUFFER_BYTES: usize = 2 * MAX_LINE_BYTES;

/// Why there is no next line.
#[derive(Debug)]
pub(super) enum LineError {
    Io(io::Error),
    TooLong,
}

/// A stream, cut into lines.
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are read but not lent yet.
    start: usize,
    end: usize,
    read: u64,
    at_end: bool,
}

impl<R: Read> Lines<R> {
    /// Starts at the first line.
    pub(super) fn new(input: R) -> Self {
        Self { input, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, read: 0, at_end: false }
    }

    /// Bytes read from the stream so far.
    pub(super) fn bytes_read(&self) -> u64 {
        self.read
    }

    /// The next line without its end. The last one may lack the end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, LineError> {
        let mut searched = 0;
        loop {
            let ready = &self.buffer[self.start..self.end];
            if let Some(len) = memchr(b'\n', &ready[searched..]) {
                let start = self.start;
                let len = searched + len;
                self.start += len + 1;
                return Ok(Some(&self.buffer[start..start + len]));
            }
            searched = ready.len();
            if searched > MAX_LINE_BYTES {
                return Err(LineError::TooLong);
            }
            if self.at_end {
                let start = std::mem::replace(&mut self.start, self.end);
                return Ok((searched > 0).then(|| &self.buffer[start..self.end]));
            }
            self.fill().map_err(LineError::Io)?;
        }
    }

    fn fill(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        let read = loop {
            match self.input.read(&mut self.buffer[self.end..]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.end += read;
        self.read += read as u64;
        self.at_end = read == 0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Drip<'a>(&'a [u8], usize);

    impl Read for Drip<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = self.0.len().min(self.1).min(buffer.len());
            let (now, later) = self.0.split_at(len);
            buffer[..len].copy_from_slice(now);
            self.0 = later;
            Ok(len)
        }
    }

    #[test]
    fn lines_come_whole_however_the_stream_is_cut() {
        for step in 1..12 {
            let mut lines = Lines::new(Drip(b"one\n\nthree\nlast", step));
            let mut all = Vec::new();
            while let Some(line) = lines.next().unwrap() {
                all.push(line.to_vec());
            }
            assert_eq!(all, [&b"one"[..], b"", b"three", b"last"]);
            assert_eq!(lines.bytes_read(), 15);
        }
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_fills_the_memory() {
        let mut lines = Lines::new(io::repeat(b'x'));
        assert!(matches!(lines.next(), Err(LineError::TooLong)));
    }
}
