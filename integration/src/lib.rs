//! House checks, the differential test of PromQL, and suites over whole clusters. `tidy` holds the
//! rules, `differential` what the test against the real Prometheus is made of, `worker_suite` what
//! suites over real worker processes are made of, `stack` the whole stack in a simulated network; the
//! suites are in `tests/`.

pub mod cluster;
pub mod differential;
pub mod segments;
pub mod stack;
pub mod tidy;
pub mod worker_suite;
