//! Which network a run has. Where the machine permits, one of its own: the suite runs itself again in a
//! network and mount namespace that nobody else is in, with a namespace for each worker below it, so
//! that nothing of the machine's own network is touched and everything goes with the process. Elsewhere
//! it is loopback, and links fall ill in a proxy.

mod tool;
mod wire;

use std::ffi::OsString;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::error::ChaosError;
use tool::{output, run};

pub use wire::{Traffic, Wire};

/// Which network namespace the machine's own is, for whoever runs in another one.
const OUTSIDE: &str = "TRIBUTARY_CHAOS_OUTSIDE";

/// The option by which the binary is asked to rehearse.
pub const REHEARSAL: &str = "--rehearse-network";

/// A rehearsal has this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is wished for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    /// Namespaces where the machine permits, otherwise the proxy.
    #[default]
    Auto,
    /// Namespaces or nothing.
    Namespaces,
    /// The proxy.
    Proxy,
}

/// What a run has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Network {
    /// A namespace for each worker, all of them in one of the run's own.
    Namespaces,
    /// Loopback, and a proxy.
    Proxy {
        /// Why there are no namespaces.
        why: String,
    },
}

impl Network {
    /// What this process has: namespaces only where it was started in one of its own.
    pub fn here() -> Self {
        let is_inside = match (std::env::var_os(OUTSIDE), namespace()) {
            (Some(outside), Ok(own)) => outside != own,
            _ => false,
        };
        if is_inside { Self::Namespaces } else { Self::Proxy { why: "not asked for".to_owned() } }
    }

    /// How links fall ill, for people.
    pub fn words(&self) -> String {
        match self {
            Self::Namespaces => "network namespaces, one for each worker: packets are dropped by nft \
                                 and held by tc, sockets are closed by ss; a TCP proxy for delay and \
                                 flipped bits"
                .to_owned(),
            Self::Proxy { why } => {
                format!("a TCP proxy on loopback (no network namespaces: {why})")
            }
        }
    }
}

/// Moves into a network of its own, where that is wished for and permitted: this process is replaced by
/// the same binary with the same arguments. Comes back in there, or where there is none.
pub fn enter(wish: Wish, binary: &Path, command: &str) -> Result<Network, ChaosError> {
    if Network::here() == Network::Namespaces {
        run(None, "ip", &["link", "set", "lo", "up"], "")?;
        return Ok(Network::Namespaces);
    }
    if wish == Wish::Proxy {
        return Ok(Network::here());
    }
    match rehearsed(binary, command) {
        Ok(()) => {
            let arguments = std::env::args_os().skip(1);
            let source = unshared(binary)?.args(arguments).exec();
            Err(ChaosError::NoNetwork { why: format!("unshare: {source}") })
        }
        Err(ChaosError::NoNetwork { why }) if wish == Wish::Auto => Ok(Network::Proxy { why }),
        Err(error) => Err(error),
    }
}

/// Whether a binary's suite can have a network of its own here: it tries, in one that goes at once.
pub fn rehearsed(binary: &Path, command: &str) -> Result<(), ChaosError> {
    let refused = |why: String| ChaosError::NoNetwork { why };
    let lost = |source: std::io::Error| refused(format!("unshare: {source}"));
    let mut rehearsal = unshared(binary)?;
    rehearsal.args([command, REHEARSAL]).stdin(Stdio::null());
    rehearsal.stdout(Stdio::null()).stderr(Stdio::piped());
    let said = output(rehearsal.spawn().map_err(lost)?, PATIENCE).map_err(lost)?;
    if said.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&said.stderr);
    let last = text.lines().map(str::trim).rfind(|line| !line.is_empty());
    Err(refused(last.unwrap_or("it failed").to_owned()))
}

/// Does everything once that a run may need, inside.
pub fn rehearse() -> Result<(), ChaosError> {
    let refused = |why: &str| ChaosError::NoNetwork { why: why.to_owned() };
    if Network::here() != Network::Namespaces {
        return Err(refused("this is the machine's own network"));
    }
    run(None, "ip", &["link", "set", "lo", "up"], "")?;
    let folder = tempfile::Builder::new().prefix("tributary-chaos-").tempdir();
    let folder = folder.map_err(ChaosError::file(std::env::temp_dir()))?;
    let mut wire = Wire::new(0, folder.path())?;
    wire.cut(Traffic::All, true, true)?;
    wire.lose(10)?;
    wire.limit(8 << 10)?;
    wire.divert(Traffic::All, [wire.hub(1), wire.hub(2)])?;
    wire.leave_half_open()?;
    wire.heal()?;
    // A system may promise to close sockets and not do it.
    let listener = TcpListener::bind("127.0.0.1:0").map_err(ChaosError::Listen)?;
    let address = listener.local_addr().map_err(ChaosError::Listen)?;
    let mut stream = TcpStream::connect(address).map_err(ChaosError::Listen)?;
    let port = format!(":{}", address.port());
    run(None, "ss", &["-K", "-H", "-t", "-4", "dport", "=", &port], "")?;
    let patience = stream.set_read_timeout(Some(Duration::from_millis(200)));
    let is_open = patience.and_then(|()| stream.write_all(b"?")).is_ok();
    if is_open
        && stream.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    {
        return Err(refused("ss closes no sockets here"));
    }
    Ok(())
}

/// The binary in a network and mount namespace of its own, without its arguments yet.
fn unshared(binary: &Path) -> Result<Command, ChaosError> {
    let refused = |source| ChaosError::NoNetwork { why: format!("/proc/self/ns/net: {source}") };
    let outside = namespace().map_err(refused)?;
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--"]).arg(binary).env(OUTSIDE, outside);
    Ok(command)
}

/// The network namespace of this process.
fn namespace() -> std::io::Result<OsString> {
    fs::read_link("/proc/self/ns/net").map(std::path::PathBuf::into_os_string)
}

impl std::str::FromStr for Wish {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "namespaces" => Ok(Self::Namespaces),
            "proxy" => Ok(Self::Proxy),
            _ => Err(format!("{text:?} is none of auto, namespaces, proxy")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_not_moved_is_in_the_machines_own_network() {
        assert!(matches!(Network::here(), Network::Proxy { .. }));
        assert!(rehearse().unwrap_err().to_string().contains("own network"));
    }

    #[test]
    fn wishes_are_known_by_name() {
        assert_eq!("namespaces".parse(), Ok(Wish::Namespaces));
        assert!("tunnel".parse::<Wish>().unwrap_err().contains("auto, namespaces, proxy"));
    }
}
