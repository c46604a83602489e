//! A wire to one worker: a network namespace that outlives the worker's processes, joined to the hub,
//! where everybody else is, by a pair of virtual devices. What happens to packets is decided where they
//! arrive, so that whoever sends them learns nothing of it.
//!
//! The worker has two addresses: the front one, which API nodes know and faults are about, and the back
//! one, for the judge's own questions and for whoever stands between.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{UnmountFlags, unmount};

use super::tool::{run, within};
use crate::error::ChaosError;

/// The worker's control port, the same in every namespace.
const CONTROL: u16 = 9090;

/// And the port at which it serves artifacts.
const ARTIFACTS: u16 = 9091;

/// The worker's end of the wire.
const DEVICE: &str = "wire";

/// What a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Control streams and artifacts.
    All,
    /// Control streams alone.
    Control,
    /// Artifacts alone.
    Artifacts,
}

impl Traffic {
    /// Whether it has control streams in it.
    pub fn has_control(self) -> bool {
        self != Self::Artifacts
    }

    /// Whether it has artifacts in it.
    pub fn has_artifacts(self) -> bool {
        self != Self::Control
    }

    fn ports(self) -> &'static [u16] {
        match self {
            Self::All => &[CONTROL, ARTIFACTS],
            Self::Control => &[CONTROL],
            Self::Artifacts => &[ARTIFACTS],
        }
    }

    /// A set, as nft has it.
    fn set(self) -> String {
        set(self.ports())
    }

    /// One of these ports, as ss has it.
    fn any(self, side: &str) -> String {
        let each = self.ports().iter().map(|port| format!("{side} = :{port}"));
        format!("( {} )", each.collect::<Vec<_>>().join(" or "))
    }
}

fn set(ports: &[u16]) -> String {
    let each: Vec<String> = ports.iter().map(u16::to_string).collect();
    format!("{{ {} }}", each.join(", "))
}

/// A wire. Gone, its namespace and devices are too.
#[derive(Debug)]
pub struct Wire {
    number: u8,
    /// The hub's end, and the name of the tables of rules.
    name: String,
    namespace: PathBuf,
    is_limited: bool,
}

impl Wire {
    /// Lays it. The namespace is held by a file in this folder.
    pub fn new(number: u8, folder: &Path) -> Result<Self, ChaosError> {
        let name = format!("chaos{number}");
        let namespace = folder.join(format!("{name}.net"));
        File::create(&namespace).map_err(ChaosError::file(&namespace))?;
        let held = format!("--net={}", namespace.display());
        run(None, "unshare", &[&held, "true"], "")?;
        // From here on an error takes everything back.
        let this = Self { number, name, namespace, is_limited: false };
        let (name, there) = (this.name.as_str(), this.namespace.display().to_string());
        let pair = ["link", "add", name, "type", "veth", "peer", "name", DEVICE, "netns", &there];
        run(None, "ip", &pair, "")?;
        run(None, "ip", &["address", "add", &format!("{}/24", this.host(1)), "dev", name], "")?;
        run(None, "ip", &["link", "set", name, "up"], "")?;
        for host in [2, 3] {
            let address = format!("{}/24", this.host(host));
            this.inside("ip", &["address", "add", &address, "dev", DEVICE])?;
        }
        this.inside("ip", &["link", "set", DEVICE, "up"])?;
        this.inside("ip", &["link", "set", "lo", "up"])?;
        // An earlier wire of this name may have left its rules. The chains stay for as long as the wire:
        // a connection that was led elsewhere would lose its way without the one for that.
        let anew = format!("table ip {name}\ndelete table ip {name}\n");
        let back = "chain back { type filter hook input priority 0; }";
        let divert = "chain divert { type nat hook output priority -100; }";
        this.rules(Some(format!("{anew}table ip {name} {{\n{back}\n{divert}\n}}\n")), None)?;
        let chain = "chain there { type filter hook input priority 0; }";
        this.rules(None, Some(format!("table ip {name} {{\n{chain}\n}}\n")))?;
        Ok(this)
    }

    /// A program at the worker's end.
    pub fn command(&self, program: &Path) -> Command {
        within(Some(&self.namespace), program)
    }

    /// The hub, as the worker sees it.
    pub fn hub(&self, port: u16) -> SocketAddr {
        (self.host(1), port).into()
    }

    /// Where API nodes find the worker.
    fn front(&self, port: u16) -> SocketAddr {
        (self.host(2), port).into()
    }

    /// Where API nodes dial.
    pub fn control(&self) -> SocketAddr {
        self.front(CONTROL)
    }

    /// Where artifacts are fetched.
    pub fn artifacts(&self) -> SocketAddr {
        self.front(ARTIFACTS)
    }

    /// Where the worker is found whatever is done to its wire, but for little bandwidth.
    pub fn back(&self, port: u16) -> SocketAddr {
        (self.host(3), port).into()
    }

    /// Nothing arrives at the worker, nothing comes from it, or neither.
    pub fn cut(&self, traffic: Traffic, there: bool, back: bool) -> Result<(), ChaosError> {
        let drop = |is_cut: bool| if is_cut { "drop" } else { "accept" };
        self.meet(traffic, drop(there), drop(back))
    }

    /// So many of a hundred packets are lost each way.
    pub fn lose(&self, percent: u64) -> Result<(), ChaosError> {
        let drop = format!("numgen random mod 100 < {percent} drop");
        self.meet(Traffic::All, &drop, &drop)
    }

