//! The terminal as something to draw on: each picture takes the place of the one before.

use std::io::{self, IsTerminal as _, Write};

use super::chart::Size;

/// Where the size can't be told.
const USUAL: Size = Size { columns: 80, rows: 24 };

/// A part of the terminal, below what was written before.
pub(super) struct Screen<W> {
    to: W,
    /// Rows of the picture that is there.
    rows: usize,
}

impl<W: Write> Screen<W> {
    /// Begins where the cursor is.
    pub(super) fn new(to: W) -> Self {
        Self { to, rows: 0 }
    }

    /// Puts a picture in the place of the one before. Its rows are not longer than the terminal is
    /// wide, or they would not be where they are looked for.
    pub(super) fn show(&mut self, picture: &str) -> io::Result<()> {
        if self.rows > 0 {
            // Up to its first row, and nothing of it stays.
            write!(self.to, "\x1b[{}A\x1b[J", self.rows)?;
        }
        self.to.write_all(picture.as_bytes())?;
        self.rows = picture.lines().count();
        self.to.flush()
    }

    /// What is drawn on.
    pub(super) fn output(&self) -> &W {
        &self.to
    }

    /// What follows is written below the last picture.
    pub(super) fn below(&mut self) -> &mut W {
        self.rows = 0;
        &mut self.to
    }
}

/// The size of the terminal behind standard output.
pub(super) fn size() -> Size {
    let told = rustix::termios::tcgetwinsize(io::stdout());
    let told = told.map(|size| Size { columns: size.ws_col.into(), rows: size.ws_row.into() });
    told.ok().filter(|size| size.columns > 0 && size.rows > 0).unwrap_or(USUAL)
}

/// Standard output is a terminal that can go back over what it shows.
pub(super) fn can_draw() -> bool {
    io::stdout().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Colours are welcome: the terminal has them and the user did not say no.
pub(super) fn is_coloured() -> bool {
    can_draw() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_takes_the_place_of_the_one_before() {
        let mut out = Vec::new();
        let mut screen = Screen::new(&mut out);
        screen.show("one\ntwo\n").unwrap();
        screen.show("three\n").unwrap();
        screen.below().write_all(b"end\n").unwrap();
        screen.show("four\n").unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "one\ntwo\n\x1b[2A\x1b[Jthree\nend\nfour\n");
    }
}
