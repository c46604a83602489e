//! Traces, sent to an OpenTelemetry collector over OTLP: every span of this process' own code at
//! level info and above. Spans wait in a bounded queue that a thread of its own empties; when the
//! collector is slow or gone, spans are lost and nothing waits for them.

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::Uri;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{ExporterBuildError, SpanExporter as OtlpExporter, WithTonicConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracerProvider, SpanData, SpanExporter,
};
use tonic::transport::Endpoint;
use tracing::{Level, Metadata, Subscriber, info, warn};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::registry::LookupSpan;

use crate::connect::Connector;
use crate::knobs;
use crate::tls::{ClientTls, ClientTlsConfig, TlsError};

/// What the targets of our own spans begin with.
const OWN: &str = "tributary";

/// Spans that wait to be sent. A full queue loses what comes.
const QUEUE: usize = 8_192;

/// Spans sent at once.
const BATCH: usize = 512;

/// Spans wait for others this long.
const DELAY: Duration = Duration::from_secs(1);

/// The collector must take a batch, and be connected to, this soon.
const PATIENCE: Duration = Duration::from_secs(5);

/// At the end, what still waits has this long to be sent.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

knobs! {
    /// Traces.
    TracesConfig {
        /// Where spans are sent over OTLP, as http://host:4317, or https:// (default: empty, and
        /// none are made).
        otlp_endpoint: String = String::new(),
        /// Authorities that the collector's certificate is checked by, as a PEM file (default: those
        /// that the system trusts).
        ca: Option<PathBuf> = None,
        /// The share of traces begun here that is recorded, 0 to 1; one that came with a request is
        /// recorded where its beginner said so (default 1). More: load on the collector, and some
        /// microseconds for each span.
        sample_ratio: f64 = 1.0,
        /// What this process is called in traces (default: tributary-worker or tributary-api).
        service_name: Option<String> = None,
    }
}

impl TracesConfig {
    /// Checks the values, as of the section `traces`.
    pub fn check(&self) -> Result<(), BadTraces> {
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            return Err(BadTraces::Ratio);
        }
        self.endpoint().map(|_| ())
    }

    /// Where spans are sent, and whether inside TLS; `None` where they are not.
    fn endpoint(&self) -> Result<Option<(Uri, bool)>, BadTraces> {
        if self.otlp_endpoint.is_empty() {
            return Ok(None);
        }
        let bad = || BadTraces::Endpoint(self.otlp_endpoint.clone());
        let uri: Uri = self.otlp_endpoint.parse().map_err(|_| bad())?;
        let encrypted = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(bad()),
        };
        if uri.host().is_none() || uri.port_u16().is_none() || uri.path().len() > 1 {
            return Err(bad());
        }
        Ok(Some((uri, encrypted)))
    }
}

/// Knobs of traces that make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTraces {
    /// The collector's address is none.
    #[error("traces.otlp_endpoint must be http://host:port or https://host:port, not {0:?}")]
    Endpoint(String),
    /// The share is none.
    #[error("traces.sample_ratio must be from 0 to 1")]
    Ratio,
}

