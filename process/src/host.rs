//! The name of the machine this process runs on.

/// The name of this host; `localhost` where it has none.
pub fn host_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if name.is_empty() { "localhost".into() } else { name }
}
