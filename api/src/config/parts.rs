//! The configuration as each part of an API node needs it.

use std::time::Duration;

use core_workcoord::config::CoordinatorConfig;
use core_workcoord::id::Endpoint;
use tributary_artifact_store::FetchConfig as FetcherConfig;
use tributary_catalog::CatalogConfig as CatalogKnobs;
use tributary_process::config::Span;
use tributary_promql::{EvalLimits, EvalOptions, Features, Options};

use super::{AccessConfig, ApiConfig, BadApiConfig};
use crate::access::TenantLimits;
use crate::cells::CellSize;
use crate::discovery::{Pace, Place};
use crate::http::{Origins, Settings};
use crate::stream::StreamTerms;

impl ApiConfig {
    /// Where workers are found.
    pub fn places(&self) -> Result<Vec<Place>, BadApiConfig> {
        let mut places = Vec::new();
        let mut fixed = Vec::new();
        for text in &self.workers {
            let bad = |source| BadApiConfig::Worker { text: text.clone(), source };
            let endpoint = Endpoint::new(text).map_err(bad)?;
            if text.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
                return Err(BadApiConfig::WorkerPort(text.clone()));
            }
            fixed.push(endpoint);
        }
        if !fixed.is_empty() {
            places.push(Place::Fixed(fixed));
        }
        for text in &self.discovery {
            places.push(text.parse()?);
        }
        Ok(places)
    }

    /// The part that the coordinator decides by.
    pub fn coordinator(&self) -> CoordinatorConfig {
        let (control, schedule, fetch) = (&self.control, &self.schedule, &self.fetch);
        CoordinatorConfig {
            heartbeat_interval: control.heartbeat_interval.get(),
            heartbeat_timeout: control.heartbeat_timeout.get(),
            dial_timeout: control.dial_timeout.get(),
            welcome_timeout: control.welcome_timeout.get(),
            answer_timeout: control.answer_timeout.get(),
            backoff_base: control.backoff_base.get(),
            backoff_max: control.backoff_max.get(),
            worker_queue_ahead: schedule.worker_queue_ahead,
            query_window: schedule.query_window,
            max_queries: schedule.max_queries,
            max_tenant_queries: schedule.max_tenant_queries,
            max_queued_items: schedule.max_queued_items,
            max_query_items: schedule.max_query_items,
            max_attempts: schedule.max_attempts,
            poison_workers: schedule.poison_workers,
            max_fetches: fetch.max_fetches,
            max_fetch_bytes: fetch.max_bytes,
            max_artifact_bytes: fetch.max_artifact_bytes,
            hedge_factor: schedule.hedge_factor,
            hedge_floor: schedule.hedge_floor.get(),
            hedge_budget_per_mille: schedule.hedge_budget_per_mille,
            ..CoordinatorConfig::default()
        }
    }

    /// How streams are opened.
    pub fn stream(&self) -> StreamTerms {
        StreamTerms {
            open_timeout: self.control.dial_timeout.get(),
            send_queue: self.control.send_queue as usize,
        }
    }

    /// How artifacts are fetched.
    pub fn fetcher(&self) -> FetcherConfig {
        FetcherConfig {
            artifact_max_bytes: self.fetch.max_artifact_bytes,
            connect_timeout: self.fetch.connect_timeout.get(),
            read_timeout: self.fetch.read_timeout.get(),
            attempts: self.fetch.attempts,
            ..FetcherConfig::default()
        }
    }

    /// How large work items are.
    pub fn cells(&self) -> CellSize {
        CellSize {
            max_samples: self.work.max_samples,
            max_segments: self.work.max_segments as usize,
            align_ms: millis(self.work.align),
        }
    }

    /// How the catalog is read.
    pub fn catalog_knobs(&self) -> CatalogKnobs {
        CatalogKnobs {
            poll_interval: self.catalog_reads.poll_interval.get(),
            backoff_max: self.catalog_reads.backoff_max.get(),
            ..CatalogKnobs::default()
        }
    }

    /// How often sources of workers are asked.
    pub fn pace(&self) -> Pace {
        Pace {
            dns_interval: self.discover.dns_interval.get(),
            ecs_interval: self.discover.ecs_interval.get(),
            ..Pace::default()
        }
    }

    /// How texts are read.
    pub fn parsing(&self) -> Options {
        let features = Features {
            experimental_functions: self.has_feature("promql-experimental-functions"),
            duration_expressions: self.has_feature("promql-duration-expr"),
            extended_range_selectors: self.has_feature("promql-extended-range-selectors"),
            fill_modifiers: self.has_feature("promql-binop-fill-modifiers"),
        };
        Options { features, ..Options::default() }
    }

    /// How queries are evaluated.
    pub fn evaluation(&self) -> EvalOptions {
        let limits = &self.limits;
        EvalOptions {
            lookback: millis(self.query.lookback),
            subquery_step: millis(self.query.subquery_step),
            delayed_name_removal: self.has_feature("promql-delayed-name-removal"),
            // Only by its own name: it changes what labels mean.
            type_and_unit_labels: self.query.features.iter().any(|it| it == "type-and-unit-labels"),
            pushdown: true,
            limits: EvalLimits {
                max_series: limits.series,
                max_samples: limits.samples,
                // Prometheus counts intervals, of which there is one less than points.
                max_steps: limits.steps.saturating_add(1),
                max_subquery_steps: limits.subquery_steps,
                max_values: limits.values,
                max_window_samples: limits.window_samples,
                ..EvalLimits::default()
            },
        }
    }

    /// How clients are spoken with.
    pub fn http_settings(&self) -> Settings {
        let any = self.access.cors_origins.iter().any(|origin| origin == "*");
        Settings {
            query_timeout: self.query.timeout.get(),
            inquiry_timeout: self.query.inquiry_timeout.get(),
            max_points: self.limits.steps,
            parsing: self.parsing(),
            evaluation: self.evaluation(),
            max_body_bytes: usize::try_from(self.limits.body_bytes).unwrap_or(usize::MAX),
            heartbeat: self.query.heartbeat.get(),
            cors: if any { Origins::Any } else { Origins::Only(self.access.cors_origins.clone()) },
            ..Settings::default()
        }
    }

    /// How much each tenant may ask.
    pub fn tenant_limits(&self) -> TenantLimits {
        let AccessConfig { requests_per_second, burst, concurrency, .. } = &self.access;
        TenantLimits {
            requests_per_second: Some(*requests_per_second).filter(|rate| *rate > 0.0),
            burst: *burst,
            running: *concurrency,
        }
    }

    /// How many calculations run at once: what is configured, or one for each core.
    pub fn cores(&self) -> usize {
        match self.query.cores {
            0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            cores => cores as usize,
        }
    }

    /// The longest that queries have when the node leaves.
    pub fn patience(&self) -> Duration {
        self.shutdown.timeout.get()
    }

    fn has_feature(&self, name: &str) -> bool {
        self.query.features.iter().any(|feature| feature == name || feature == "all")
    }
}

fn millis(span: Span) -> i64 {
    i64::try_from(span.get().as_millis()).unwrap_or(i64::MAX / 16)
}
