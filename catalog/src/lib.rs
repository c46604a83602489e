//! Which segments exist: tenant, time, shard, metrics, location, size. How a segment is read is
//! not known here.
//!
//! - `Catalog` is the database: SQLite in a file, or PostgreSQL where several API nodes share it.
//!   Changes are atomic and may be repeated.
//! - `DataDir` is a folder of this machine with both of these in it.
//! - `Store` is the object store with the segments' files.
//! - `Universe` is everything a query needs to know, in memory; a `UniverseFeed` keeps it current,
//!   and no query ever waits for the database.
//! - `gc` removes what nobody needs.
//!
//! Writers put a segment's files into the store first and register them last, all of a batch in
//! one transaction. A crash in between leaves files that no row names, which cleaning removes, and
//! nothing a reader could see.

pub mod catalog_url;
pub mod config;
pub mod data_dir;
pub mod error;
pub mod gc;
mod metric_index;
pub mod metric_names;
pub mod object_path;
pub mod objects;
pub mod refresh;
pub mod segment_row;
pub mod store;
pub mod universe;

pub use catalog_url::CatalogUrl;
pub use config::CatalogConfig;
pub use data_dir::DataDir;
pub use error::{CatalogError, DataDirError, GcError, ObjectError};
pub use metric_names::MetricNames;
pub use object_path::ObjectPath;
pub use objects::{LocalFile, Store, StoreOptions};
pub use refresh::{Freshness, UniverseFeed, UniverseReader};
pub use segment_row::{Block, NewSegment, Segment, SegmentId, Shard, StoredFile};
pub use store::{Catalog, CatalogEntry, Changed, SegmentDetails};
pub use universe::{MetricChoice, TenantSegments, Universe, Wanted};
