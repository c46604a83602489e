//! The journals of one seed's nodes as files, for `tributary replay`.

use std::fs;
use std::path::Path;

use tributary_simulation::{Options, Story, Summary, run};

use crate::cli::Problem;

/// The seed worth recording: the first that broke a promise, or the only one that was run.
pub(super) fn seed(summary: &Summary) -> Option<u64> {
    let broken = summary.violations.first().map(|violation| violation.seed);
    broken.or((summary.seeds == 1).then_some(summary.from))
}

/// Runs the seed once more and writes a journal for each life of each node. Says how many.
pub(super) fn write(folder: &Path, seed: u64) -> Result<usize, Problem> {
    let report = run(&Story::of(seed), &Options { journal: true, ..Options::default() });
    for journal in &report.journals {
        let path = folder.join(format!("seed-{seed}-{}.journal", journal.name));
        fs::write(&path, &journal.bytes).map_err(|error| Problem::File { path, error })?;
    }
    Ok(report.journals.len())
}

/// Makes the folder, before anything is run: a seed should not be simulated in vain.
pub(super) fn make_folder(folder: &Path) -> Result<(), Problem> {
    fs::create_dir_all(folder).map_err(|error| Problem::File { path: folder.to_path_buf(), error })
}
