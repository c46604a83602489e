//! The API node. Here so far: which segments make a work item. Streams to workers, fetching and HTTP
//! are not there yet.

pub mod cells;

pub use cells::{Cell, CellSize, cells_of};
