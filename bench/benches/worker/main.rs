//! A worker beside what it is built on, in the same run: work items through a real stream beside a
//! bare tonic echo stream, the time from AssignWork to WorkReady, and artifacts encoded and served
//! beside a plain Parquet writer and a bare axum file response.
//!
//! `cargo bench --workspace --bench worker`, with a part of the name of a row to see only such rows.
//! One line a measurement. Worker, echo server and client share the machine's cores, as they do in
//! every line here.

mod artifacts;
mod echo;
mod stage;
mod streams;

use std::time::Duration;

use tributary_integration::worker_suite::field::Field;

/// How long each rate is measured.
fn span() -> Duration {
    // Under `cargo test` a bench only shows that it runs.
    let measured = std::env::args().any(|arg| arg == "--bench");
    Duration::from_millis(if measured { 4_000 } else { 50 })
}

/// Whether somebody wants to see this row.
fn is_wanted(row: &str) -> bool {
    let mut asked = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).peekable();
    asked.peek().is_none() || asked.any(|part| row.contains(&part))
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime can be made");
    let field = Field::sown();
    runtime.block_on(streams::compare(&field, span()));
    if is_wanted("artifacts") {
        artifacts::compare(&runtime, &field, span());
    }
}
