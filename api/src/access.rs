//! Who asks, and how much they may ask at once: keys become tenants, tenants have limits. Knows
//! headers, nothing else of HTTP; keys are kept as hashes and never logged.
//!
//! Where there are keys, each request shows one and asks for its tenant's data. Where there are
//! none, whoever reaches the port may name any tenant in `X-Scope-OrgID`.

mod key_file;
mod limits;
mod shown;

use std::path::PathBuf;
use std::sync::Arc;

use axum::http::HeaderMap;
use core_workcoord::id::{BadId, TenantId};
use tokio::task::JoinSet;

pub use key_file::{KeyFileError, KeyLine, NewKey, new_key};
pub use limits::{Busy, Permit, TenantLimits};

use key_file::KeyFile;
use limits::Doorkeeper;

/// The tenant of requests that name none.
pub const DEFAULT_TENANT: &str = "default";

/// The header that names a tenant where there are no keys.
pub const TENANT_HEADER: &str = "x-scope-orgid";

/// Who may ask, and how much. Cheap to clone; clones share their counts.
#[derive(Clone, Debug)]
pub struct Access {
    keys: Option<Arc<Watched>>,
    door: Arc<Doorkeeper>,
}

/// A file of keys and the task that looks after it, which ends with it.
#[derive(Debug)]
struct Watched {
    file: Arc<KeyFile>,
    _watch: JoinSet<()>,
}

/// Why somebody is not let in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// There are keys, and none was shown.
    #[error("an API key is required")]
    NoKey,
    /// The key that was shown is none of ours.
    #[error("the API key is not valid")]
    WrongKey,
    /// The tenant has a name that no tenant can have.
    #[error("invalid X-Scope-OrgID: {0}")]
    BadTenant(BadId),
}

impl Access {
    /// Without keys: requests name their tenant themselves.
    pub fn without_keys(limits: TenantLimits) -> Self {
        Self { keys: None, door: Arc::new(Doorkeeper::new(limits)) }
    }

    /// With the keys of a file, which is read again when it changes. A file that can't be read, or
    /// says something odd, is an error now and a warning later: then the keys from before stay.
    ///
    /// Must be called within a tokio runtime.
    pub fn with_key_file(path: PathBuf, limits: TenantLimits) -> Result<Self, KeyFileError> {
        let file = Arc::new(KeyFile::read(path)?);
        let mut watch = JoinSet::new();
        watch.spawn(Arc::clone(&file).watch());
        let keys = Some(Arc::new(Watched { file, _watch: watch }));
        Ok(Self { keys, door: Arc::new(Doorkeeper::new(limits)) })
    }

    /// Whose data a request asks for.
    pub fn identify(&self, headers: &HeaderMap) -> Result<TenantId, Denied> {
        let Some(keys) = &self.keys else { return named_tenant(headers) };
        let key = shown::key(headers).ok_or(Denied::NoKey)?;
        keys.file.tenant_of(&key).ok_or(Denied::WrongKey)
    }

    /// Whose queries a request may look at: those of its key's tenant; where there are no keys, of
    /// the tenant it names, or everybody's.
    pub fn may_see(&self, headers: &HeaderMap) -> Result<Option<TenantId>, Denied> {
        let is_named = headers.get(TENANT_HEADER).is_some_and(|name| !name.is_empty());
        if self.keys.is_none() && !is_named {
            return Ok(None);
        }
        self.identify(headers).map(Some)
    }

    /// Lets a request of a tenant in, for as long as the permit is held.
    pub fn admit(&self, tenant: &TenantId) -> Result<Permit, Busy> {
        Doorkeeper::admit(&self.door, tenant)
    }
}

fn named_tenant(headers: &HeaderMap) -> Result<TenantId, Denied> {
    let named = headers.get(TENANT_HEADER).map(|value| value.to_str().unwrap_or("\u{fffd}"));
    let name = named.filter(|name| !name.is_empty()).unwrap_or(DEFAULT_TENANT);
    TenantId::new(name).map_err(Denied::BadTenant)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::Duration;

    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())])
    }

    fn tenant(name: &str) -> TenantId {
        TenantId::new(name).unwrap()
    }

    #[test]
    fn without_keys_requests_name_their_tenant() {
        let access = Access::without_keys(TenantLimits::default());
        assert_eq!(access.identify(&HeaderMap::new()), Ok(tenant("default")));
        assert_eq!(access.identify(&headers("x-scope-orgid", "acme")), Ok(tenant("acme")));
        assert_eq!(access.may_see(&HeaderMap::new()), Ok(None));
        assert_eq!(access.may_see(&headers("x-scope-orgid", "acme")), Ok(Some(tenant("acme"))));
        let denied = access.identify(&headers("x-scope-orgid", "a/b")).unwrap_err();
        assert!(denied.to_string().contains("'/'"), "{denied}");
    }

    #[tokio::test(start_paused = true)]
    async fn keys_become_tenants_and_a_changed_file_counts_soon() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let (one, two) = (
            new_key(&tenant("acme"), "grafana").unwrap(),
            new_key(&tenant("other"), "curl").unwrap(),
        );
        fs::write(&path, format!("# keys\n\n{}\n", one.line)).unwrap();
        let access = Access::with_key_file(path.clone(), TenantLimits::default()).unwrap();
        let bearer = |key: &NewKey| headers("authorization", &format!("Bearer {}", key.key));
        assert_eq!(access.identify(&bearer(&one)), Ok(tenant("acme")));
        assert_eq!(access.identify(&bearer(&two)), Err(Denied::WrongKey));
        assert_eq!(access.may_see(&bearer(&one)), Ok(Some(tenant("acme"))));
        assert_eq!(access.may_see(&HeaderMap::new()), Err(Denied::NoKey));
        assert_eq!(access.identify(&headers("x-scope-orgid", "acme")), Err(Denied::NoKey));

        fs::write(&path, format!("{}\n", two.line)).unwrap();
        changes(&access, &bearer(&two), Ok(tenant("other"))).await;
        assert_eq!(access.identify(&bearer(&one)), Err(Denied::WrongKey));

        // A slip of the pen locks nobody out.
        fs::write(&path, "nonsense\n").unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(access.identify(&bearer(&two)), Ok(tenant("other")));
        fs::remove_file(&path).unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(access.identify(&bearer(&two)), Ok(tenant("other")));
    }

    /// Waits until the file was read again. Reading happens on another thread, so time that stands
    /// still does not wait for it.
    async fn changes(access: &Access, headers: &HeaderMap, wanted: Result<TenantId, Denied>) {
        for _ in 0..1_000 {
            if access.identify(headers) == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        panic!("the file was never read again");
    }
}
