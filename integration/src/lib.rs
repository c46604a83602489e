//! House checks, and suites over whole clusters. `tidy` holds the rules; the suites are in
//! `tests/`.

pub mod tidy;
