//! A chart of lines for the terminal: axes, the lines themselves, and a legend. Pure: lines, size and
//! colours in, text out.

use super::canvas::Canvas;
use super::lines::{Line, Lines};
use crate::figures::{clock_time, grouped, short};

/// Where the chart has to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

/// Colours of lines, one after the other; the last brings the usual colour back.
const COLOURS: [&str; 7] =
    ["\x1b[36m", "\x1b[33m", "\x1b[32m", "\x1b[35m", "\x1b[34m", "\x1b[31m", "\x1b[37m"];
const PLAIN: &str = "\x1b[0m";

/// Rows of the legend at most.
const LEGEND_ROWS: usize = 10;

/// Letters of the axis at the left.
const AXIS: usize = 10;

/// Points that lie further apart than so many usual steps are not joined.
const GAP_STEPS: i64 = 3;

/// Draws the lines. The text has no more rows and letters than fit.
pub(super) fn draw(lines: &Lines, size: Size, is_coloured: bool) -> String {
    let Some(bounds) = Bounds::of(lines) else {
        return "no values to draw yet\n".to_owned();
    };
    let paint = |colour: usize| if is_coloured { COLOURS[colour % COLOURS.len()] } else { "" };
    let plain = if is_coloured { PLAIN } else { "" };
    let legend = legend(lines, size, paint, plain);
    // One row for the axis below, one that stays free.
    let height = size.rows.saturating_sub(legend.lines().count() + 2).clamp(3, 24);
    let width = size.columns.saturating_sub(AXIS + 2).max(10);
    let mut canvas = Canvas::new(width, height);
    // The first lines are drawn last, over the others.
    for (colour, line) in lines.iter().enumerate().rev() {
        bounds.draw(line, &mut canvas, colour);
    }
    let mut text = String::new();
    for row in 0..height {
        let label = match row {
            0 => short(bounds.high),
            row if row == height - 1 => short(bounds.low),
            row if row == height / 2 => short((bounds.high + bounds.low) / 2.0),
            _ => String::new(),
        };
        text.push_str(&format!("{label:>AXIS$} │{}\n", canvas.row(row, paint, plain)));
    }
    let (from, to) = (clock_time(bounds.from), clock_time(bounds.to));
    let room = width.saturating_sub(from.len());
    text.push_str(&format!("{:>AXIS$} {from}{to:>room$}\n", ""));
    text.push_str(&legend);
    text
}

/// The rectangle that all points lie in.
struct Bounds {
    from: i64,
    to: i64,
    low: f64,
    high: f64,
    /// The shortest time between two points of a line.
    step: i64,
}

impl Bounds {
    fn of(lines: &Lines) -> Option<Self> {
        let points = || lines.iter().flat_map(|line| &line.points).filter(|(_, v)| v.is_finite());
        let from = points().map(|(t, _)| *t).min()?;
        let to = points().map(|(t, _)| *t).max()?;
        let (low, high) = points()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), (_, v)| (l.min(*v), h.max(*v)));
        let steps = lines.iter().flat_map(|line| line.points.windows(2));
        let step =
            steps.map(|two| two[1].0.saturating_sub(two[0].0)).filter(|step| *step > 0).min();
        Some(Self { from, to, low, high, step: step.unwrap_or(1) })
    }

    fn draw(&self, line: &Line, canvas: &mut Canvas, colour: usize) {
        let mut before: Option<(i64, (usize, usize))> = None;
        for (t, value) in &line.points {
            if !value.is_finite() {
                before = None;
                continue;
            }
            let at = self.place(*t, *value, canvas.size());
            match before {
                Some((then, from))
                    if t.saturating_sub(then) <= GAP_STEPS.saturating_mul(self.step) =>
                {
                    canvas.line(from, at, colour);
                }
                _ => canvas.dot(at.0, at.1, colour),
            }
            before = Some((*t, at));
        }
    }

    fn place(&self, t: i64, value: f64, (width, height): (usize, usize)) -> (usize, usize) {
        // Halves before the difference: the bounds may be as far apart as numbers go.
        let part = |at: f64, low: f64, high: f64| {
            let span = high / 2.0 - low / 2.0;
            if span > 0.0 { (at / 2.0 - low / 2.0) / span } else { 0.5 }
        };
        let across = part(t as f64, self.from as f64, self.to as f64);
        let up = part(value, self.low, self.high);
        (dot(across, width), height - 1 - dot(up, height))
    }
}

/// The dot at some part of a side.
fn dot(part: f64, dots: usize) -> usize {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it lies between zero and the few hundred dots of a terminal"
    )]
    let dot = (part.clamp(0.0, 1.0) * (dots - 1) as f64).round() as usize;
    dot
}

