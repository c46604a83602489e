//! What came of many scripts, as text: a table, the reasons of skips, the failures, and a last line
//! that machines can read.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::needs::Need;
use crate::run::FileReport;

/// What came of many scripts.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In the order they ran.
    pub files: Vec<FileReport>,
}

impl Report {
    /// Cases whose every answer was right.
    pub fn passed(&self) -> usize {
        self.files.iter().map(|file| file.passed).sum()
    }

    /// Cases that failed.
    pub fn failed(&self) -> usize {
        self.files.iter().map(|file| file.failed).sum()
    }

    /// Cases that were not asked.
    pub fn skipped(&self) -> usize {
        self.files.iter().map(FileReport::skips).sum()
    }

    /// Prints all of it. The last line is exactly `N passed, M failed, K skipped`.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        self.write_failures(out)?;
        self.write_table(out)?;
        self.write_skips(out)?;
        let (passed, failed, skipped) = (self.passed(), self.failed(), self.skipped());
        writeln!(out, "{passed} passed, {failed} failed, {skipped} skipped")
    }

    fn write_failures(&self, out: &mut impl Write) -> io::Result<()> {
        for file in &self.files {
            for failure in &file.failures {
                writeln!(out, "{}:{}\n{failure}\n", file.name, failure.line)?;
            }
        }
        Ok(())
    }

    fn write_table(&self, out: &mut impl Write) -> io::Result<()> {
        let width = self.files.iter().map(|file| file.name.chars().count()).max().unwrap_or(0);
        let width = width.max("script".len());
        writeln!(out, "{:width$}  passed  failed  skipped", "script")?;
        for file in &self.files {
            let FileReport { name, passed, failed, .. } = file;
            writeln!(out, "{name:width$}  {passed:6}  {failed:6}  {:7}", file.skips())?;
        }
        writeln!(out)
    }

    fn write_skips(&self, out: &mut impl Write) -> io::Result<()> {
        let mut reasons: BTreeMap<Need, usize> = BTreeMap::new();
        for (need, count) in self.files.iter().flat_map(|file| &file.skipped) {
            *reasons.entry(*need).or_default() += count;
        }
        for (need, count) in &reasons {
            writeln!(out, "{count} skipped: {need}")?;
        }
        if reasons.is_empty() { Ok(()) } else { writeln!(out) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    #[test]
    fn a_report_names_everything_and_ends_with_the_figures() {
        let good = FileReport {
            name: String::from("good.test"),
            passed: 12,
            skipped: BTreeMap::from([(Need::HistogramExpected, 3), (Need::StartTimestamps, 1)]),
            ..FileReport::default()
        };
        let error = Script::parse("clear\nnonsense\n").unwrap_err();
        let bad = FileReport::unreadable("bad.test", error);
        let report = Report { files: vec![good, bad] };
        let mut out = Vec::new();
        report.write(&mut out).unwrap();
        let expected = "\
bad.test:2
    expected  a script
    got       invalid command \"nonsense\"

script     passed  failed  skipped
good.test      12       0        4
bad.test        0       1        0

3 skipped: a native histogram is expected
1 skipped: a function reaches start timestamps

12 passed, 1 failed, 4 skipped
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