/// Why there are no traces.
#[derive(Debug, thiserror::Error)]
pub enum TracesError {
    /// The configuration makes no sense.
    #[error(transparent)]
    Config(#[from] BadTraces),
    /// The authorities can't be used.
    #[error("traces: {0}")]
    Tls(#[from] TlsError),
    /// The library refuses what it was told.
    #[error("spans can't be exported")]
    Exporter(#[from] ExporterBuildError),
}

/// Who sends the spans.
#[derive(Clone, Debug)]
pub struct Origin<'a> {
    /// What it is called where the configuration says nothing: `tributary-worker`.
    pub service: &'a str,
    /// Which of them: a worker's name.
    pub instance: &'a str,
    /// The build.
    pub version: &'a str,
}

/// The way to the collector.
#[derive(Debug)]
pub struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Makes the way, where one is configured. The collector need not be there. To be called in a
    /// tokio runtime, which makes the connections.
    pub fn start(config: &TracesConfig, origin: &Origin<'_>) -> Result<Option<Self>, TracesError> {
        config.check()?;
        let Some((uri, encrypted)) = config.endpoint()? else { return Ok(None) };
        let tls = ClientTls::load(&ClientTlsConfig {
            enabled: encrypted,
            ca: config.ca.clone(),
            ..ClientTlsConfig::default()
        })?;
        let channel = Endpoint::from(uri)
            .timeout(PATIENCE)
            .connect_with_connector_lazy(Connector::new(tls.as_ref(), PATIENCE));
        let exporter = OtlpExporter::builder().with_tonic().with_channel(channel).build()?;
        let batches = BatchConfigBuilder::default()
            .with_max_queue_size(QUEUE)
            .with_max_export_batch_size(BATCH)
            .with_scheduled_delay(DELAY)
            .build();
        let exporter = Told { exporter, failing: AtomicBool::new(false) };
        let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batches).build();
        let service = config.service_name.clone().unwrap_or_else(|| origin.service.into());
        let resource = Resource::builder_empty()
            .with_service_name(service)
            .with_attribute(KeyValue::new("service.instance.id", origin.instance.to_owned()))
            .with_attribute(KeyValue::new("service.version", origin.version.to_owned()))
            .build();
        let ratio = Sampler::TraceIdRatioBased(config.sample_ratio);
        let provider = SdkTracerProvider::builder()
            .with_span_processor(processor)
            .with_sampler(Sampler::ParentBased(Box::new(ratio)))
            .with_resource(resource)
            .build();
        Ok(Some(Self { provider }))
    }

    /// What makes spans of ours into spans of a trace.
    pub(crate) fn layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let tracer = self.provider.tracer(OWN);
        let ours = |metadata: &Metadata<'_>| {
            metadata.is_span()
                && metadata.target().starts_with(OWN)
                && *metadata.level() <= Level::INFO
        };
        // Without the hint every line of every library would be looked at.
        let ours = filter_fn(ours).with_max_level_hint(Level::INFO);
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_location(false)
            .with_threads(false)
            .with_tracked_inactivity(false)
            .with_filter(ours)
    }

    /// Sends what waits to be sent, for as long as that may take at the end of a process.
    pub async fn finish(self) {
        let finishing = tokio::task::spawn_blocking(move || {
            if let Err(error) = self.provider.shutdown_with_timeout(LAST_PATIENCE) {
                warn!(%error, "the last spans were not sent");
            }
        });
        // The thread that sends them may still wait for the collector, and ends with the process.
        let _ = tokio::time::timeout(LAST_PATIENCE * 2, finishing).await;
    }
}

/// An exporter that tells when spans begin to be lost, and when they are not any more.
struct Told {
    exporter: OtlpExporter,
    failing: AtomicBool,
}

impl SpanExporter for Told {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let exported = self.exporter.export(batch).await;
        let failed = exported.is_err();
        if self.failing.swap(failed, Ordering::Relaxed) != failed {
            match &exported {
                Ok(()) => info!("spans are sent again"),
                Err(error) => warn!(%error, "spans are lost: the collector does not take them"),
            }
        }
        exported
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").field("failing", &self.failing).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_none_is_refused_and_an_empty_one_means_none() {
        let config = |endpoint: &str| TracesConfig {
            otlp_endpoint: endpoint.into(),
            ..TracesConfig::default()
        };
        for good in ["", "http://collector:4317", "https://[::1]:4317", "http://10.0.0.1:1/"] {
            assert_eq!(config(good).check(), Ok(()), "{good}");
        }
        for bad in ["collector:4317", "http://collector", "grpc://c:1", "http://c:1/v1/traces"] {
            assert_eq!(config(bad).check(), Err(BadTraces::Endpoint(bad.into())));
        }
        let ratio = TracesConfig { sample_ratio: 1.5, ..TracesConfig::default() };
        assert_eq!(ratio.check(), Err(BadTraces::Ratio));
        let ratio = TracesConfig { sample_ratio: f64::NAN, ..TracesConfig::default() };
        assert_eq!(ratio.check(), Err(BadTraces::Ratio));
    }
}
