//! Text with metrics and timestamps, line by line, to numbered series and samples: OpenMetrics as
//! `promtool tsdb create-blocks-from openmetrics` takes it, or the older text format of Prometheus.
//! What becomes of the samples is the caller's business.
//!
//! The two are told apart by the last line: OpenMetrics ends with `# EOF` and has timestamps in
//! seconds, perhaps with a fraction; the older format has neither that line nor fractions, and its
//! timestamps are milliseconds. [`Format::of_end`] looks at the end of a file. Where the end can't
//! be seen ahead it is OpenMetrics unless the user says otherwise, and the missing line is an
//! error.
//!
//! Every sample must have a timestamp. Exemplars are checked and ignored. A line break within a
//! quoted text, which the older format allows, is not taken: lines are lines.

mod families;
mod key;
mod lines;
mod number;
mod series_table;

use std::io::Read;

pub use lines::MAX_LINE_BYTES;

use tributary_promql::Labels;

use crate::openmetrics::families::Families;
use crate::openmetrics::key::{KeyRules, key_len};
use crate::openmetrics::lines::Lines;
use crate::openmetrics::series_table::SeriesTable;
use crate::schema::{Family, Kind};

/// Which of the two text formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics: seconds, `# EOF` at the end, one space between the parts of a line.
    #[default]
    OpenMetrics,
    /// The text format of Prometheus: milliseconds, comments, any spaces and tabs.
    Prometheus,
}

impl Format {
    /// The format of a text, by its last bytes.
    pub fn of_end(end: &[u8]) -> Self {
        let line = end.strip_suffix(b"\n").unwrap_or(end);
        let line = line.rsplit(|byte| *byte == b'\n').next().unwrap_or(line);
        if line == b"# EOF" { Self::OpenMetrics } else { Self::Prometheus }
    }
}

/// A line that is not what the format allows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct TextError {
    /// Number of the line, from one.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
}

/// Why reading a text ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReadError<E> {
    /// The text could not be read.
    #[error("{0}")]
    Io(std::io::Error),
    /// A line is wrong.
    #[error("{0}")]
    Text(#[from] TextError),
    /// Whoever took the samples wanted no more.
    #[error("{0}")]
    Sink(E),
}

/// One sample. Its series is known to the parser by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TextSample {
    /// Number of the series, from zero, in the order of their first appearance.
    pub series: u32,
    /// Timestamp in milliseconds of the Unix epoch.
    pub ts: i64,
    /// Value.
    pub value: f64,
}

/// Reads text and remembers the series and families it has met.
#[derive(Debug, Default)]
pub struct TextParser {
    format: Format,
    line: u64,
    ended: bool,
    /// The kind that was announced last: it decides how some labels are written.
    kind: Kind,
    families: Families,
    table: SeriesTable,
    /// The series of the line before, as it was written. Most lines repeat it.
    last_key: Vec<u8>,
    last_series: u32,
}

impl TextParser {
    /// A parser that knows no series yet.
    pub fn new(format: Format) -> Self {
        Self { format, ..Self::default() }
    }

    /// Starts another text. Series and families stay known.
    pub fn restart(&mut self, format: Format) {
        (self.format, self.line, self.ended, self.kind) = (format, 0, false, Kind::Unknown);
        self.last_key.clear();
    }

    /// Number of series so far.
    pub fn series_count(&self) -> u32 {
        self.table.len()
    }

    /// Labels of a series.
    pub fn labels(&self, series: u32) -> &Labels {
        self.table.labels(series)
    }

    /// What was said so far of the family that a metric belongs to.
    pub fn family(&self, metric: &str) -> Family {
        self.families.of_metric(metric)
    }

