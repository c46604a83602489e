//! The system's own tools for networks, run to their end: ip, nft, tc and ss. Each takes a few
//! milliseconds, so whoever calls simply waits, but not for ever: a tool that hangs is killed.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::error::ChaosError;

/// A tool has this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a tool, in a network namespace where one is given, and gives what it says. An exit code other
/// than zero is an error, with what the tool says of it.
pub(super) fn run(
    namespace: Option<&Path>,
    program: &str,
    arguments: &[&str],
    input: &str,
) -> Result<String, ChaosError> {
    let mut command = within(namespace, Path::new(program));
    command.args(arguments);
    let failed = |output: String| ChaosError::Tool {
        command: [&[program], arguments].concat().join(" "),
        output: format!("{program}: {}", output.trim()),
    };
    let lost = |source: std::io::Error| failed(source.to_string());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(lost)?;
    let given = match child.stdin.take() {
        Some(mut stdin) => stdin.write_all(input.as_bytes()),
        None => Ok(()),
    };
    let said = output(child, PATIENCE).map_err(lost)?;
    if !said.status.success() {
        return Err(failed(String::from_utf8_lossy(&said.stderr).into_owned()));
    }
    // Who reads nothing may be gone before it is given nothing.
    if !input.is_empty() {
        given.map_err(lost)?;
    }
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}

/// What a process says until its end. One that takes longer than this is killed, which is an error.
pub(super) fn output(child: Child, patience: Duration) -> std::io::Result<Output> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (tell, told) = mpsc::channel();
    // Nobody listens any more where patience has run out.
    thread::spawn(move || drop(tell.send(child.wait_with_output())));
    told.recv_timeout(patience).unwrap_or_else(|_| {
        if let Some(pid) = pid {
            // It may end at this very moment.
            let _ = kill_process(pid, Signal::KILL);
        }
        let words = format!("no end after {} ms", patience.as_millis());
        Err(std::io::Error::new(std::io::ErrorKind::TimedOut, words))
    })
}

/// A command in a network namespace. It replaces the tool that leads there, so it has that one's id.
pub(super) fn within(namespace: Option<&Path>, program: &Path) -> Command {
    let Some(namespace) = namespace else { return Command::new(program) };
    let mut command = Command::new("nsenter");
    let mut net = std::ffi::OsString::from("--net=");
    net.push(namespace);
    command.arg(net).arg("--").arg(program);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_fails_says_why() {
        let error = run(None, "sh", &["-c", "echo no such device >&2; exit 3"], "").unwrap_err();
        assert!(error.to_string().contains("no such device"), "{error}");
        assert!(run(None, "no-such-tool", &[], "").is_err());
    }

    #[test]
    fn a_tool_that_hangs_is_not_waited_for() {
        let child = Command::new("sleep").arg("600").spawn().unwrap();
        let process = Path::new("/proc").join(child.id().to_string());
        let error = output(child, Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("no end after 50 ms"), "{error}");
        let is_gone = || {
            thread::sleep(Duration::from_millis(10));
            !process.exists()
        };
        assert!((0..500).any(|_| is_gone()), "it is killed");
    }

    #[test]
    fn a_tool_is_given_its_input() {
        assert_eq!(run(None, "cat", &[], "rules").unwrap(), "rules");
    }
}
