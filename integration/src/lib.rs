//! House checks, and suites over whole clusters.