    /// Reads a whole text and hands its samples to `each`, with the bytes read so far.
    pub fn read<E>(
        &mut self,
        input: impl Read,
        mut each: impl FnMut(&Self, TextSample, u64) -> Result<(), E>,
    ) -> Result<(), ReadError<E>> {
        let mut lines = Lines::new(input);
        while let Some(line) = lines.next().map_err(|e| self.line_error(e))? {
            if let Some(sample) = self.parse_line(line)? {
                each(self, sample, lines.bytes_read()).map_err(ReadError::Sink)?;
            }
        }
        self.finish()?;
        Ok(())
    }

    /// Takes the next line, without its end.
    pub fn parse_line(&mut self, line: &[u8]) -> Result<Option<TextSample>, TextError> {
        self.line += 1;
        let parsed = match self.format {
            Format::OpenMetrics => self.open_metrics_line(line),
            Format::Prometheus => self.prometheus_line(line),
        };
        parsed.map_err(|reason| TextError { line: self.line, reason })
    }

    /// The text has ended.
    pub fn finish(&mut self) -> Result<(), TextError> {
        if self.format == Format::OpenMetrics && !self.ended {
            let reason = "data does not end with # EOF".to_owned();
            return Err(TextError { line: self.line, reason });
        }
        Ok(())
    }

    fn line_error<E>(&self, error: lines::LineError) -> ReadError<E> {
        match error {
            lines::LineError::Io(error) => ReadError::Io(error),
            lines::LineError::TooLong => {
                let reason = format!("it has more than {MAX_LINE_BYTES} bytes");
                ReadError::Text(TextError { line: self.line + 1, reason })
            }
        }
    }

    fn open_metrics_line(&mut self, line: &[u8]) -> Result<Option<TextSample>, String> {
        if self.ended {
            return Err("unexpected data after # EOF".to_owned());
        }
        if let Some(comment) = line.strip_prefix(b"# ") {
            if comment == b"EOF" {
                self.ended = true;
                return Ok(None);
            }
            let Some((what, rest)) = split_word(comment) else {
                return Err(unexpected("a comment that is HELP, TYPE, UNIT or EOF", line));
            };
            let known = self.metadata(what, rest)?;
            return if known { Ok(None) } else { Err(unexpected("HELP, TYPE, UNIT or EOF", line)) };
        }
        let (series, rest) = self.series(line)?;
        let rest = rest.strip_prefix(b" ").ok_or_else(|| unexpected("a value", line))?;
        let (value, len) = number::scan(rest).ok_or_else(|| unexpected("a value", line))?;
        let no_timestamp = || {
            format!(
                "expected timestamp for series {}, got none",
                self.table.labels(series).braced()
            )
        };
        let rest = rest[len..].strip_prefix(b" ").ok_or_else(no_timestamp)?;
        if rest.first() == Some(&b'#') {
            return Err(no_timestamp());
        }
        let (seconds, len) = number::scan(rest).ok_or_else(|| unexpected("a timestamp", line))?;
        let ts = number::seconds_to_millis(seconds);
        let ts = ts.ok_or_else(|| format!("invalid timestamp {seconds}"))?;
        if rest.len() > len {
            key::check_exemplar(&rest[len..]).ok_or_else(|| unexpected("an exemplar", line))?;
        }
        Ok(Some(TextSample { series, ts, value }))
    }

    fn prometheus_line(&mut self, line: &[u8]) -> Result<Option<TextSample>, String> {
        let line = trim_start(line);
        if line.is_empty() {
            return Ok(None);
        }
        if let Some(comment) = line.strip_prefix(b"#") {
            // Any other comment is just that, the one without a space before its first word too.
            if comment.first().is_some_and(|byte| is_blank(*byte))
                && let Some((what, rest)) = split_word(trim_start(comment))
                && what != b"UNIT"
            {
                self.metadata(what, trim_start(rest))?;
            }
            return Ok(None);
        }
        let (series, rest) = self.series(line)?;
        let rest = trim_start(rest);
        let (value, len) = number::scan(rest).ok_or_else(|| unexpected("a value", line))?;
        let rest = trim_start(&rest[len..]);
        if rest.is_empty() {
            let labels = self.table.labels(series).braced();
            return Err(format!("expected timestamp for series {labels}, got none"));
        }
        let (ts, len) = number::scan_millis(rest).ok_or_else(|| unexpected("a timestamp", line))?;
        if !trim_start(&rest[len..]).is_empty() {
            return Err(unexpected("the end of the line after the timestamp", line));
        }
        Ok(Some(TextSample { series, ts, value }))
    }