fn legend(lines: &Lines, size: Size, paint: impl Fn(usize) -> &'static str, plain: &str) -> String {
    let rows = LEGEND_ROWS.min(size.rows / 3).max(1);
    let mut text = String::new();
    for (colour, line) in lines.iter().take(rows).enumerate() {
        let figures = format!("  last {}  max {}", short(line.last), short(line.max));
        let room = size.columns.saturating_sub(figures.chars().count() + 3).max(8);
        let name = shortened(&line.name, room);
        text.push_str(&format!("{}──{plain} {name}{figures}\n", paint(colour)));
    }
    let more = lines.iter().len().saturating_sub(rows);
    if more > 0 {
        text.push_str(&format!("   and {} more series\n", grouped(more as u64)));
    }
    text
}

/// A text in so many letters, with dots where some are missing.
fn shortened(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let kept: String = text.chars().take(room.saturating_sub(1)).collect();
    format!("{kept}…")
}

#[cfg(test)]
mod tests {
    use super::super::frame::Point;
    use super::*;

    const SMALL: Size = Size { columns: 40, rows: 12 };

    fn lines(series: &[(&str, &[(i64, f64)])]) -> Lines {
        let mut lines = Lines::default();
        for (label, points) in series {
            for (timestamp, value) in *points {
                let (label, tags) = ((*label).to_owned(), Default::default());
                lines.take(&Point { tags, value: *value, timestamp: *timestamp, label });
            }
        }
        lines
    }

    #[test]
    fn a_line_rises_from_the_lower_left_to_the_upper_right() {
        let rising: Vec<(i64, f64)> = (0..20).map(|n| (n * 60_000, n as f64)).collect();
        let text = draw(&lines(&[("up", &rising)]), SMALL, false);
        let rows: Vec<&str> = text.lines().collect();
        assert!(rows[0].starts_with("        19 │"), "{text}");
        assert!(rows[0].trim_end_matches('⠀').len() > rows[1].trim_end_matches('⠀').len() - 9);
        let below = rows.iter().position(|row| row.contains("00:00")).unwrap();
        assert!(rows[below - 1].starts_with("         0 │"), "{text}");
        assert!(rows[below].ends_with("00:19:00"), "{text}");
        assert!(rows[below + 1].starts_with("── up  last 19  max 19"), "{text}");
        assert!(rows.len() <= SMALL.rows);
        assert!(rows.iter().all(|row| row.chars().count() <= SMALL.columns), "{text}");
    }

    #[test]
    fn many_series_fit_and_are_counted() {
        let names: Vec<String> =
            (0..50).map(|n| format!("series-{n}-{}", "x".repeat(60))).collect();
        let points = [(0, 1.0), (1_000, 2.0)];
        let all: Vec<(&str, &[(i64, f64)])> =
            names.iter().map(|name| (name.as_str(), &points[..])).collect();
        let text = draw(&lines(&all), SMALL, false);
        assert!(text.contains("and 46 more series"), "{text}");
        assert!(text.lines().count() <= SMALL.rows, "{text}");
        assert!(text.lines().all(|row| row.chars().count() <= SMALL.columns), "{text}");
    }

    #[test]
    fn odd_values_do_no_harm() {
        let nothing = draw(&Lines::default(), SMALL, true);
        assert_eq!(nothing, "no values to draw yet\n");
        for points in [
            &[(0, f64::NAN)][..],
            &[(5, 7.0)],
            &[(0, f64::MAX), (1, -f64::MAX)],
            &[(0, f64::INFINITY), (1, 1.0), (2, f64::NEG_INFINITY)],
            &[(i64::MAX - 1, 0.0), (i64::MAX, -0.0)],
        ] {
            let text = draw(&lines(&[("x", points)]), SMALL, true);
            assert!(text.ends_with('\n'), "{text}");
        }
        let tiny = Size { columns: 1, rows: 1 };
        assert!(draw(&lines(&[("x", &[(0, 1.0), (1, 2.0)])]), tiny, false).contains("last 2"));
    }

    #[test]
    fn a_gap_is_not_joined() {
        let points: Vec<(i64, f64)> =
            (0..40).filter(|n| !(10..30).contains(n)).map(|n| (n * 1_000, 5.0)).collect();
        let text = draw(&lines(&[("x", &points)]), SMALL, false);
        let row = text.lines().find(|row| {
            row.contains('⠒') || row.contains('⠤') || row.contains('⠉') || row.contains('⣀')
        });
        let row = row.expect("the line is somewhere").split('│').nth(1).unwrap();
        let middle: String = row.chars().skip(10).take(8).collect();
        assert!(middle.chars().all(|letter| letter == '⠀'), "{text}");
    }
}
