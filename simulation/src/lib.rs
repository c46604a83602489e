//! Deterministic simulation of several API nodes and many workers.
