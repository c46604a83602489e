//! The road between API nodes and a worker, and everything that can be done to it. A wire of its own does
//! it where there is one, and a proxy where there is none; delay and flipped bits are always the
//! proxy's.

use std::net::SocketAddr;
use std::time::Duration;

use crate::error::ChaosError;
use crate::link::{Link, Weather};
use crate::network::{Traffic, Wire};
use crate::process::Process;

/// A road to one worker.
#[derive(Debug)]
pub struct Road {
    wire: Option<Wire>,
    control: Link,
    artifacts: Link,
    /// The worker's control port as it is.
    honest: Option<SocketAddr>,
    /// What must be reset before all is well.
    tainted: Option<Traffic>,
}

impl Road {
    pub(super) async fn new(wire: Option<Wire>) -> Result<Self, ChaosError> {
        let (control, artifacts) = (Link::new().await?, Link::new().await?);
        Ok(Self { wire, control, artifacts, honest: None, tainted: None })
    }

    /// The wire, where there is one.
    pub fn wire(&self) -> Option<&Wire> {
        self.wire.as_ref()
    }

    /// Where API nodes dial.
    pub fn control(&self) -> SocketAddr {
        self.wire.as_ref().map_or(self.control.address(), Wire::control)
    }

    /// Where artifacts are fetched.
    pub fn artifacts(&self) -> SocketAddr {
        self.wire.as_ref().map_or(self.artifacts.address(), Wire::artifacts)
    }

    /// The control port of a worker's process, whatever is done to the road.
    pub(super) fn grpc_of(&self, process: &Process) -> Option<SocketAddr> {
        let address = process.address("grpc")?;
        Some(self.wire.as_ref().map_or(address, |wire| wire.back(address.port())))
    }

    /// And its HTTP port.
    pub(super) fn http_of(&self, process: &Process) -> Option<SocketAddr> {
        let address = process.address("http")?;
        Some(self.wire.as_ref().map_or(address, |wire| wire.back(address.port())))
    }

    /// Leads to a process from now on.
    pub(super) fn lead_to(&mut self, process: &Process) {
        self.honest = self.grpc_of(process);
        self.control.lead_to(self.honest);
        self.artifacts.lead_to(self.http_of(process));
    }

    /// Nothing passes there, back, or either way.
    pub fn cut(&self, traffic: Traffic, there: bool, back: bool) -> Result<(), ChaosError> {
        match &self.wire {
            Some(wire) => wire.cut(traffic, there, back)?,
            None => self.change(traffic, |weather| {
                (weather.there.is_cut, weather.back.is_cut) = (there, back);
            }),
        }
        Ok(())
    }

    /// Everything comes later.
    pub fn delay(
        &mut self,
        traffic: Traffic,
        there: Duration,
        back: Duration,
    ) -> Result<(), ChaosError> {
        self.change(traffic, |weather| {
            (weather.there.delay, weather.back.delay) = (there, back);
        });
        if self.wire.is_some() {
            self.divert(traffic, self.control.address())?;
        }
        Ok(())
    }

    /// One bit of artifacts is flipped in so many bytes.
    pub fn flip(&mut self, flip_in: u64) -> Result<(), ChaosError> {
        self.change(Traffic::Artifacts, |weather| weather.back.flip_in = Some(flip_in));
        // A connection whose framing was hit may wait for ever: it is not kept.
        self.tainted = Some(Traffic::Artifacts);
        self.divert(Traffic::Artifacts, self.control.address())
    }

    /// No more bytes than this pass in a second: of everything on a wire, of artifacts otherwise.
    pub fn limit(&mut self, bytes_per_second: u64) -> Result<(), ChaosError> {
        match &mut self.wire {
            Some(wire) => wire.limit(bytes_per_second)?,
            None => self.change(Traffic::Artifacts, |weather| {
                weather.there.bytes_per_second = Some(bytes_per_second);
                weather.back.bytes_per_second = Some(bytes_per_second);
            }),
        }
        Ok(())
    }

    /// So many of a hundred packets are lost each way. A proxy has no packets to lose.
    pub fn lose(&self, percent: u64) -> Result<(), ChaosError> {
        self.wire.as_ref().map_or(Ok(()), |wire| wire.lose(percent))
    }

    /// Every connection is reset.
    pub fn reset(&self, traffic: Traffic) -> Result<(), ChaosError> {
        match &self.wire {
            Some(wire) => wire.reset(traffic)?,
            None => self.links(traffic).for_each(Link::reset),
        }
        Ok(())
    }

    /// Every connection ends at the worker, and API nodes believe that it is open.
    pub fn leave_half_open(&self) -> Result<(), ChaosError> {
        match &self.wire {
            Some(wire) => wire.leave_half_open()?,
            None => self.links(Traffic::All).for_each(Link::leave_half_open),
        }
        Ok(())
    }

    /// Control streams lead to somebody else.
    pub fn usurp(&mut self, by: SocketAddr) -> Result<(), ChaosError> {
        self.control.lead_to(Some(by));
        self.tainted = Some(Traffic::Control);
        self.divert(Traffic::Control, by)?;
        self.reset(Traffic::Control)
    }

    /// All is well again.
    pub fn heal(&mut self) -> Result<(), ChaosError> {
        self.control.lead_to(self.honest);
        self.links(Traffic::All).for_each(Link::heal);
        if let Some(wire) = &mut self.wire {
            wire.heal()?;
        }
        match self.tainted.take() {
            Some(traffic) => self.reset(traffic),
            None => Ok(()),
        }
    }

    /// Leads a wire's traffic over the proxies: control streams to this one.
    fn divert(&mut self, traffic: Traffic, control: SocketAddr) -> Result<(), ChaosError> {
        let Some(wire) = &self.wire else { return Ok(()) };
        self.tainted = Some(traffic);
        wire.divert(traffic, [control, self.artifacts.address()])
    }

    fn change(&self, traffic: Traffic, change: impl Fn(&mut Weather)) {
        self.links(traffic).for_each(|link| link.change(&change));
    }

    fn links(&self, traffic: Traffic) -> impl Iterator<Item = &Link> {
        let control = traffic.has_control().then_some(&self.control);
        let artifacts = traffic.has_artifacts().then_some(&self.artifacts);
        control.into_iter().chain(artifacts)
    }
}
