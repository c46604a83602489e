//! A canvas of braille dots: each letter of the terminal has two by four of them. Draws lines, knows
//! nothing of what they mean.

use std::fmt::Write as _;

/// The letter without any dot; the dots are the bits above it.
const EMPTY: u32 = 0x2800;

/// Bits of the dots of a letter, by column and row.
const DOTS: [[u32; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

/// Letters, their dots, and the colour that was drawn there last.
pub(super) struct Canvas {
    columns: usize,
    rows: usize,
    letters: Vec<(u32, usize)>,
}

impl Canvas {
    /// An empty canvas of so many letters.
    pub(super) fn new(columns: usize, rows: usize) -> Self {
        Self { columns, rows, letters: vec![(EMPTY, 0); columns * rows] }
    }

    /// Dots from side to side, and from top to bottom.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.columns * 2, self.rows * 4)
    }

    /// Sets a dot, counted from the top left. One beyond the edge is none.
    pub(super) fn dot(&mut self, x: usize, y: usize, colour: usize) {
        let (width, height) = self.size();
        if x < width && y < height {
            let letter = &mut self.letters[y / 4 * self.columns + x / 2];
            *letter = (letter.0 | DOTS[x % 2][y % 4], colour);
        }
    }

    /// Draws a line from dot to dot.
    pub(super) fn line(&mut self, from: (usize, usize), to: (usize, usize), colour: usize) {
        let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1)).max(1);
        let between =
            |a: usize, b: usize, step: usize| (a * (steps - step) + b * step + steps / 2) / steps;
        for step in 0..=steps {
            self.dot(between(from.0, to.0, step), between(from.1, to.1, step), colour);
        }
    }

    /// A row of letters. `paint` gives what is written before letters of a colour; after the last
    /// one follows `plain`.
    pub(super) fn row(
        &self,
        row: usize,
        paint: impl Fn(usize) -> &'static str,
        plain: &str,
    ) -> String {
        let letters = &self.letters[row * self.columns..(row + 1) * self.columns];
        let mut text = String::new();
        let mut painted = None;
        for (dots, colour) in letters {
            let wanted = (*dots != EMPTY).then_some(*colour);
            if wanted.is_some() && wanted != painted {
                text.push_str(paint(*colour));
                painted = wanted;
            }
            text.push(char::from_u32(*dots).unwrap_or(' '));
        }
        if painted.is_some() {
            let _ = write!(text, "{plain}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(canvas: &Canvas, rows: usize) -> Vec<String> {
        (0..rows).map(|row| canvas.row(row, |_| "", "")).collect()
    }

    #[test]
    fn every_dot_has_its_place() {
        let mut canvas = Canvas::new(2, 1);
        for (x, y) in [(0, 0), (1, 3), (3, 1)] {
            canvas.dot(x, y, 0);
        }
        canvas.dot(4, 0, 0);
        canvas.dot(0, 4, 0);
        assert_eq!(rows(&canvas, 1), ["⢁⠐"]);
    }

    #[test]
    fn lines_go_from_one_end_to_the_other() {
        let mut canvas = Canvas::new(2, 1);
        canvas.line((0, 3), (3, 0), 0);
        assert_eq!(rows(&canvas, 1), ["⡠⠊"]);
        let mut canvas = Canvas::new(1, 2);
        canvas.line((0, 0), (0, 7), 0);
        assert_eq!(rows(&canvas, 2), ["⡇", "⡇"]);
        canvas.line((1, 5), (1, 5), 0);
        assert_eq!(rows(&canvas, 2), ["⡇", "⡗"]);
    }

    #[test]
    fn colours_are_written_where_they_change() {
        let mut canvas = Canvas::new(4, 1);
        canvas.dot(0, 0, 1);
        canvas.dot(4, 0, 2);
        canvas.dot(6, 0, 2);
        let paint = |colour: usize| ["", "<1>", "<2>"][colour];
        assert_eq!(canvas.row(0, paint, "</>"), "<1>⠁⠀<2>⠁⠁</>");
        assert_eq!(Canvas::new(1, 1).row(0, paint, "</>"), "⠀");
    }
}
