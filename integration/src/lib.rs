//! House checks, the differential test of PromQL, and suites over whole clusters. `tidy` holds the
//! rules, `differential` what the test against the real Prometheus is made of; the suites are in
//! `tests/`.

pub mod differential;
pub mod tidy;
