//! Merges runs into segments, several at once.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::buffer::{bounds, tidy};
use super::run::{Section, SectionReader};
use super::sorter::Sorted;
use super::{ImportError, ImportOptions, ImportedSegment, SegmentKey};
use crate::local::LocalWriter;
use crate::schema::Family;

/// Everything that is needed to write the segments of an import.
pub(super) struct Assembly<'a, N> {
    pub(super) options: &'a ImportOptions,
    pub(super) sorted: &'a Sorted,
    pub(super) families: &'a HashMap<String, Arc<Family>>,
    pub(super) directory: &'a Path,
    pub(super) name: &'a N,
}

impl<N: Fn(&SegmentKey) -> String + Sync> Assembly<'_, N> {
    /// Writes a segment for each section. On an error those that were written are removed.
    pub(super) fn write_all(
        &self,
        sections: BTreeSet<Section>,
    ) -> Result<Vec<ImportedSegment>, ImportError> {
        let threads = self.options.threads.min(sections.len());
        let queue = Mutex::new(sections.into_iter());
        let results: Vec<_> = std::thread::scope(|scope| {
            let started: Vec<_> =
                (0..threads).map(|_| scope.spawn(|| self.write_from(&queue))).collect();
            let joined = started.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.collect()
        });
        let mut segments = Vec::new();
        let mut error = None;
        for (written, result) in results {
            segments.extend(written);
            error = error.or(result.err());
        }
        if let Some(error) = error {
            for segment in segments {
                // The error that ended the import says more than one that follows from it.
                let _ = segment.paths.remove();
            }
            return Err(error);
        }
        segments.sort_by_key(|segment| segment.key);
        Ok(segments)
    }

    /// Writes segments until there are none left to write.
    fn write_from(
        &self,
        queue: &Mutex<impl Iterator<Item = Section>>,
    ) -> (Vec<ImportedSegment>, Result<(), ImportError>) {
        let mut written = Vec::new();
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(section) = next else { return (written, Ok(())) };
            match self.write(section) {
                Ok(segment) => written.push(segment),
                Err(error) => {
                    // The others stop after what they have in hand.
                    queue.lock().unwrap_or_else(PoisonError::into_inner).by_ref().for_each(drop);
                    return (written, Err(error));
                }
            }
        }
    }

    fn write(&self, section: Section) -> Result<ImportedSegment, ImportError> {
        let (block, shard) = section;
        let (block_start, last) = bounds(block, self.options.block_ms);
        let block_end = last.saturating_add(1);
        let key = SegmentKey { block_start, block_end, shard, shards: self.options.shards };
        let id = (self.name)(&key);
        let mut writer = LocalWriter::new(self.directory, &id, &self.options.write)?;
        let mut readers: Vec<_> =
            self.sorted.runs.iter().filter_map(|run| run.read(section)).collect();
        let (mut ts, mut values) = (Vec::new(), Vec::new());
        while let Some(series) = self.first_series(&mut readers)? {
            ts.clear();
            values.clear();
            // Oldest run first, so that of equal timestamps the last one read comes last.
            for reader in &mut readers {
                if reader.peek().map_err(ImportError::Temporary)? == Some(series) {
                    reader.take(&mut ts, &mut values).map_err(ImportError::Temporary)?;
                }
            }
            tidy(&mut ts, &mut values);
            let labels = &self.sorted.labels[series as usize];
            writer.series(labels, &self.families[labels.metric()], &ts, &values)?;
        }
        let (paths, stats) = writer.finish()?;
        Ok(ImportedSegment { key, id, paths, stats })
    }

    /// The first series, in the order of the segment, that some run still has.
    fn first_series(&self, readers: &mut [SectionReader<'_>]) -> Result<Option<u32>, ImportError> {
        let mut first = None;
        for reader in readers {
            if let Some(series) = reader.peek().map_err(ImportError::Temporary)? {
                let rank = self.sorted.ranks[series as usize];
                first = first.min(Some((rank, series))).or(Some((rank, series)));
            }
        }
        Ok(first.map(|(_, series)| series))
    }
}
