//! `tributary import`: text with timestamps into segments of a data directory, all or nothing. Where
//! texts come from is in `input`, how segments become visible in `crate::upload`; the text itself and
//! the segments are `tributary_segment`'s, the catalog is `tributary_catalog`'s.

mod input;
mod progress;
mod read_ahead;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use core_workcoord::id::TenantId;
use tributary_catalog::{CatalogConfig, DataDir, NewSegment};
use tributary_promql::duration::PromDuration;
use tributary_segment::{Format, ImportError, ImportOptions, Importer};

use crate::cli::{self, Problem, Verdict};
use crate::figures::{grouped, per_second, ratio};
use crate::output;
use crate::upload::Upload;
use input::{Input, Source};
use progress::Progress;

/// What is promised of an import and what the exit code says, for the help.
pub(crate) const PROMISE: &str = "\
Takes OpenMetrics and the text format of Prometheus. Every sample must have a timestamp: in seconds in
OpenMetrics, in milliseconds in the other. Files compressed with gzip or zstd are known by their
first bytes. The last line tells the formats apart: OpenMetrics ends with `# EOF`. Where that can't be
seen ahead, as with a long text on standard input, it is taken for OpenMetrics unless --format says
otherwise. Of samples with one series and one timestamp the last one read stays.

An import becomes visible as a whole or not at all. What one that was killed leaves on disk is removed
by `tributary segments gc`. The same text imported twice is there once.

Exit codes: 0 all is imported, 1 a line is wrong (FILE:LINE: reason) and nothing is, 2 the arguments
make no sense, or something can't be read or written, and nothing is imported either";

/// What `import` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The data directory; made where there is none
    #[arg(long, value_name = "DIR")]
    data_dir: PathBuf,

    /// Whose data it is
    #[arg(long, value_name = "T", default_value = cli::DEFAULT_TENANT, value_parser = cli::tenant)]
    tenant: TenantId,

    /// Length of the blocks of time that segments are cut into
    #[arg(long, value_name = "DURATION", default_value = "2h", value_parser = block)]
    block: PromDuration,

    /// Shards that the series of each block are spread over
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=65_536))]
    shards: u32,

    /// The format of the texts [default: by their last line]
    #[arg(long, value_name = "FORMAT")]
    format: Option<TextFormat>,

    /// Texts to import, in this order; - is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum TextFormat {
    Openmetrics,
    Prometheus,
}

impl From<TextFormat> for Format {
    fn from(format: TextFormat) -> Self {
        match format {
            TextFormat::Openmetrics => Self::OpenMetrics,
            TextFormat::Prometheus => Self::Prometheus,
        }
    }
}

fn block(text: &str) -> Result<PromDuration, String> {
    let duration = PromDuration::parse(text).map_err(|fault| fault.to_string())?;
    if duration.as_millis() < 1_000 {
        return Err("a block has a second at least".to_owned());
    }
    Ok(duration)
}

/// What came of an import.
struct Outcome {
    series: u64,
    samples_read: u64,
    segments: Vec<NewSegment>,
    /// Of these segments so many are new.
    added: usize,
    took: Duration,
}

