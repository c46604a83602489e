//! Puts a configuration together: the file, over it the environment, over it the flags. What is
//! not known is an error that says where it stands. Reading files is left to the caller.

use std::error::Error;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::knob::{Kind, Section, Setting};

/// Everything that can be configured of one kind of process.
pub trait Configured: Section + Default + Serialize + DeserializeOwned {
    /// What is configured, for the head of a printed file: `a worker`.
    const WHAT: &'static str;
    /// What the names of environment variables begin with: `TRIBUTARY_WORKER_`.
    const VARIABLE_PREFIX: &'static str;
    /// Why a configuration makes no sense.
    type Bad: Error + 'static;

    /// Checks everything that can be checked without looking at the machine.
    fn check(&self) -> Result<(), Self::Bad>;
}

/// Where the settings come from. Later ones win.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The file, as its name and its text.
    pub file: Option<(String, String)>,
    /// The environment; variables with other names are passed over.
    pub variables: Vec<(String, String)>,
    /// Flags, as the knob's key, the flag's name for complaints, and the value.
    pub flags: Vec<(String, String, String)>,
}

/// Why there is no configuration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError<B: Error> {
    /// A setting can't be read.
    #[error("{place}: {reason}")]
    Unreadable {
        /// The file, the variable or the flag.
        place: String,
        /// What is wrong, with the line where there are lines.
        reason: String,
    },
    /// A setting has a name that no knob has.
    #[error("{place}: there is no such setting{}", meant(.like))]
    Unknown {
        /// The variable or the flag.
        place: String,
        /// What may have been meant.
        like: Option<String>,
    },
    /// The settings are read, and together they make no sense.
    #[error(transparent)]
    Senseless(B),
}

fn meant(like: &Option<String>) -> String {
    like.as_ref().map_or_else(String::new, |like| format!("; is {like} meant?"))
}

/// Reads all settings and checks what they come to.
pub fn load<C: Configured>(settings: &Settings) -> Result<C, ConfigError<C::Bad>> {
    let mut all = Table::new();
    if let Some((name, text)) = &settings.file {
        let unreadable = |error: toml::de::Error| ConfigError::Unreadable {
            place: name.clone(),
            reason: error.to_string().trim_end().to_owned(),
        };
        // Read as a whole for its complaints, which name lines; then kept as a table to lay over.
        toml::from_str::<C>(text).map_err(unreadable)?;
        all = toml::from_str(text).map_err(unreadable)?;
    }
    for (variable, text) in &settings.variables {
        let Some(name) = variable.strip_prefix(C::VARIABLE_PREFIX) else { continue };
        if is_service_link(name) {
            continue;
        }
        let name_of = |setting: &Setting| setting.variable(C::VARIABLE_PREFIX);
        let Some(setting) = C::settings().find(|setting| name_of(setting) == *variable) else {
            let like = nearest(variable, C::settings().map(|setting| name_of(&setting)));
            return Err(ConfigError::Unknown { place: variable.clone(), like });
        };
        set::<C>(&mut all, setting, variable, text)?;
    }
    for (key, flag, text) in &settings.flags {
        let Some(setting) = C::settings().find(|setting| setting.key() == *key) else {
            let like = nearest(key, C::settings().map(|setting| setting.key()));
            return Err(ConfigError::Unknown { place: flag.clone(), like });
        };
        set::<C>(&mut all, setting, flag, text)?;
    }
    let config: C = all.try_into().map_err(|error| ConfigError::Unreadable {
        place: "the configuration".into(),
        reason: error.to_string(),
    })?;
    config.check().map_err(ConfigError::Senseless)?;
    Ok(config)
}

/// Kubernetes describes a service named `tributary-worker` to every pod beside it in variables that
/// begin like a worker's.
fn is_service_link(name: &str) -> bool {
    name == "PORT" || name.starts_with("PORT_") || name.starts_with("SERVICE_")
}

fn set<C: Configured>(
    all: &mut Table,
    setting: Setting,
    place: &str,
    text: &str,
) -> Result<(), ConfigError<C::Bad>> {
    let unreadable = |reason: String| ConfigError::Unreadable { place: place.to_owned(), reason };
    let value = value_of(setting.knob.kind, text).map_err(unreadable)?;
    // Alone first, so that a value that can't be is blamed on its own place.
    let mut alone = Table::new();
    insert(&mut alone, setting, value.clone());
    if let Err(error) = alone.try_into::<C>() {
        return Err(unreadable(error.message().to_owned()));
    }
    insert(all, setting, value);
    Ok(())
}

/// What a text means, or what is wrong with it.
fn value_of(kind: Kind, text: &str) -> Result<Value, String> {
    match kind {
        Kind::Text => Ok(Value::String(text.into())),
        Kind::Number => match text.parse() {
            Ok(number) => Ok(Value::Integer(number)),
            Err(_) => Err(format!("{text:?} is no whole number")),
        },
        Kind::Decimal => match text.parse() {
            Ok(number) => Ok(Value::Float(number)),
            Err(_) => Err(format!("{text:?} is no number")),
        },
        Kind::Flag => match text.parse() {
            Ok(flag) => Ok(Value::Boolean(flag)),
            Err(_) => Err(format!("{text:?} is neither true nor false")),
        },
        Kind::List => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            Ok(Value::Array(parts.map(|part| Value::String(part.into())).collect()))
        }
    }
}

fn insert(all: &mut Table, setting: Setting, value: Value) {
    let section = match setting.section {
        "" => all,
        section => {
            let empty = || Value::Table(Table::new());
            let table = all.entry(section).or_insert_with(empty).as_table_mut();
            table.expect("a file whose sections are no tables was refused")
        }
    };
    section.insert(setting.knob.name.into(), value);
}

/// The known name that shares the longest end with an unknown one, if that is more than chance.
fn nearest(unknown: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let shared = |known: &String| {
        let pairs = known.bytes().rev().zip(unknown.bytes().rev());
        pairs.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count()
    };
    let best = names.max_by_key(shared)?;
    (shared(&best) >= 4).then_some(best)
}

#[cfg(test)]
mod tests;
