//! Workers behind a name: every address it resolves to is one. Looked up again and again, for a name
//! server does not call when something changes.
//!
//! A name that resolves to nothing is a failure like any other, since resolvers don't tell the two
//! apart: the workers that were there are kept, and dialling them says whether they are.

use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use core_workcoord::id::Endpoint;
use tokio::time::{Instant, sleep_until, timeout};

use super::{Pace, Source, SourceError, endpoint};

/// Looks names up.
pub trait Resolve: Send + 'static {
    /// All addresses of a name, with the port.
    fn resolve(
        &mut self,
        host: &str,
        port: u16,
    ) -> impl Future<Output = io::Result<Vec<SocketAddr>>> + Send;
}

/// The resolver of the system.
#[derive(Clone, Copy, Debug)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    async fn resolve(&mut self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }
}

/// The addresses of one name.
#[derive(Debug)]
pub struct DnsSource<R> {
    host: String,
    port: u16,
    resolver: R,
    interval: Duration,
    answer_timeout: Duration,
    /// When to look next; nothing for at once.
    due: Option<Instant>,
}

impl<R: Resolve> DnsSource<R> {
    /// The addresses of a name, with this port.
    pub fn new(host: &str, port: u16, resolver: R, pace: &Pace) -> Self {
        Self {
            host: host.to_owned(),
            port,
            resolver,
            interval: pace.dns_interval,
            answer_timeout: pace.answer_timeout,
            due: None,
        }
    }
}

impl<R: Resolve> Source for DnsSource<R> {
    async fn next(&mut self) -> Result<BTreeSet<Endpoint>, SourceError> {
        if let Some(due) = self.due.take() {
            sleep_until(due).await;
        }
        let looked = timeout(self.answer_timeout, self.resolver.resolve(&self.host, self.port));
        let found = looked.await.map_err(|_| SourceError::Silent { after: self.answer_timeout })?;
        let found = found
            .map_err(|source| SourceError::Lookup { host: self.host.clone(), source })?
            .into_iter()
            .map(|address| endpoint(&address.to_string()))
            .collect::<Result<_, _>>()?;
        self.due = Some(Instant::now() + self.interval);
        Ok(found)
    }
}
