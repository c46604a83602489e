//! The W3C trace context that comes with a request or with work: read strictly, and what is none is
//! passed over. Spans of this process continue such a trace, and pass theirs on.

use std::fmt;

use opentelemetry::trace::{SpanContext, SpanId, Status, TraceContextExt, TraceFlags, TraceState};
use opentelemetry::{Context, trace};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

/// A trace context, version 00 or later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    trace_id: u128,
    parent_id: u64,
    sampled: bool,
}

/// A trace's id as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId(pub u128);

impl TraceParent {
    /// Reads the text of a `traceparent`; `None` where it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let version = hex(parts.next()?, 2)?;
        let trace_id = hex(parts.next()?, 32)?;
        let parent_id = hex(parts.next()?, 16)?;
        let flags = hex(parts.next()?, 2)?;
        // Version 00 has four parts; later ones may add some. 255 is forbidden.
        let well_formed = version != 0xff && (version != 0 || parts.next().is_none());
        let parent_id = u64::try_from(parent_id).ok()?;
        (well_formed && trace_id != 0 && parent_id != 0).then_some(Self {
            trace_id,
            parent_id,
            sampled: flags & 1 == 1,
        })
    }

    /// The context that what this span asks of others is a part of; `None` where no traces are made.
    pub fn of(span: &Span) -> Option<Self> {
        let context = span.context();
        let context = context.span().span_context().clone();
        context.is_valid().then(|| Self {
            trace_id: u128::from_be_bytes(context.trace_id().to_bytes()),
            parent_id: u64::from_be_bytes(context.span_id().to_bytes()),
            sampled: context.is_sampled(),
        })
    }

    /// Makes a span that was not entered yet a part of this trace. Without traces, nothing.
    pub fn continue_in(self, span: &Span) {
        let flags = if self.sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
        let context = SpanContext::new(
            trace::TraceId::from_bytes(self.trace_id.to_be_bytes()),
            SpanId::from_bytes(self.parent_id.to_be_bytes()),
            flags,
            true,
            TraceState::NONE,
        );
        // Refused where there are no traces, or where this span is not recorded.
        drop(span.set_parent(Context::new().with_remote_span_context(context)));
    }

    /// The trace.
    pub fn trace_id(self) -> TraceId {
        TraceId(self.trace_id)
    }

    /// The span that what is asked is a part of.
    pub fn parent_id(self) -> u64 {
        self.parent_id
    }

    /// Whether whoever began the trace records it.
    pub fn is_sampled(self) -> bool {
        self.sampled
    }
}

impl fmt::Display for TraceParent {
    /// As the header is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace_id, parent_id, sampled } = self;
        write!(f, "00-{trace_id:032x}-{parent_id:016x}-{:02x}", u8::from(*sampled))
    }
}

/// Marks a span as failed, for whoever looks at its trace.
pub fn fail(span: &Span, reason: &str) {
    span.set_status(Status::error(reason.to_owned()));
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A number of so many lower-case hex digits.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let lower_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    if text.len() != digits || !text.bytes().all(lower_hex) {
        return None;
    }
    u128::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_read_and_anything_else_is_none() {
        let text = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let trace = TraceParent::parse(text).unwrap();
        assert_eq!(trace.trace_id().to_string(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((trace.parent_id(), trace.is_sampled()), (0xb7ad_6b71_6920_3331, true));
        assert_eq!(trace.to_string(), text);
        assert!(TraceParent::parse(&format!("cc{}-what-ever", &text[2..])).is_some());
        for bad in [
            "",
            "00",
            &text[1..],
            &text.to_uppercase(),
            &format!("ff{}", &text[2..]),
            &format!("{text}-more"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        ] {
            assert_eq!(TraceParent::parse(bad), None, "{bad}");
        }
    }
}
