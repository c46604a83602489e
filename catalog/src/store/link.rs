//! One connection to the catalog's database: opened when needed, dropped when in doubt, never
//! waited for without a limit. What is said over it is the business of `read` and `write`.

use std::sync::Arc;
use std::time::Duration;

use sqlx::any::AnyConnectOptions;
use sqlx::{AnyConnection, AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};
use tokio::time::Instant;

use crate::catalog_url::{CatalogUrl, Dialect};
use crate::config::CatalogConfig;
use crate::error::CatalogError;
use crate::store::schema;

/// Between two tries to connect to a database that somebody else is just creating.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// A connection that mends itself.
pub(crate) struct Link {
    terms: Arc<Terms>,
    idle: Option<AnyConnection>,
}

/// Where the database is and how it is dealt with.
pub(crate) struct Terms {
    pub url: CatalogUrl,
    pub dialect: Dialect,
    pub config: CatalogConfig,
}

/// What to make of the connection that was used last.
#[derive(Clone, Copy)]
pub(crate) enum Idle {
    /// Asks whether it lives before it is used, so that the operation meets a living one.
    Ask,
    /// Uses it as it is: the operation itself is the question.
    Trust,
}

impl Link {
    pub(crate) fn new(terms: Arc<Terms>) -> Self {
        sqlx::any::install_default_drivers();
        Self { terms, idle: None }
    }

    pub(crate) fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Runs an operation on a living connection, within a limit of time. The connection is kept
    /// for the next one, unless what happened says that it is not to be trusted. If this future is
    /// dropped half-way, the connection is closed, and its transaction never happened.
    pub(crate) async fn run<T>(
        &mut self,
        idle: Idle,
        limit: Duration,
        operation: impl AsyncFnOnce(&mut AnyConnection) -> Result<T, Trouble>,
    ) -> Result<T, CatalogError> {
        let terms = self.terms.clone();
        let mut connection = match self.living(idle).await {
            Some(connection) => connection,
            None => terms.connect().await?,
        };
        let result = terms.timed(limit, operation(&mut connection)).await;
        if result.as_ref().err().is_none_or(|error| !error.breaks_connection()) {
            self.idle = Some(connection);
        }
        result
    }

    async fn living(&mut self, idle: Idle) -> Option<AnyConnection> {
        let mut connection = self.idle.take()?;
        match idle {
            Idle::Trust => Some(connection),
            Idle::Ask => {
                let asked = tokio::time::timeout(self.terms.config.poll_timeout, connection.ping());
                matches!(asked.await, Ok(Ok(()))).then_some(connection)
            }
        }
    }
}

impl Terms {
    pub(crate) fn new(url: CatalogUrl, config: CatalogConfig) -> Self {
        Self { dialect: url.dialect(), url, config }
    }

    async fn connect(&self) -> Result<AnyConnection, CatalogError> {
        let begun = Instant::now();
        loop {
            match self.dial_and_prepare().await {
                // Several processes that create one SQLite file at once meet here: turning the
                // write-ahead log on is the one thing SQLite does not wait for.
                Err(CatalogError::Busy { .. }) if begun.elapsed() < self.config.lock_timeout => {
                    tokio::time::sleep(BUSY_PAUSE).await;
                }
                result => return result,
            }
        }
    }

    async fn dial_and_prepare(&self) -> Result<AnyConnection, CatalogError> {
        let mut connection = self.timed(self.config.poll_timeout, self.dial()).await?;
        let prepared = schema::prepare(&mut connection, &self.url);
        self.timed(self.config.operation_timeout, prepared).await?;
        Ok(connection)
    }

    async fn dial(&self) -> Result<AnyConnection, Trouble> {
        let options = AnyConnectOptions::from_url(&self.url.driver_url()?)?;
        let mut connection = options.connect().await?;
        for setting in self.dialect.session_settings(self.config.lock_timeout) {
            connection.execute(sqlx::raw_sql(AssertSqlSafe(setting))).await?;
        }
        Ok(connection)
    }

    /// Waits for the database, but not for ever, and says in errors which one it was.
    async fn timed<T>(
        &self,
        limit: Duration,
        operation: impl Future<Output = Result<T, Trouble>>,
    ) -> Result<T, CatalogError> {
        match tokio::time::timeout(limit, operation).await {
            Ok(result) => result.map_err(|trouble| self.name_trouble(trouble)),
            Err(_) => Err(CatalogError::TimedOut { catalog: self.url.to_string(), limit }),
        }
    }

    fn name_trouble(&self, trouble: Trouble) -> CatalogError {
        let source = match trouble {
            Trouble::Ours(error) => return error,
            Trouble::Driver(source) => source,
        };
        let catalog = self.url.to_string();
        match kind_of(&source, self.dialect) {
            Kind::Away => CatalogError::Away { catalog, source },
            Kind::Busy => CatalogError::Busy { catalog, source },
            Kind::Other => CatalogError::Database { catalog, source },
        }
    }
}

/// An error from inside an operation, before the link has said which catalog it was.
pub(crate) enum Trouble {
    /// Said by this crate, complete.
    Ours(CatalogError),
    /// Said by the driver.
    Driver(sqlx::Error),
}

impl From<CatalogError> for Trouble {
    fn from(error: CatalogError) -> Self {
        Self::Ours(error)
    }
}

impl From<sqlx::Error> for Trouble {
    fn from(error: sqlx::Error) -> Self {
        Self::Driver(error)
    }
}

enum Kind {
    Away,
    Busy,
    Other,
}

fn kind_of(error: &sqlx::Error, dialect: Dialect) -> Kind {
    let database = match error {
        sqlx::Error::Database(database) => database,
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::WorkerCrashed => return Kind::Away,
        _ => return Kind::Other,
    };
    let code = database.code().unwrap_or_default();
    match dialect {
        // The low byte is the kind of error, the rest says more of it: 5 is busy, 6 locked, 10 a
        // failed read or write, 14 a file that can't be opened.
        Dialect::Sqlite => match code.parse::<u32>().unwrap_or_default() & 0xff {
            5 | 6 => Kind::Busy,
            10 | 14 => Kind::Away,
            _ => Kind::Other,
        },
        // Classes of SQLSTATE: 08 connection, 53 out of resources, 57P shutting down or starting;
        // 55P03 and 40 are a lock that was not had and a transaction to be tried again.
        Dialect::Postgres if code == "55P03" || code.starts_with("40") => Kind::Busy,
        Dialect::Postgres if ["08", "53", "57P", "58"].iter().any(|c| code.starts_with(c)) => {
            Kind::Away
        }
        Dialect::Postgres => Kind::Other,
    }
}