    /// No more bytes than this pass in a second each way, whatever they are. What does not fit the short
    /// queue is lost.
    pub fn limit(&mut self, bytes_per_second: u64) -> Result<(), ChaosError> {
        let rate = format!("{bytes_per_second}bps");
        let limit = |device| {
            let held = ["tbf", "rate", &rate, "burst", "4096", "limit", "16384"];
            [&["qdisc", "replace", "dev", device, "root"], &held[..]].concat()
        };
        self.is_limited = true;
        run(None, "tc", &limit(&self.name), "")?;
        self.inside("tc", &limit(DEVICE))
    }

    /// Connections are reset: both ends are told.
    pub fn reset(&self, traffic: Traffic) -> Result<(), ChaosError> {
        let (front, ports) = (self.host(2).to_string(), traffic.any("dport"));
        run(None, "ss", &["-K", "-H", "-t", "-4", "dst", &front, &ports], "")?;
        Ok(())
    }

    /// Connections that are open end at the worker, and whoever dialled hears nothing of it, and of
    /// nothing else. New ones are well.
    pub fn leave_half_open(&self) -> Result<(), ChaosError> {
        let (front, ports) = (self.host(2).to_string(), Traffic::All.any("dport"));
        let open = ["-H", "-n", "-t", "-4", "state", "established", "dst", &front, &ports];
        let dialled = diallers(self.host(1), &run(None, "ss", &open, "")?);
        if dialled.is_empty() {
            return Ok(());
        }
        let (name, dialled) = (&self.name, set(&dialled));
        self.rules(
            Some(format!("add rule ip {name} back ip saddr {front} tcp dport {dialled} drop\n")),
            Some(format!("add rule ip {name} there ip daddr {front} tcp sport {dialled} drop\n")),
        )?;
        let ports = Traffic::All.any("sport");
        self.inside("ss", &["-K", "-H", "-t", "-4", "src", &front, &ports])
    }

    /// New connections lead elsewhere, control streams to the first and artifacts to the second. Those
    /// that are open are reset.
    pub fn divert(&self, traffic: Traffic, to: [SocketAddr; 2]) -> Result<(), ChaosError> {
        let (name, front) = (&self.name, self.host(2));
        let mut rules = String::new();
        for (port, to) in [CONTROL, ARTIFACTS].into_iter().zip(to) {
            if traffic.ports().contains(&port) {
                // Nothing fails when a string is written to.
                let _ = writeln!(
                    rules,
                    "add rule ip {name} divert ip daddr {front} tcp dport {port} dnat to {to}"
                );
            }
        }
        self.rules(Some(rules), None)?;
        self.reset(traffic)
    }

    /// All is well again. Connections that were led elsewhere still are, until they are reset.
    pub fn heal(&mut self) -> Result<(), ChaosError> {
        let flush = format!("flush table ip {}\n", self.name);
        self.rules(Some(flush.clone()), Some(flush))?;
        if self.is_limited {
            run(None, "tc", &["qdisc", "delete", "dev", &self.name, "root"], "")?;
            self.inside("tc", &["qdisc", "delete", "dev", DEVICE, "root"])?;
            self.is_limited = false;
        }
        Ok(())
    }

    /// What becomes of packets that arrive at the worker, and of those that come from it.
    fn meet(&self, traffic: Traffic, there: &str, back: &str) -> Result<(), ChaosError> {
        let (name, front, ports) = (&self.name, self.host(2), traffic.set());
        self.rules(
            Some(format!("add rule ip {name} back ip saddr {front} tcp sport {ports} {back}\n")),
            Some(format!("add rule ip {name} there ip daddr {front} tcp dport {ports} {there}\n")),
        )
    }

    /// Rules at the hub, and at the worker's end.
    fn rules(&self, hub: Option<String>, inside: Option<String>) -> Result<(), ChaosError> {
        for (namespace, rules) in [(None, hub), (Some(self.namespace.as_path()), inside)] {
            if let Some(rules) = rules {
                run(namespace, "nft", &["-f", "-"], &rules)?;
            }
        }
        Ok(())
    }

    fn inside(&self, program: &str, arguments: &[&str]) -> Result<(), ChaosError> {
        run(Some(&self.namespace), program, arguments, "").map(drop)
    }

    fn host(&self, host: u8) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, self.number, host)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        // Whatever is gone already need not go.
        drop(run(None, "ip", &["link", "delete", &self.name], ""));
        let _ = unmount(&self.namespace, UnmountFlags::DETACH);
        drop(fs::remove_file(&self.namespace));
    }
}

/// The ports at the hub of connections that ss has listed.
fn diallers(hub: Ipv4Addr, listed: &str) -> Vec<u16> {
    let begin = format!("{hub}:");
    let port = |line: &str| {
        let mut words = line.split_whitespace();
        words.find_map(|word| word.strip_prefix(&begin))?.parse().ok()
    };
    listed.lines().filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_diallers_are_read_from_what_ss_lists() {
        let listed = "0      0      10.77.0.1:55920 10.77.0.2:9091\n\
                      0      36     10.77.0.1:40000 10.77.0.2:9090\n\n";
        assert_eq!(diallers(Ipv4Addr::new(10, 77, 0, 1), listed), [55_920, 40_000]);
        assert!(diallers(Ipv4Addr::new(10, 77, 1, 1), listed).is_empty());
    }

    #[test]
    fn traffic_is_told_by_its_ports() {
        assert_eq!(Traffic::All.set(), "{ 9090, 9091 }");
        assert_eq!(Traffic::Artifacts.any("dport"), "( dport = :9091 )");
        assert!(Traffic::Control.has_control() && !Traffic::Control.has_artifacts());
    }
}
