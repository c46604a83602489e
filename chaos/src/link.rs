//! A TCP link that can fall ill: a proxy on loopback between an API node and a worker, or between a
//! worker and the store. Delay, silence in one direction or both, little bandwidth, flipped bits,
//! resets, and connections of which only one end knows that they are over.

mod pump;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::error::ChaosError;
use pump::carry;

/// How a link treats what goes one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lane {
    /// Nothing passes; what waits passes when this is over, as TCP would have it.
    pub is_cut: bool,
    /// Everything comes this much later.
    pub delay: Duration,
    /// No more bytes than this pass in a second.
    pub bytes_per_second: Option<u64>,
    /// One bit is flipped in so many bytes.
    pub flip_in: Option<u64>,
}

/// How a link is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Weather {
    /// From whoever dials to whoever listens.
    pub there: Lane,
    /// And back.
    pub back: Lane,
    /// Connections are refused, as by a host without such a port.
    pub refuses: bool,
    /// How often all connections were reset.
    resets: u64,
    /// How often all connections were left half-open.
    hangs: u64,
}

/// A link. Gone, it takes its connections with it.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    target: Arc<watch::Sender<Option<SocketAddr>>>,
    serving: JoinHandle<()>,
}

impl Link {
    /// A link that leads nowhere yet, on a port of its own.
    pub async fn new() -> Result<Self, ChaosError> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(ChaosError::Listen)?;
        let address = listener.local_addr().map_err(ChaosError::Listen)?;
        let (weather, seen) = watch::channel(Weather::default());
        let target = Arc::new(watch::Sender::new(None));
        let serving = tokio::spawn(serve(listener, seen, Arc::clone(&target)));
        Ok(Self { address, weather, target, serving })
    }

    /// Where to dial.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Leads here from now on, or nowhere. Connections that are open stay.
    pub fn lead_to(&self, target: Option<SocketAddr>) {
        self.target.send_replace(target);
    }

    /// Changes how the link is.
    pub fn change(&self, change: impl FnOnce(&mut Weather)) {
        self.weather.send_modify(change);
    }

    /// Resets every connection: what was under way is lost, and both ends are told.
    pub fn reset(&self) {
        self.weather.send_modify(|weather| weather.resets += 1);
    }

    /// Ends every connection towards the listener, and lets the dialler believe that it is open.
    pub fn leave_half_open(&self) {
        self.weather.send_modify(|weather| weather.hangs += 1);
    }

    /// All is well again. What was reset stays reset.
    pub fn heal(&self) {
        self.weather.send_modify(|weather| {
            *weather =
                Weather { resets: weather.resets, hangs: weather.hangs, ..Weather::default() };
        });
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    listener: TcpListener,
    weather: watch::Receiver<Weather>,
    target: Arc<watch::Sender<Option<SocketAddr>>>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((here, _)) = accepted else {
                    // Out of file descriptors, perhaps: they come back.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                };
                let target = *target.borrow();
                connections.spawn(connection(here, target, weather.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(
    here: TcpStream,
    target: Option<SocketAddr>,
    mut weather: watch::Receiver<Weather>,
) {
    let begun = *weather.borrow_and_update();
    let (Some(target), false) = (target, begun.refuses) else {
        drop(here.set_zero_linger());
        return;
    };
    // Over a cut link a connect succeeds here all the same: the proxy is no router. Nothing passes
    // then, which is the worse case for whoever dials.
    let Ok(there) = TcpStream::connect(target).await else {
        drop(here.set_zero_linger());
        return;
    };
    drop((here.set_nodelay(true), there.set_nodelay(true)));
    let (mut here, mut there) = (here, there);
    let now = {
        let (here_reads, here_writes) = here.split();
        let (there_reads, there_writes) = there.split();
        let passing = async {
            tokio::join!(
                carry(here_reads, there_writes, weather.clone(), |weather| weather.there),
                carry(there_reads, here_writes, weather.clone(), |weather| weather.back),
            )
        };
        let mut seen = weather.clone();
        let broken = seen.wait_for(|now| now.resets != begun.resets || now.hangs != begun.hangs);
        tokio::select! {
            _ = passing => return,
            broken = broken => broken.map(|now| *now),
        }
    };
    drop(there.set_zero_linger());
    drop(there);
    if now.is_ok_and(|now| now.hangs != begun.hangs) {
        // Held open, and read into nowhere, until the dialler gives up by itself.
        let mut nowhere = [0; 4096];
        while matches!(here.read(&mut nowhere).await, Ok(1..)) {}
    }
    drop(here.set_zero_linger());
}

#[cfg(test)]
mod tests;