    /// Takes a HELP, TYPE or UNIT line; false where it is none of these.
    fn metadata(&mut self, what: &[u8], rest: &[u8]) -> Result<bool, String> {
        if !matches!(what, b"HELP" | b"TYPE" | b"UNIT") {
            return Ok(false);
        }
        let what_text = String::from_utf8_lossy(what).into_owned();
        let (name, text) = key::family_name(rest)
            .ok_or_else(|| format!("expected metric name after {what_text}"))?;
        let text = match (self.format, text) {
            (Format::OpenMetrics, [b' ', text @ ..]) => text,
            (Format::Prometheus, text) if text.is_empty() || is_blank(text[0]) => trim_start(text),
            _ => return Err(format!("expected text in {what_text}")),
        };
        let not_utf8 = || format!("{what_text} text is not a valid utf8 string");
        let text = std::str::from_utf8(text).map_err(|_| not_utf8())?;
        match what {
            b"HELP" => self.families.set_help(&name, key::unescape(text)),
            b"UNIT" => {
                let suffix = name.strip_suffix(text).is_some_and(|rest| rest.ends_with('_'));
                if !text.is_empty() && !suffix {
                    return Err(format!("unit {text:?} not a suffix of metric {name:?}"));
                }
                self.families.set_unit(&name, text);
            }
            _ => {
                self.kind = parse_kind(self.format, text)?;
                self.families.set_kind(&name, self.kind);
                // The same labels may be written differently under another kind.
                self.last_key.clear();
            }
        }
        Ok(true)
    }

    /// The series in front of a line, and what follows it.
    fn series<'l>(&mut self, line: &'l [u8]) -> Result<(u32, &'l [u8]), String> {
        if !self.last_key.is_empty()
            && let Some(rest) = line.strip_prefix(self.last_key.as_slice())
            && rest.first().is_some_and(|byte| is_blank(*byte))
        {
            return Ok((self.last_series, rest));
        }
        let len = key_len(line, self.format).ok_or_else(|| unexpected("a series", line))?;
        let (raw, rest) = line.split_at(len);
        let rules = KeyRules { format: self.format, kind: self.kind };
        let series = self.table.find_or_add(raw, rules)?;
        self.last_key.clear();
        self.last_key.extend_from_slice(raw);
        self.last_series = series;
        Ok((series, rest))
    }
}

fn parse_kind(format: Format, text: &str) -> Result<Kind, String> {
    let text = if format == Format::Prometheus { text.trim_end_matches([' ', '\t']) } else { text };
    let invalid = || format!("invalid metric type {text:?}");
    match (format, text) {
        (Format::Prometheus, "untyped") => Ok(Kind::Unknown),
        (Format::Prometheus, "counter" | "gauge" | "histogram" | "summary")
        | (Format::OpenMetrics, _) => text.parse().map_err(|_| invalid()),
        (Format::Prometheus, _) => Err(invalid()),
    }
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    let blank = bytes.iter().take_while(|byte| is_blank(**byte)).count();
    &bytes[blank..]
}

fn split_word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| is_blank(*byte))?;
    Some((&text[..end], &text[end + 1..]))
}

fn unexpected(wanted: &str, line: &[u8]) -> String {
    const SHOWN: usize = 120;
    let more = if line.len() > SHOWN { "…" } else { "" };
    let shown = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
    format!("expected {wanted}: {shown}{more}")
}
