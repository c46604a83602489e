//! The file of API keys: one JSON object a line, with the tenant and the SHA-256 of the key. Keys
//! are long and random, so a plain hash keeps them secret; whoever reads the file can't use it.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use std::{fmt, fs, io};

use core_workcoord::id::TenantId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};
use tokio::{task, time};
use tracing::{info, warn};

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// More keys make every request slower: each is compared.
const MOST_KEYS: u32 = 10_000;

/// What begins a key, so that people and scanners know one when they see it.
const PREFIX: &str = "trib_";

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyLine {
    /// Whose data the key opens.
    pub tenant: TenantId,
    /// What people call the key. Stands in logs.
    #[serde(default)]
    pub name: String,
    /// The SHA-256 of the key, in hex.
    pub sha256: String,
}

/// A key that was just made. The key itself is kept nowhere else.
#[derive(Clone)]
pub struct NewKey {
    /// What a client shows.
    pub key: String,
    /// The line for the file.
    pub line: String,
}

impl fmt::Debug for NewKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewKey").field("line", &self.line).finish_non_exhaustive()
    }
}

/// Why the file of keys is no good.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// It can't be read.
    #[error("the key file {path} can't be read: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// A line is not what a line should be. What stands there is not told: it may be a key.
    #[error("line {line} of the key file {path}: {why}")]
    Line {
        /// The file.
        path: String,
        /// Counted from one.
        line: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// There are more keys than is sensible.
    #[error("the key file {path} has more than {MOST_KEYS} keys")]
    TooMany {
        /// The file.
        path: String,
    },
    /// The system gives no randomness.
    #[error("no key can be drawn: {0}")]
    NoRandomness(String),
}

/// Makes a key of 256 random bits, and the line that lets it in.
pub fn new_key(tenant: &TenantId, name: &str) -> Result<NewKey, KeyFileError> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| KeyFileError::NoRandomness(error.to_string()))?;
    let key = format!("{PREFIX}{}", hex(&bytes));
    let sha256 = hex(&digest(&key));
    let line = KeyLine { tenant: tenant.clone(), name: name.to_owned(), sha256 };
    let line = serde_json::to_string(&line).expect("texts become JSON");
    Ok(NewKey { key, line })
}

/// A file of keys, as it was when it was last read and made sense.
pub(super) struct KeyFile {
    path: PathBuf,
    held: RwLock<Arc<Held>>,
}

#[derive(Default)]
struct Held {
    text: String,
    keys: Vec<([u8; 32], TenantId)>,
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl KeyFile {
    pub(super) fn read(path: PathBuf) -> Result<Self, KeyFileError> {
        let file = Self { path, held: RwLock::default() };
        file.read_again()?;
        Ok(file)
    }

    /// The tenant whose key this is. Takes as long for a wrong key as for a right one.
    pub(super) fn tenant_of(&self, shown: &str) -> Option<TenantId> {
        let shown = digest(shown);
        let held = self.held();
        let (mut found, mut place) = (Choice::from(0), 0_u32);
        for (index, (key, _)) in (0_u32..).zip(&held.keys) {
            let same = key.ct_eq(&shown);
            place.conditional_assign(&index, same);
            found |= same;
        }
        let place = usize::try_from(place).ok()?;
        bool::from(found).then(|| held.keys[place].1.clone())
    }

    /// Looks at the file now and then, for ever.
    pub(super) async fn watch(self: Arc<Self>) {
        let mut looks = time::interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(time::MissedTickBehavior::Delay);
        let mut last_trouble = None;
        loop {
            looks.tick().await;
            let this = Arc::clone(&self);
            let Ok(looked) = task::spawn_blocking(move || this.read_again()).await else { return };
            match looked {
                Ok(None) => last_trouble = None,
                Ok(Some(count)) => {
                    last_trouble = None;
                    info!(path = %self.path.display(), keys = count, "keys read again");
                }
                Err(error) => {
                    // Once for each kind of trouble, not every other second.
                    let trouble = error.to_string();
                    if last_trouble.as_ref() != Some(&trouble) {
                        warn!(%error, "keys not read again; those from before still count");
                    }
                    last_trouble = Some(trouble);
                }
            }
        }
    }

    /// Reads the file; says how many keys there are if it changed.
    fn read_again(&self) -> Result<Option<usize>, KeyFileError> {
        let path = || self.path.display().to_string();
        let text = fs::read_to_string(&self.path)
            .map_err(|source| KeyFileError::Unreadable { path: path(), source })?;
        if !text.is_empty() && text == self.held().text {
            return Ok(None);
        }
        let mut keys = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let odd = |why| KeyFileError::Line { path: path(), line: index + 1, why };
            let line: KeyLine = serde_json::from_str(line).map_err(|_| {
                odd(r#"a JSON object like {"tenant":"…","name":"…","sha256":"…"} is expected"#)
            })?;
            let sha256 =
                read_hex(&line.sha256).ok_or_else(|| odd("sha256 is not 64 hex digits"))?;
            keys.push((sha256, line.tenant));
        }
        if u32::try_from(keys.len()).is_ok_and(|count| count <= MOST_KEYS) {
            let count = keys.len();
            let held = Arc::new(Held { text, keys });
            *self.held.write().unwrap_or_else(PoisonError::into_inner) = held;
            return Ok(Some(count));
        }
        Err(KeyFileError::TooMany { path: path() })
    }

    fn held(&self) -> Arc<Held> {
        Arc::clone(&self.held.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(text: &str) -> Result<KeyFile, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        fs::write(&path, text).unwrap();
        KeyFile::read(path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_opens_its_tenant_alone_and_is_nowhere_in_the_file() {
        let tenants = ["a", "b", "c"].map(|name| TenantId::new(name).unwrap());
        let keys = tenants.each_ref().map(|tenant| new_key(tenant, "test").unwrap());
        let text: String = keys.iter().map(|key| format!("{}\n", key.line)).collect();
        let file = file_of(&text).unwrap();
        for (key, tenant) in keys.iter().zip(&tenants) {
            assert_eq!(file.tenant_of(&key.key).as_ref(), Some(tenant));
            assert_eq!(file.tenant_of(&format!("{}x", key.key)), None);
            assert!(!text.contains(&key.key) && !format!("{key:?}").contains(&key.key));
        }
        assert_eq!(file.tenant_of(""), None);
        assert_eq!(keys[0].key.len(), PREFIX.len() + 64);
    }

    #[test]
    fn an_odd_line_is_named_and_never_shown() {
        let why = file_of("\n# fine\n{\"tenant\":\"a\",\"key\":\"secret\"}\n").unwrap_err();
        assert!(why.contains("line 3 of the key file") && !why.contains("secret"), "{why}");
        let why = file_of("{\"tenant\":\"a\",\"sha256\":\"secret\"}").unwrap_err();
        assert!(why.ends_with("sha256 is not 64 hex digits"), "{why}");
        assert!(KeyFile::read("/nowhere/at/all".into()).is_err());
        assert!(file_of("").is_ok(), "nobody is let in, and that may be wanted");
    }
}
