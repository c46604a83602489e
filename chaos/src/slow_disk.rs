//! A disk that is slow for one process alone: strace holds the process's file operations back before
//! the system sees them, and lets go of it again. What the process reads through memory maps is as
//! fast as ever, and so are `openat`, `read` and `write`: with them runtimes wake each other up and
//! a false clock is read, which are no disk.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// What is held back. Not every system has every one, which the question mark forgives.
const OPERATIONS: &str = "?pread64,?preadv,?pwrite64,?pwritev,?fsync,?fdatasync,?rename,?renameat,\
                          ?renameat2,?unlink,?unlinkat,?ftruncate,?fallocate";

/// strace takes hold of a process, and lets go of it, within this time.
const PATIENCE: Duration = Duration::from_secs(5);

/// A process whose disk is slow, until this goes.
#[derive(Debug)]
pub struct SlowDisk {
    of: u32,
    strace: Child,
}

impl SlowDisk {
    /// Makes every file operation of a process take so much longer. Returns when it does.
    pub fn of(process: u32, delay: Duration) -> io::Result<Self> {
        let inject = format!("inject={OPERATIONS}:delay_enter={}", delay.as_micros());
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={OPERATIONS}")]);
        command.args(["-e", &inject, "-p", &process.to_string()]);
        // A group of its own: a signal for ours must not end it before we do.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        // From here on whatever goes wrong ends it.
        let mut this = Self { of: process, strace: command.spawn()? };
        let begun = Instant::now();
        while !this.holds() {
            if let Some(status) = this.strace.try_wait()? {
                return Err(io::Error::other(format!("strace ended: {status}")));
            }
            if begun.elapsed() > PATIENCE {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(this)
    }

    /// Lets go of the process. It must run on, traced by nobody.
    pub fn end(mut self) -> io::Result<()> {
        self.let_go();
        let begun = Instant::now();
        loop {
            let left: Vec<_> = threads(self.of).into_iter().filter(Thread::is_held).collect();
            if left.is_empty() {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("strace is gone and left {left:?}")));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Whether strace has every thread of the process.
    fn holds(&self) -> bool {
        let threads = threads(self.of);
        !threads.is_empty() && threads.iter().all(|thread| thread.tracer == self.strace.id())
    }

    /// Asks strace to leave, which lets the process run on; one that does not hear is killed, and
    /// then the system does the same. Waits for its end.
    fn let_go(&mut self) {
        let begun = Instant::now();
        if let Ok(None) = self.strace.try_wait()
            && let Some(pid) = i32::try_from(self.strace.id()).ok().and_then(Pid::from_raw)
        {
            let _ = rustix::process::kill_process(pid, Signal::TERM);
        }
        while let Ok(None) = self.strace.try_wait() {
            if begun.elapsed() > PATIENCE {
                let _ = self.strace.kill();
                let _ = self.strace.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.let_go();
    }
}

/// Why no disk can be slow here, where none can. Tried once, with a process of our own.
pub fn hindrance() -> Option<&'static str> {
    static TRIED: OnceLock<Option<&'static str>> = OnceLock::new();
    *TRIED.get_or_init(|| {
        let version = Command::new("strace").arg("-V").stdout(Stdio::null()).status();
        if !version.is_ok_and(|status| status.success()) {
            return Some("strace is not installed");
        }
        let Ok(mut sleeper) = Command::new("sleep").arg("60").spawn() else {
            return Some("there is no process to try strace with");
        };
        let tried = SlowDisk::of(sleeper.id(), Duration::from_millis(1)).and_then(SlowDisk::end);
        // It may have ended; waited for, it is gone in any case.
        let _ = sleeper.kill();
        let _ = sleeper.wait();
        tried.err().map(|_| "strace may not hold other processes here")
    })
}

/// A thread as the system sees it.
#[derive(Debug)]
struct Thread {
    tracer: u32,
    state: char,
}

impl Thread {
    /// Traced, or stopped by a tracer (`t`) or a signal (`T`).
    fn is_held(&self) -> bool {
        self.tracer != 0 || matches!(self.state, 't' | 'T')
    }
}

/// The threads of a process; none once it has ended.
fn threads(process: u32) -> Vec<Thread> {
    let folder = Path::new("/proc").join(process.to_string()).join("task");
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let about = |entry: fs::DirEntry| {
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let line = |key| status.lines().find_map(|line: &str| line.strip_prefix(key));
        let tracer = line("TracerPid:")?.trim().parse().ok()?;
        Some(Thread { tracer, state: line("State:")?.trim().chars().next()? })
    };
    entries.flatten().filter_map(about).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_runs_on_when_its_disk_is_fast_again() {
        if let Some(why) = hindrance() {
            eprintln!("not tried: {why}");
            return;
        }
        // It removes what is not there again and again, an operation that is held back, and counts.
        let count = tempfile::NamedTempFile::new().expect("a file can be made");
        let mut busy = Command::new("sh");
        busy.args(["-c", "while rm -f /nowhere/nothing; do echo >> \"$0\"; done"]);
        let mut busy = busy.arg(count.path()).spawn().expect("there is a shell");
        let slow = SlowDisk::of(busy.id(), Duration::from_millis(50)).expect("strace takes hold");
        assert!(threads(busy.id()).iter().all(Thread::is_held));
        let counted = || fs::metadata(count.path()).expect("it is there").len();
        let (begun, before) = (Instant::now(), counted());
        std::thread::sleep(Duration::from_millis(500));
        let (done, took) = (counted() - before, begun.elapsed());
        assert!(u128::from(done) <= took.as_millis() / 50 + 1, "{done} in {took:?}");
        slow.end().expect("strace lets go");
        assert!(busy.try_wait().expect("it is ours").is_none(), "it ended");
        let before = counted();
        let begun = Instant::now();
        while counted() == before {
            assert!(begun.elapsed() < PATIENCE, "it does nothing");
            std::thread::sleep(Duration::from_millis(2));
        }
        busy.kill().expect("it runs");
        busy.wait().expect("it is ours");
    }
}
