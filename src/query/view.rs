//! How an answer is shown: as lines of JSON or CSV while it comes, as a table at its end, or as a chart
//! that grows.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::chart::{self, Size};
use super::frame::{Frame, SeriesName, Summary, figure};
use super::lines::Lines;
use super::screen::{self, Screen};
use crate::figures::{Side, grouped, moment, short, write_table};
use crate::output::Output;

/// Between two pictures of a chart.
const FRAME: Duration = Duration::from_millis(100);

/// What the figures of a summary are called, in the order of the table.
const FIGURES: [&str; 9] = ["min", "max", "avg", "sum", "count", "p50", "p90", "p95", "p99"];

/// The ways to show an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// Frames as they come, one in a line.
    Json,
    /// A line for each value.
    Csv,
    /// A line for each series, at the end.
    Table,
    /// Lines over time.
    Chart,
}

/// An answer that is being shown.
pub(super) struct View<W> {
    style: Style,
    screen: Screen<W>,
    lines: Lines,
    summaries: Vec<Summary>,
    bar: ProgressBar,
    /// What a growing chart says below it.
    state: String,
    drawn: Option<Instant>,
    csv_begun: bool,
}

impl View<Output> {
    /// Nobody looks at it any more.
    pub(super) fn has_no_reader(&self) -> bool {
        self.screen.output().reader_left()
    }
}

impl<W: Write> View<W> {
    /// Nothing so far.
    pub(super) fn new(style: Style, to: W) -> Self {
        let grows = style == Style::Chart && screen::can_draw();
        // A chart that grows tells how far it is by itself; two that draw would get in each
        // other's way.
        let target =
            if grows { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let template = ProgressStyle::with_template("{spinner} {msg}");
        let bar = ProgressBar::with_draw_target(None, target)
            .with_style(template.expect("the template is well formed"))
            .with_message("asking");
        bar.enable_steady_tick(FRAME);
        Self {
            style,
            screen: Screen::new(to),
            lines: Lines::default(),
            summaries: Vec::new(),
            bar,
            state: String::new(),
            drawn: None,
            csv_begun: false,
        }
    }

    /// Shows a frame, given as it came and as it is understood.
    pub(super) fn take(&mut self, text: &str, frame: &Frame) -> io::Result<()> {
        match frame {
            Frame::Progress { done, total } => {
                self.tell(format!("{} of {} work items done", grouped(*done), grouped(*total)));
            }
            Frame::WaitingScaleUp => self.tell("waiting for a worker".to_owned()),
            _ => {}
        }
        match (self.style, frame) {
            (Style::Json, _) => self.json(text)?,
            (Style::Csv, Frame::Result(point)) => {
                let series = SeriesName(&point.tags, &point.label).to_string();
                self.csv(&moment(point.timestamp), &series, point.value)?;
            }
            (Style::Table | Style::Chart, Frame::Result(point)) => self.lines.take(point),
            (Style::Table | Style::Chart, Frame::Summary(summary)) => {
                self.summaries.push(summary.clone());
            }
            _ => {}
        }
        Ok(())
    }

    /// All that has come so far was taken: shows it, where it is time for that.
    pub(super) fn rest(&mut self) -> io::Result<()> {
        match self.style {
            Style::Json | Style::Csv => self.screen.below().flush(),
            Style::Table => Ok(()),
            Style::Chart if !screen::can_draw() => Ok(()),
            Style::Chart => {
                if self.drawn.is_some_and(|drawn| drawn.elapsed() < FRAME) {
                    return Ok(());
                }
                self.drawn = Some(Instant::now());
                let size = screen::size();
                let state = format!("{}\n", self.state);
                let rows = size.rows.saturating_sub(1);
                let picture =
                    chart::draw(&self.lines, Size { rows, ..size }, screen::is_coloured());
                self.screen.show(&(picture + &state))
            }
        }
    }

    /// Shows the whole answer, or what came of it.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.bar.finish_and_clear();
        match self.style {
            Style::Json | Style::Csv => {}
            Style::Table => self.table()?,
            Style::Chart => {
                if !self.lines.is_empty() {
                    let picture = chart::draw(&self.lines, screen::size(), screen::is_coloured());
                    self.screen.show(&picture)?;
                } else if self.drawn.is_some() {
                    self.screen.show("")?;
                }
                self.summary()?;
            }
        }
        let left_out = self.lines.left_out();
        if left_out > 0 {
            let out = self.screen.below();
            writeln!(out, "{} values more than are shown", grouped(left_out))?;
        }
        self.screen.below().flush()
    }

    fn tell(&mut self, state: String) {
        self.bar.set_message(state.clone());
        self.state = state;
    }

    fn json(&mut self, text: &str) -> io::Result<()> {
        // An event may have several lines; JSON is the same without its line ends.
        writeln!(self.screen.below(), "{}", text.replace('\n', " "))
    }

    fn csv(&mut self, time: &str, series: &str, value: f64) -> io::Result<()> {
        let out = self.screen.below();
        if !std::mem::replace(&mut self.csv_begun, true) {
            writeln!(out, "time,series,value")?;
        }
        writeln!(out, "{time},\"{}\",{}", series.replace('"', "\"\""), exact(value))
    }

