//! Reads the log lines of processes as a journal: when something happened, what, and to whom. Clocks of
//! processes on one machine are one clock.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// One line of a log.
#[derive(Clone, Debug)]
pub struct Line {
    /// When, since the Unix epoch.
    pub at: Duration,
    text: String,
}

impl Line {
    /// Reads a line; none where it does not begin with a time.
    pub fn parse(text: &str) -> Option<Self> {
        let (time, rest) = text.split_once(' ')?;
        Some(Self { at: moment(time)?, text: rest.to_owned() })
    }

    /// Whether it says this.
    pub fn says(&self, sentence: &str) -> bool {
        self.text.contains(sentence)
    }

    /// A field's value.
    pub fn field(&self, key: &str) -> Option<&str> {
        let marked = format!(" {key}=");
        let (_, value) = self.text.rsplit_once(&marked)?;
        value.split(' ').next()
    }
}

/// All lines of a log.
pub fn lines(log: &Path) -> Vec<Line> {
    let bytes = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&bytes).lines().filter_map(Line::parse).collect()
}

/// Now, on the clock of the logs.
pub fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// `2026-01-02T03:04:05.678901Z`, since the Unix epoch.
fn moment(text: &str) -> Option<Duration> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.split('-').map(str::parse::<u64>);
    let (year, month, day) = (date.next()?.ok()?, date.next()?.ok()?, date.next()?.ok()?);
    let mut time = time.split(':');
    let hour: u64 = time.next()?.parse().ok()?;
    let minute: u64 = time.next()?.parse().ok()?;
    let seconds: f64 = time.next()?.parse().ok()?;
    // Days since the epoch, of years that begin in March.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    let days = days.checked_sub(719_469)?;
    let whole = Duration::from_secs(days * 86_400 + hour * 3_600 + minute * 60);
    Some(whole + Duration::try_from_secs_f64(seconds).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_time_and_fields() {
        let text = "2026-01-01T00:00:01.500000Z DEBUG desk: work is assigned work_id=a/1 attempt=2";
        let line = Line::parse(text).unwrap();
        assert_eq!(line.at, Duration::from_millis(1_767_225_601_500));
        assert_eq!((line.field("work_id"), line.field("attempt")), (Some("a/1"), Some("2")));
        assert!(line.says("work is assigned") && line.field("session").is_none());
        assert_eq!(moment("1970-01-01T00:00:00Z"), Some(Duration::ZERO));
        assert_eq!(moment("2024-02-29T00:00:00Z"), Some(Duration::from_secs(1_709_164_800)));
        assert!(Line::parse("thread 'main' panicked").is_none());
    }
}
