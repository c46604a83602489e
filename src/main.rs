//! The one binary. Wiring only: each subcommand has its file.

fn main() {}