    fn table(&mut self) -> io::Result<()> {
        let is_instant = self.lines.iter().all(|line| line.count <= 1);
        if self.lines.is_empty() {
            return self.summary();
        }
        let out = self.screen.below();
        if is_instant {
            let rows: Vec<[String; 3]> = self
                .lines
                .iter()
                .map(|line| {
                    let time = line.points.last().map(|(t, _)| moment(*t)).unwrap_or_default();
                    [line.name.clone(), exact(line.last), time]
                })
                .collect();
            let columns = [("series", Side::Left), ("value", Side::Right), ("time", Side::Left)];
            write_table(out, columns, &rows)?;
        } else {
            let rows: Vec<[String; 6]> = self
                .lines
                .iter()
                .map(|line| {
                    let figures = [line.min, line.mean(), line.max, line.last].map(short);
                    let [min, mean, max, last] = figures;
                    [line.name.clone(), grouped(line.count), min, mean, max, last]
                })
                .collect();
            let right = |head| (head, Side::Right);
            let columns = ["values", "min", "mean", "max", "last"].map(right);
            let [values, min, mean, max, last] = columns;
            write_table(out, [("series", Side::Left), values, min, mean, max, last], &rows)?;
        }
        self.summary()
    }

    /// The figures that the server made, where it was asked for them.
    fn summary(&mut self) -> io::Result<()> {
        if self.summaries.is_empty() {
            return Ok(());
        }
        let rows: Vec<[String; 10]> = self
            .summaries
            .iter()
            .map(|summary| {
                let mut row = [const { String::new() }; 10];
                row[0] = SeriesName(&summary.tags, &summary.label).to_string();
                for (cell, name) in row[1..].iter_mut().zip(FIGURES) {
                    *cell =
                        summary.figures.get(name).and_then(figure).map(short).unwrap_or_default();
                }
                row
            })
            .collect();
        let mut columns = [("summary", Side::Left); 10];
        for (column, name) in columns[1..].iter_mut().zip(FIGURES) {
            *column = (name, Side::Right);
        }
        let out = self.screen.below();
        writeln!(out)?;
        write_table(out, columns, &rows)
    }
}

/// A value with all its digits, and the three that have none as Prometheus writes them.
fn exact(value: f64) -> String {
    match value {
        value if value.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(style: Style, frames: &[&str]) -> String {
        let mut out = Vec::new();
        let mut view = View::new(style, &mut out);
        for text in frames {
            view.take(text, &Frame::parse(text).unwrap()).unwrap();
            view.rest().unwrap();
        }
        view.finish().unwrap();
        drop(view);
        String::from_utf8(out).unwrap()
    }

    const ONE: &str = r#"{"type":"result","data":{"tags":{"a":"x\"y"},"value":0.1,"timestamp":0}}"#;
    const TWO: &str =
        r#"{"type":"result","data":{"tags":{"a":"x\"y"},"value":"NaN","timestamp":60000}}"#;
    const DONE: &str = r#"{"type":"done","data":{"status":"ok"}}"#;

    #[test]
    fn json_is_what_came_and_csv_has_a_line_for_each_value() {
        let text = shown(Style::Json, &[ONE, "{\"type\":\n\"heartbeat\"}", DONE]);
        assert_eq!(text, format!("{ONE}\n{{\"type\": \"heartbeat\"}}\n{DONE}\n"));
        let text = shown(Style::Csv, &[ONE, TWO, DONE]);
        let expected = "time,series,value\n\
                        1970-01-01T00:00:00Z,\"{a=\"\"x\\\"\"y\"\"}\",0.1\n\
                        1970-01-01T00:01:00Z,\"{a=\"\"x\\\"\"y\"\"}\",NaN\n";
        assert_eq!(text, expected);
        assert_eq!(shown(Style::Csv, &[DONE]), "");
    }

    #[test]
    fn a_table_has_a_line_for_each_series() {
        let text = shown(Style::Table, &[ONE, DONE]);
        let expected = "series      value  time\n{a=\"x\\\"y\"}    0.1  1970-01-01T00:00:00Z\n";
        assert_eq!(text, expected);
        let text = shown(Style::Table, &[ONE, TWO, DONE]);
        assert!(text.starts_with("series      values  min  mean  max  last\n"), "{text}");
        assert!(text.contains("       2  0.1   NaN  0.1   NaN\n"), "{text}");
    }

    #[test]
    fn figures_of_the_server_follow_in_a_table_of_their_own() {
        let figures = r#"{"type":"summary","data":{"label":"x","tags":{},"min":1,"max":2,"avg":1.5,
            "sum":3,"count":2,"p50":1.5,"p90":"NaN","p95":2,"p99":2}}"#;
        let text = shown(Style::Table, &[ONE, figures, DONE]);
        assert!(
            text.contains("\nsummary  min  max  avg  sum  count  p50  p90  p95  p99\n"),
            "{text}"
        );
        assert!(
            text.ends_with("x          1    2  1.5    3      2  1.5  NaN    2    2\n"),
            "{text}"
        );
    }
}
