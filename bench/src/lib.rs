//! Workloads for the benchmarks in `benches/`: a coordinator with a pool of workers that answer at
//! once. The benchmarks do the measuring.

mod pool;

pub use pool::Pool;
