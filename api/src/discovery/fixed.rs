//! A list of workers that somebody wrote down. It never changes.

use std::collections::BTreeSet;

use core_workcoord::id::Endpoint;

use super::{Source, SourceError};

/// Answers once, with what it was given.
#[derive(Debug)]
pub struct FixedSource {
    endpoints: Option<BTreeSet<Endpoint>>,
}

impl FixedSource {
    /// These workers, for ever.
    pub fn new(endpoints: BTreeSet<Endpoint>) -> Self {
        Self { endpoints: Some(endpoints) }
    }
}

impl Source for FixedSource {
    async fn next(&mut self) -> Result<BTreeSet<Endpoint>, SourceError> {
        match self.endpoints.take() {
            Some(endpoints) => Ok(endpoints),
            None => std::future::pending().await,
        }
    }
}
