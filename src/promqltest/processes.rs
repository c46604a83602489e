//! A cluster of real processes of this very binary on loopback: workers and an API node. They end with
//! the value that stands for them.

use std::env;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::cli::Problem;

/// A running cluster.
pub(super) struct Processes {
    /// Where it is asked.
    pub(super) url: String,
    /// The API node, and after it the workers: it is ended first.
    _children: Vec<Process>,
}

/// A process that ends with this.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Nothing of it is needed any more, and it may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Processes {
    /// Starts workers and an API node that knows them. Waits until their ports are open.
    pub(super) fn start(data_dir: &Path, caches: &Path, workers: u16) -> Result<Self, Problem> {
        let mut children = Vec::new();
        let mut node = vec!["api".to_owned(), "--http".to_owned(), "127.0.0.1:0".to_owned()];
        let data_dir = data_dir.display().to_string();
        for number in 0..workers {
            let name = format!("worker-{number}");
            let cache = caches.join(&name).display().to_string();
            let args = [
                "worker",
                "--worker-id",
                &name,
                "--data-dir",
                &data_dir,
                "--cache-dir",
                &cache,
                "--grpc",
                "127.0.0.1:0",
                "--http",
                "127.0.0.1:0",
                "--set",
                "log.filter=error",
            ];
            let (child, ready) = start(&args.map(str::to_owned))?;
            children.push(child);
            let grpc = address(&ready, "grpc=")?;
            node.extend(["--worker".to_owned(), grpc]);
        }
        for setting in [
            "log.filter=error",
            // As the engine that Prometheus judges by its own scripts.
            "query.features=all",
            // Every cell is an item of its own, so that there are edges between them.
            "work.max_samples=1",
            "schedule.max_tenant_queries=500",
        ] {
            node.extend(["--set".to_owned(), setting.to_owned()]);
        }
        node.extend(["--data-dir".to_owned(), data_dir]);
        let (child, ready) = start(&node)?;
        children.insert(0, child);
        let url = format!("http://{}", address(&ready, "http=")?);
        Ok(Self { url, _children: children })
    }
}

/// Starts a process and waits for the line that says that it is ready.
fn start(args: &[String]) -> Result<(Process, String), Problem> {
    let program = env::current_exe().map_err(Problem::failed)?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped());
    // Settings of whoever runs the scripts are not for these.
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("TRIBUTARY_") {
            command.env_remove(name);
        }
    }
    let mut child = Process(command.spawn().map_err(Problem::failed)?);
    let mut line = String::new();
    if let Some(output) = child.0.stdout.take() {
        BufReader::new(output).read_line(&mut line).map_err(Problem::failed)?;
    }
    if !line.starts_with("ready ") {
        let status = child.0.wait().map_err(Problem::failed)?;
        return Err(Problem::NotReady { what: args[0].clone(), status: status.to_string() });
    }
    Ok((child, line))
}

fn address(ready: &str, name: &str) -> Result<String, Problem> {
    let found = ready.split_whitespace().find_map(|word| word.strip_prefix(name));
    let missing = || Problem::NotReady { what: ready.trim().to_owned(), status: name.to_owned() };
    found.map(str::to_owned).ok_or_else(missing)
}
