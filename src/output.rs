//! Writing to the terminal or to whatever stands behind the pipe. What is written is decided by the
//! subcommands.

use std::io::{self, BufWriter, StdoutLock, Write};

use crate::cli::Problem;

/// Standard output that takes no offence when its reader leaves: after `| head` has seen enough,
/// the rest goes nowhere and the command still comes to its verdict.
pub(crate) struct Output<W: Write = BufWriter<StdoutLock<'static>>> {
    to: W,
    reader_left: bool,
}

/// Standard output, buffered; to be flushed by whoever asks for it.
pub(crate) fn standard() -> Output {
    Output::new(BufWriter::new(io::stdout().lock()))
}

/// Says on standard error why the command could not do its work. Where that begins with a file and
/// a line, nothing is put in front of it: editors find the place by it.
pub(crate) fn complain(problem: &Problem) {
    let name = if matches!(problem, Problem::BadLine { .. }) { "" } else { "tributary: " };
    // Where standard error is gone too, nobody is left to be told.
    drop(writeln!(io::stderr(), "{name}{problem}"));
}

impl<W: Write> Output<W> {
    fn new(to: W) -> Self {
        Self { to, reader_left: false }
    }

    /// Nobody reads any more.
    pub(crate) fn reader_left(&self) -> bool {
        self.reader_left
    }

    fn unless_left<T>(&mut self, result: io::Result<T>, instead: T) -> io::Result<T> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.reader_left = true;
                Ok(instead)
            }
            other => other,
        }
    }
}

impl<W: Write> Write for Output<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.reader_left {
            return Ok(bytes.len());
        }
        let result = self.to.write(bytes);
        self.unless_left(result, bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.reader_left {
            return Ok(());
        }
        let result = self.to.flush();
        self.unless_left(result, ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `room` bytes and then fails in its own way.
    struct Reader {
        room: usize,
        then: io::ErrorKind,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(self.then.into());
            }
            let taken = bytes.len().min(self.room);
            self.room -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_left_is_no_error() {
        let mut output = Output::new(Reader { room: 4, then: io::ErrorKind::BrokenPipe });
        for _ in 0..3 {
            writeln!(output, "decision").expect("the rest goes nowhere");
        }
        output.flush().expect("there is nothing to flush");
        assert!(output.reader_left);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        let mut output = Output::new(Reader { room: 4, then: io::ErrorKind::StorageFull });
        let error = writeln!(output, "decision").expect_err("four bytes fit");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
