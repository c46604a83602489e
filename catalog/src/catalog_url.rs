//! Where the catalog is: a SQLite file of this machine or a PostgreSQL database. Knows how the two
//! differ in the few words where SQL has no common one. Never prints a password.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use url::Url;

use crate::error::CatalogError;

/// The catalog's file in a data directory.
pub(crate) const FILE_NAME: &str = "catalog.db";

/// The address of a catalog: `sqlite:PATH` or `postgres://…`.
#[derive(Clone, PartialEq, Eq)]
pub struct CatalogUrl(Place);

#[derive(Clone, PartialEq, Eq)]
enum Place {
    Sqlite(PathBuf),
    Postgres(Url),
}

/// Which SQL is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl CatalogUrl {
    /// The catalog embedded in a data directory.
    pub fn in_data_dir(dir: &Path) -> Self {
        Self(Place::Sqlite(dir.join(FILE_NAME)))
    }

    pub(crate) fn dialect(&self) -> Dialect {
        match self.0 {
            Place::Sqlite(_) => Dialect::Sqlite,
            Place::Postgres(_) => Dialect::Postgres,
        }
    }

    /// What the driver is given. Holds the password: not to be printed.
    pub(crate) fn driver_url(&self) -> Result<Url, CatalogError> {
        match &self.0 {
            Place::Postgres(url) => Ok(url.clone()),
            Place::Sqlite(path) => {
                let absolute = std::path::absolute(path)
                    .map_err(|error| CatalogError::BadUrl { reason: error.to_string() })?;
                let mut url = Url::from_file_path(absolute)
                    .map_err(|()| CatalogError::BadUrl { reason: "no file path".to_owned() })?;
                url.set_query(Some("mode=rwc"));
                let url = url.as_str().replacen("file://", "sqlite://", 1);
                Url::parse(&url).map_err(|error| CatalogError::BadUrl { reason: error.to_string() })
            }
        }
    }
}

impl FromStr for CatalogUrl {
    type Err = CatalogError;

    fn from_str(text: &str) -> Result<Self, CatalogError> {
        let bad = |reason: &str| Err(CatalogError::BadUrl { reason: reason.to_owned() });
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() || path.ends_with('/') {
                return bad("sqlite: needs the path of a file");
            }
            // Two connections to a database in memory would be two databases.
            if path.contains(":memory:") {
                return bad("a catalog is a file; one in memory can't be shared");
            }
            if path.contains('?') {
                return bad("sqlite: takes a path and no options");
            }
            return Ok(Self(Place::Sqlite(path.into())));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return match Url::parse(text) {
                Ok(url) => Ok(Self(Place::Postgres(url))),
                Err(error) => bad(&error.to_string()),
            };
        }
        bad("it starts with neither sqlite: nor postgres://")
    }
}

impl fmt::Display for CatalogUrl {
    /// Without user, password and options: what is printed may be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Place::Postgres(url) => {
                write!(f, "postgres://{}", url.host_str().unwrap_or_default())?;
                if let Some(port) = url.port() {
                    write!(f, ":{port}")?;
                }
                f.write_str(url.path())
            }
        }
    }
}

impl fmt::Debug for CatalogUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Dialect {
    /// Said once on every new connection.
    pub(crate) fn session_settings(self, lock_timeout: Duration) -> Vec<String> {
        let lock_ms = lock_timeout.as_millis();
        match self {
            // Readers don't wait for the writer, and a commit is on disk when it returns.
            Self::Sqlite => vec![
                format!("PRAGMA busy_timeout = {lock_ms}"),
                "PRAGMA journal_mode = WAL".to_owned(),
                "PRAGMA synchronous = FULL".to_owned(),
            ],
            // A writer that froze inside a transaction must not hold up the others for ever.
            Self::Postgres => vec![
                format!("SET lock_timeout = {lock_ms}"),
                "SET idle_in_transaction_session_timeout = 60000".to_owned(),
            ],
        }
    }

    /// Begins a transaction that writes. SQLite must be told so at once: a reader that becomes a
    /// writer half-way is refused if another one wrote in between.
    pub(crate) fn begin_write(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres => "BEGIN",
        }
    }

    /// Begins a transaction in which every query sees the same state.
    pub(crate) fn begin_snapshot(self) -> &'static str {
        match self {
            Self::Sqlite => "BEGIN",
            Self::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }

    /// Counts the tables named `catalog_schema`.
    pub(crate) fn has_schema(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'catalog_schema'"
            }
            Self::Postgres => {
                "SELECT count(*) FROM information_schema.tables \
                 WHERE table_schema = current_schema() AND table_name = 'catalog_schema'"
            }
        }
    }

    /// Held by the one node that changes the schema until its transaction ends.
    pub(crate) fn schema_lock(self) -> Option<&'static str> {
        match self {
            Self::Sqlite => None,
            Self::Postgres => {
                Some("SELECT CAST(pg_advisory_xact_lock(7310868735423279104) AS TEXT)")
            }
        }
    }

    /// The type of a column of bytes.
    pub(crate) fn bytes_type(self) -> &'static str {
        match self {
            Self::Sqlite => "BLOB",
            Self::Postgres => "BYTEA",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_print_of_an_address_has_its_password() {
        let texts = [
            "postgres://me:hunter2@db.example:5433/catalog?password=hunter2&sslmode=require",
            "postgresql://:hunter2@[::1]/catalog",
            "postgres:///catalog?host=/run/pg&password=hunter2",
        ];
        for text in texts {
            let url: CatalogUrl = text.parse().unwrap();
            let printed = format!("{url} {url:?} {:?}", Some(&url));
            assert!(!printed.contains("hunter2") && printed.contains("catalog"), "{printed}");
        }
        for text in ["postgres://me:hunter2@db:bad/x", "mysql://me:hunter2@db/x", "hunter2"] {
            let error = text.parse::<CatalogUrl>().unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
    }

    #[test]
    fn sqlite_paths_are_taken_as_they_are() {
        for (text, path) in [
            ("sqlite:/data/catalog.db", "/data/catalog.db"),
            ("sqlite:///data/catalog.db", "/data/catalog.db"),
            ("sqlite:/data/a%20b #1.db", "/data/a%20b #1.db"),
        ] {
            let url: CatalogUrl = text.parse().unwrap();
            assert_eq!(url.to_string(), format!("sqlite:{path}"));
            let driver = url.driver_url().unwrap();
            assert!(driver.as_str().starts_with("sqlite:///data/"), "{driver}");
            assert!(driver.as_str().ends_with("?mode=rwc") && !driver.as_str().contains('#'));
        }
        let relative: CatalogUrl = "sqlite:catalog.db".parse().unwrap();
        assert!(relative.driver_url().unwrap().as_str().ends_with("/catalog.db?mode=rwc"));
        for bad in ["sqlite:", "sqlite://", "sqlite::memory:", "sqlite:x?mode=ro", "sqlite:dir/"] {
            assert!(bad.parse::<CatalogUrl>().is_err(), "{bad}");
        }
        assert_eq!(
            CatalogUrl::in_data_dir(Path::new("/data")),
            "sqlite:/data/catalog.db".parse().unwrap()
        );
    }
}
