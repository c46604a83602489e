//! A data directory: one folder of this machine that holds a catalog and the segments it names.
//! Says where in it everything lies, and which folders are none; how the two are used is said in
//! `store` and `objects`.
//!
//! ```text
//! DIR/catalog.db                          the catalog, SQLite (with -wal and -shm beside it)
//! DIR/segments/TENANT/UPLOAD/ID.*.parquet the two files of each segment
//! ```

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::catalog_url::{self, CatalogUrl};
use crate::config::CatalogConfig;
use crate::error::{CatalogError, DataDirError, ObjectError};
use crate::objects::Store;
use crate::store::Catalog;

/// Names that a fresh file system may have in it.
const NOT_OURS_BUT_FINE: &[&str] = &["lost+found"];

/// A folder that is a data directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// An existing data directory. Nothing is created.
    pub fn open(path: &Path) -> Result<Self, DataDirError> {
        let at = || path.to_owned();
        match fs::metadata(path) {
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                return Err(DataDirError::Missing { path: at() });
            }
            Err(source) => return Err(DataDirError::Failed { path: at(), source }),
            Ok(found) if !found.is_dir() => return Err(DataDirError::NotAFolder { path: at() }),
            Ok(_) => {}
        }
        match catalog_file(path).try_exists() {
            Ok(true) => Ok(Self { path: at() }),
            Ok(false) => Err(DataDirError::NoCatalog { path: at() }),
            Err(source) => Err(DataDirError::Failed { path: at(), source }),
        }
    }

    /// A data directory to write to: an existing one, or one that is made here, in an empty folder
    /// or a new one. A folder with other things in it is refused: it was hardly meant.
    pub fn open_or_create(path: &Path) -> Result<Self, DataDirError> {
        let failed = |source| DataDirError::Failed { path: path.to_owned(), source };
        match Self::open(path) {
            Err(DataDirError::Missing { .. }) => {
                fs::create_dir_all(path).map_err(failed)?;
                Ok(Self { path: path.to_owned() })
            }
            Err(DataDirError::NoCatalog { .. }) if is_unused(path).map_err(failed)? => {
                Ok(Self { path: path.to_owned() })
            }
            other => other,
        }
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its catalog is.
    pub fn catalog_url(&self) -> CatalogUrl {
        CatalogUrl::in_data_dir(&self.path)
    }

    /// Opens its catalog, and creates it where there is none yet.
    pub async fn catalog(&self, config: CatalogConfig) -> Result<Catalog, CatalogError> {
        Catalog::open(self.catalog_url(), config).await
    }

    /// Opens the store with its segments.
    pub fn store(&self) -> Result<Store, ObjectError> {
        Store::in_folder(&self.path)
    }
}

fn catalog_file(path: &Path) -> PathBuf {
    path.join(catalog_url::FILE_NAME)
}

/// There is nothing in the folder but hidden files.
fn is_unused(path: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with('.') && !NOT_OURS_BUT_FINE.contains(&&*name) {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_becomes_a_data_directory_only_if_it_is_empty() {
        let top = tempfile::tempdir().unwrap();
        let fresh = top.path().join("a/b");
        assert!(matches!(DataDir::open(&fresh), Err(DataDirError::Missing { .. })));
        let made = DataDir::open_or_create(&fresh).unwrap();
        assert!(matches!(DataDir::open(&fresh), Err(DataDirError::NoCatalog { .. })));
        fs::write(fresh.join(".hidden"), "").unwrap();
        assert_eq!(DataDir::open_or_create(&fresh).unwrap(), made);

        let used = top.path().join("used");
        fs::create_dir(&used).unwrap();
        fs::write(used.join("letter.txt"), "").unwrap();
        assert!(matches!(DataDir::open_or_create(&used), Err(DataDirError::NoCatalog { .. })));
        let file = used.join("letter.txt");
        for refused in [DataDir::open(&file), DataDir::open_or_create(&file)] {
            assert!(matches!(refused, Err(DataDirError::NotAFolder { .. })), "{refused:?}");
        }
    }

    #[tokio::test]
    async fn what_was_created_opens_again() {
        let top = tempfile::tempdir().unwrap();
        let dir = DataDir::open_or_create(top.path()).unwrap();
        dir.catalog(CatalogConfig::default()).await.unwrap();
        assert_eq!(DataDir::open(top.path()).unwrap(), dir);
        assert_eq!(DataDir::open_or_create(top.path()).unwrap(), dir);
        assert!(dir.store().is_ok());
    }
}
