//! Files that a writer was writing when it died. A folder's store writes beside the final name,
//! with `#` and a number at its end, and renames; its listings leave these out, so they are looked
//! for here.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::error::ObjectError;

/// A file that was never finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    path: PathBuf,
    /// When it was last written to, in milliseconds of the Unix epoch.
    pub modified_ms: i64,
}

impl Leftover {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it. One that is not there is removed already.
    pub(crate) async fn remove(&self) -> Result<(), ObjectError> {
        match tokio::fs::remove_file(&self.path).await {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(ObjectError::LocalFile { path: self.path.clone(), source })
            }
            _ => Ok(()),
        }
    }
}

/// All leftovers under a folder; none if there is no such folder.
pub(super) fn find(top: &Path) -> Result<Vec<Leftover>, ObjectError> {
    let mut found = Vec::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        if let Err(source) = look_into(&folder, &mut folders, &mut found)
            && source.kind() != std::io::ErrorKind::NotFound
        {
            return Err(ObjectError::LocalFile { path: folder, source });
        }
    }
    Ok(found)
}

fn look_into(
    folder: &Path,
    folders: &mut Vec<PathBuf>,
    found: &mut Vec<Leftover>,
) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            folders.push(entry.path());
        } else if kind.is_file() && is_unfinished(&entry.file_name().to_string_lossy()) {
            // One that is gone by now was finished or removed meanwhile.
            let Ok(modified) = entry.metadata().and_then(|meta| meta.modified()) else { continue };
            let age = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
            let modified_ms = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
            found.push(Leftover { path: entry.path(), modified_ms });
        }
    }
    Ok(())
}

fn is_unfinished(name: &str) -> bool {
    let Some((_, number)) = name.rsplit_once(".parquet#") else { return false };
    !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_unfinished_files_of_ours_are_taken() {
        assert!(is_unfinished("s.series.parquet#1"));
        assert!(is_unfinished("s.series.parquet#10"));
        for other in ["s.series.parquet", "s.series.parquet#", "notes#1", "a.parquet#x", "#1"] {
            assert!(!is_unfinished(other), "{other}");
        }
    }
}
