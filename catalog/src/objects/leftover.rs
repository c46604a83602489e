//! What a writer that died left unfinished. Whoever writes into a folder's store writes beside the
//! final name, with `#` and a number at its end, and renames; an import puts sorted samples aside
//! in the same manner. Listings of the store leave these files out, and know no folders, so both are
//! looked for here.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::ObjectError;

/// A file that was never finished, or a folder that nothing was put into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    path: PathBuf,
    is_folder: bool,
    /// When it was last written to, in milliseconds of the Unix epoch.
    pub modified_ms: i64,
}

impl Leftover {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it. One that is not there is removed already, and a folder that is not empty any
    /// more is none. A folder of which it was the last file goes too.
    pub(crate) async fn remove(&self) -> Result<(), ObjectError> {
        let removed = if self.is_folder {
            tokio::fs::remove_dir(&self.path).await
        } else {
            tokio::fs::remove_file(&self.path).await
        };
        match removed {
            Err(source)
                if !matches!(source.kind(), ErrorKind::NotFound | ErrorKind::DirectoryNotEmpty) =>
            {
                return Err(ObjectError::LocalFile { path: self.path.clone(), source });
            }
            _ => {}
        }
        if let Some(folder) = self.path.parent().filter(|_| !self.is_folder) {
            // It stays where something else is in it, which is what this fails for.
            let _ = tokio::fs::remove_dir(folder).await;
        }
        Ok(())
    }
}

/// All leftovers under a folder; none if there is no such folder.
pub(super) fn find(top: &Path) -> Result<Vec<Leftover>, ObjectError> {
    let mut found = Vec::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        match look_into(&folder, &mut folders, &mut found) {
            Ok(0) if folder != top => {
                let modified = fs::metadata(&folder).and_then(|meta| meta.modified());
                if let Ok(modified) = modified {
                    found.push(Leftover {
                        path: folder,
                        is_folder: true,
                        modified_ms: millis(modified),
                    });
                }
            }
            Err(source) if source.kind() != ErrorKind::NotFound => {
                return Err(ObjectError::LocalFile { path: folder, source });
            }
            _ => {}
        }
    }
    Ok(found)
}

/// Looks through one folder; gives how many things are in it.
fn look_into(
    folder: &Path,
    folders: &mut Vec<PathBuf>,
    found: &mut Vec<Leftover>,
) -> std::io::Result<usize> {
    let mut count = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        count += 1;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            folders.push(entry.path());
        } else if kind.is_file() && is_unfinished(&entry.file_name().to_string_lossy()) {
            // One that is gone by now was finished or removed meanwhile.
            let Ok(modified) = entry.metadata().and_then(|meta| meta.modified()) else { continue };
            let modified_ms = millis(modified);
            found.push(Leftover { path: entry.path(), is_folder: false, modified_ms });
        }
    }
    Ok(count)
}

fn millis(time: SystemTime) -> i64 {
    let age = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(age.as_millis()).unwrap_or(i64::MAX)
}

fn is_unfinished(name: &str) -> bool {
    let Some((file, number)) = name.rsplit_once('#') else { return false };
    let ours = file.ends_with(".parquet") || file.ends_with(".run");
    ours && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_of_unfinished_files_of_ours_are_taken() {
        assert!(is_unfinished("s.series.parquet#1"));
        assert!(is_unfinished("s.series.parquet#10"));
        assert!(is_unfinished("tributary-import-1-0.run#0"));
        for other in
            ["s.series.parquet", "a.run", "s.series.parquet#", "notes#1", "a.parquet#x", "#1"]
        {
            assert!(!is_unfinished(other), "{other}");
        }
    }

    #[tokio::test]
    async fn an_empty_folder_is_left_over_and_goes() {
        let top = tempfile::tempdir().unwrap();
        let upload = top.path().join("tenant/upload");
        fs::create_dir_all(&upload).unwrap();
        let unfinished = upload.join("s.series.parquet#1");
        fs::write(&unfinished, "").unwrap();
        let found = find(top.path()).unwrap();
        assert_eq!(found.iter().map(Leftover::path).collect::<Vec<_>>(), [&unfinished]);
        found[0].remove().await.unwrap();
        assert!(!upload.exists());

        let tenant = top.path().join("tenant");
        let found = find(top.path()).unwrap();
        assert_eq!(found.iter().map(Leftover::path).collect::<Vec<_>>(), [&tenant]);
        fs::write(tenant.join("news"), "").unwrap();
        found[0].remove().await.unwrap();
        assert!(tenant.exists(), "it is not empty any more");
        assert_eq!(find(&top.path().join("nothing")).unwrap(), []);
    }
}
