//! A leaf over segments that somebody has opened.

use tributary_promql::eval::EvalError;
use tributary_promql::leaf::{LeafPart, LeafRun};
use tributary_promql::window::Samples;
use tributary_segment::{
    BadPattern, ByteSource, CellBuffers, CellSelection, Matcher, Segment, SegmentError, TimeRange,
};

use crate::spec::Work;

/// Nobody wants the outcome any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
pub struct Cancelled;

/// Why a leaf came to no end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Nobody wants the outcome any more.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// A limit was reached, or the leaf makes no sense over this data.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// A segment can't be read.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// A regular expression is too much.
    #[error(transparent)]
    Pattern(#[from] BadPattern),
}

impl Work {
    /// Runs the leaf over segments ordered from the oldest to the newest. `is_cancelled` is asked
    /// before every series, and within milliseconds where the windows of one take long. Of an
    /// inquiry it is [`Work::inquire`] that needs less.
    pub fn run<S: ByteSource>(
        &self,
        segments: &[&Segment<S>],
        buffers: &mut CellBuffers,
        is_cancelled: impl Fn() -> bool,
    ) -> Result<LeafPart, RunError> {
        if let Some(inquiry) = &self.inquiry {
            let indexes: Vec<_> = segments.iter().map(|segment| &**segment.index()).collect();
            return self.inquire(inquiry, &indexes, is_cancelled);
        }
        let matchers = self.leaf.matchers.iter().map(Matcher::try_from);
        let matchers = matchers.collect::<Result<Vec<_>, _>>()?;
        let mut run = LeafRun::new(&self.leaf, self.span, self.place, &self.limits);
        let Some(range) = self.range() else { return Ok(run.finish()) };
        let selection = CellSelection::new(segments, &matchers, range);
        let mut scan = selection.scan(buffers);
        loop {
            if is_cancelled() {
                return Err(Cancelled.into());
            }
            let Some(series) = scan.next()? else { break };
            let labels = segments[series.segment].index().labels(series.samples.series);
            let samples = Samples { ts: series.samples.ts, values: series.samples.values };
            if !run.push_unless(&labels, samples, &is_cancelled)? {
                return Err(Cancelled.into());
            }
        }
        Ok(run.finish())
    }

    /// The instants whose samples are needed: those of the windows within the span.
    pub fn range(&self) -> Option<TimeRange> {
        if self.leaf.windows.count == 0 {
            return None;
        }
        let (after, up_to) = self.leaf.needs();
        let start = after.saturating_add(1).max(self.span.from);
        let end = up_to.min(self.span.to.saturating_sub(1));
        (start <= end).then_some(TimeRange { start, end })
    }
}