/// Reads the texts, writes the segments, makes them visible and says what they are.
pub(crate) fn run(args: &Args) -> Result<Verdict, Problem> {
    let begun = Instant::now();
    let sources: Vec<Source> = args.files.iter().map(|file| Source::of(file)).collect();
    if sources.iter().filter(|source| **source == Source::Standard).count() > 1 {
        return Err(Problem::StandardInputTwice);
    }
    // A file that is not there is better known now than after an hour of reading the others.
    let mut total_bytes = Some(0);
    for source in &sources {
        let size = source.size_bytes().map_err(|error| unreadable(source, error))?;
        total_bytes = total_bytes.zip(size).map(|(total, size): (u64, u64)| total + size);
    }
    let data_dir = DataDir::open_or_create(&args.data_dir).map_err(Problem::failed)?;
    let runtime = cli::runtime()?;
    let catalog =
        runtime.block_on(data_dir.catalog(CatalogConfig::default())).map_err(Problem::failed)?;
    let upload = Upload::begin(&data_dir, &args.tenant, "")?;

    let mut importer = Importer::new(ImportOptions {
        block_ms: args.block.as_millis(),
        shards: args.shards,
        temporary_directory: upload.folder().to_owned(),
        ..ImportOptions::default()
    });
    let progress = Progress::start(total_bytes);
    for source in &sources {
        read(source, args.format.map(Format::from), &mut importer, &progress)?;
    }
    let (series, samples_read) = (u64::from(importer.series()), importer.samples());
    progress.writing(samples_read);
    let name = |key: &tributary_segment::SegmentKey| {
        format!("{}-{}-of-{}", key.block_start, key.shard, key.shards)
    };
    let written = importer.finish(upload.folder(), name).map_err(Problem::failed)?;
    let segments = runtime.block_on(upload.place(&written))?;
    let added = runtime.block_on(upload.register(&catalog, &segments))?;
    progress.finish();

    let took = begun.elapsed();
    let mut out = output::standard();
    report(&mut out, &Outcome { series, samples_read, segments, added, took })?;
    out.flush()?;
    Ok(Verdict::Good)
}

fn read(
    source: &Source,
    format: Option<Format>,
    importer: &mut Importer,
    progress: &Progress,
) -> Result<(), Problem> {
    let Input { text, format, is_guess } =
        source.open(format, progress.bytes()).map_err(|error| unreadable(source, error))?;
    let result = importer.read_text(text, format, |at| progress.read(at.samples));
    result.map_err(|error| match error {
        ImportError::Text(error) => Problem::BadLine {
            input: source.to_string(),
            line: error.line,
            reason: error.reason,
            hint: is_guess.then_some("it was read as OpenMetrics; is it --format prometheus?"),
        },
        ImportError::Input(error) => unreadable(source, error),
        other => Problem::failed(other),
    })
}

fn unreadable(source: &Source, error: io::Error) -> Problem {
    Problem::File { path: source.to_string().into(), error }
}

fn report(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    let Outcome { series, samples_read, segments, added, took } = outcome;
    let stored = |of: fn(&tributary_catalog::Segment) -> u64| -> u64 {
        segments.iter().map(|new| of(&new.segment)).sum()
    };
    let samples = stored(|segment| segment.sample_count);
    let bytes = stored(|s| s.series_file.size_bytes + s.samples_file.size_bytes);
    let known = segments.len() - added;
    let replaced = samples_read - samples;
    let mut row = |name: &str, figure: String, remark: String| {
        let line = format!("{name:<14} {figure:>16}  {remark}");
        writeln!(out, "{}", line.trim_end())
    };
    let some = |count: u64, remark: &str| match count {
        0 => String::new(),
        count => format!("{} {remark}", grouped(count)),
    };
    row("series", grouped(*series), String::new())?;
    row("samples", grouped(samples), some(replaced, "more were replaced by later ones"))?;
    row(
        "segments",
        grouped(segments.len() as u64),
        some(known as u64, "of them were there already"),
    )?;
    row("bytes", grouped(bytes), String::new())?;
    row("bytes/sample", format!("{:.2}", ratio(bytes, samples as f64)), String::new())?;
    row("time", format!("{:.1} s", took.as_secs_f64()), String::new())?;
    row("samples/s", per_second(*samples_read, *took), String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_a_duration_of_a_second_at_least() {
        assert_eq!(block("2h").map(PromDuration::as_millis), Ok(7_200_000));
        assert_eq!(block("1s").map(PromDuration::as_millis), Ok(1_000));
        for bad in ["", "0", "999ms", "2", "-1h", "two hours"] {
            assert!(block(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn nothing_imported_is_a_report_too() {
        let mut out = Vec::new();
        let took = Duration::from_millis(100);
        let nothing = Outcome { series: 0, samples_read: 0, segments: Vec::new(), added: 0, took };
        report(&mut out, &nothing).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("bytes/sample               0.00\n"), "{text}");
        assert!(text.ends_with("samples/s                     0\n"), "{text}");
    }
}
