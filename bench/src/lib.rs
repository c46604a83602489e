//! Benchmarks and the load runner.
