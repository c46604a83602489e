//! The queries under way and those of a moment ago, and what became of their work. Whoever shows a key
//! sees those of its tenant alone.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use core_workcoord::coordinator::QueryView;
use core_workcoord::id::{QueryId, TenantId};
use serde::Serialize;

use super::{Monitor, leaving, shown};
use crate::access::Access;
use crate::coordination::Brief;
use crate::http::{Failure, Kind};

/// Whose queries are shown: one tenant's, or everybody's.
#[derive(Clone)]
pub(super) struct Sight(Option<TenantId>);

impl Sight {
    fn has(&self, tenant: &TenantId) -> bool {
        self.0.as_ref().is_none_or(|seen| seen == tenant)
    }
}

/// Lets in whoever has a key, where there are keys. Looking costs nobody's rate.
pub(super) async fn admit(
    State(access): State<Access>,
    headers: HeaderMap,
    mut request: Request,
    next: Next,
) -> Response {
    match access.may_see(&headers) {
        Ok(tenant) => {
            request.extensions_mut().insert(Sight(tenant));
            next.run(request).await
        }
        Err(denied) => Failure::from(denied).into_response(),
    }
}

/// Queries under way, and the latest of all.
pub(super) async fn all(
    State(monitor): State<Arc<dyn Monitor>>,
    Extension(sight): Extension<Sight>,
) -> Response {
    let (Some(view), Some(mut recent)) = (monitor.look().await, monitor.recent().await) else {
        return leaving();
    };
    let queries = view.snapshot.queries.iter().filter(|query| sight.has(&query.tenant));
    recent.retain(|query| sight.has(&query.tenant));
    shown(&Queries { queries: queries.map(Query::from).collect(), recent })
}

/// What became of one query's work.
pub(super) async fn one(
    State(monitor): State<Arc<dyn Monitor>>,
    Extension(sight): Extension<Sight>,
    Path(query): Path<String>,
) -> Response {
    let Ok(query) = query.parse::<QueryId>() else {
        return Failure::bad_data("a query has a name of 32 lower-case hex digits").into_response();
    };
    match monitor.recall(query).await {
        Some(Some(record)) if sight.has(&record.brief.tenant) => shown(&record),
        Some(_) => {
            let message = "no query of this name is remembered here";
            Failure::new(Kind::NotFound, message).into_response()
        }
        None => leaving(),
    }
}

#[derive(Serialize)]
struct Queries {
    queries: Vec<Query>,
    recent: Vec<Brief>,
}

/// A query under way.
#[derive(Serialize)]
struct Query {
    query_id: String,
    tenant: String,
    age_s: f64,
    total: u32,
    queued: u32,
    running: u32,
    done: u32,
    delivered: u32,
}

impl From<&QueryView> for Query {
    fn from(view: &QueryView) -> Self {
        Self {
            query_id: view.query.to_string(),
            tenant: view.tenant.to_string(),
            age_s: view.age.as_secs_f64(),
            total: view.total,
            queued: view.queued,
            running: view.running,
            done: view.done,
            delivered: view.delivered,
        }
    }
}
