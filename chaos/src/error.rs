//! Why a run could not be done. A promise that is broken is no error but the result: see `verdict`.

use std::io;
use std::path::PathBuf;

/// Why a run could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ChaosError {
    /// A process could not be started.
    #[error("{name} can't be started")]
    Process {
        /// Its name in the run.
        name: String,
        /// Why not.
        source: io::Error,
    },
    /// A process was started and never said that it is ready.
    #[error("{name} is not ready; the end of its log:\n{log}")]
    NotReady {
        /// Its name in the run.
        name: String,
        /// The last lines of its log.
        log: String,
    },
    /// Data could not be imported.
    #[error("the data can't be imported:\n{output}")]
    Import {
        /// What the command said.
        output: String,
    },
    /// A file or folder of the run can't be made, read or written.
    #[error("{path}: {source}")]
    File {
        /// Which one.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A port of loopback can't be listened at.
    #[error("no port of loopback can be listened at")]
    Listen(#[source] io::Error),
    /// The cluster has no answer before anything was done to it.
    #[error("no fault-free answer to compare with: {what}")]
    NoReference {
        /// What went wrong.
        what: String,
    },
    /// The run can't have network namespaces.
    #[error("network namespaces can't be had here: {why}")]
    NoNetwork {
        /// Why not.
        why: String,
    },
    /// A tool of the system failed.
    #[error("{command}\n{output}")]
    Tool {
        /// What was run.
        command: String,
        /// What it said.
        output: String,
    },
    /// What is given as the address of an S3 server is none.
    #[error("{endpoint:?} is no address of an S3 server: it has the form http://HOST:PORT")]
    NotAnEndpoint {
        /// What was given.
        endpoint: String,
    },
    /// The S3 server does not answer.
    #[error("the S3 server at {endpoint} can't be reached")]
    NoServer {
        /// Where it should be.
        endpoint: String,
        /// Why not.
        source: reqwest::Error,
    },
    /// The S3 server does not do what it is asked.
    #[error("the S3 server at {endpoint} refuses with {status}: {said}")]
    Refused {
        /// Where it is.
        endpoint: String,
        /// The HTTP status.
        status: reqwest::StatusCode,
        /// What it said.
        said: String,
    },
    /// A request to an S3 server can't be signed.
    #[error("no request to an S3 server can be signed")]
    Signing(#[source] object_store::Error),
    /// There is no client to ask with.
    #[error("no HTTP client can be made")]
    Client(#[from] reqwest::Error),
    /// No such scenario.
    #[error("there is no scenario {name:?}; known are {known}")]
    NoSuchScenario {
        /// What was asked for.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// The binary has no bugs to switch on.
    #[error("deliberate bugs need a binary built with --features sabotage")]
    NotSabotaged,
}

impl ChaosError {
    /// What a file's error is about.
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
