//! Where the settings of a server command come from: its file, the environment, `--set`, its flags.
//! What they mean is left to `tributary_process`.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use tributary_process::config::{Configured, Settings};

use crate::cli::Problem;

/// A flag of its own for a knob: the knob's key, the flag, and what was given.
pub(crate) type Flag<'a> = (&'static str, &'static str, &'a Option<String>);

/// Gathers all of them. Later ones win: the file, the environment, `--set`, the other flags.
pub(crate) fn gather<C: Configured>(
    file: Option<&Path>,
    set: &[String],
    flags: &[Flag<'_>],
) -> Result<Settings, Problem> {
    let file = match file {
        Some(path) => match fs::read_to_string(path) {
            Ok(text) => Some((path.display().to_string(), text)),
            Err(error) => return Err(Problem::File { path: path.into(), error }),
        },
        None => None,
    };
    let text = |text: &OsString| text.to_string_lossy().into_owned();
    let ours = |(name, _): &(String, String)| name.starts_with(C::VARIABLE_PREFIX);
    let variables = env::vars_os().map(|(name, value)| (text(&name), text(&value))).filter(ours);
    let mut given = Vec::new();
    for assignment in set {
        let Some((key, value)) = assignment.split_once('=') else {
            return Err(Problem::SenselessOption {
                option: "--set",
                reason: "write KEY=VALUE, as in log.format=json",
            });
        };
        given.push((key.into(), format!("--set {key}"), value.into()));
    }
    for (key, flag, value) in flags {
        if let Some(value) = value {
            given.push(((*key).into(), (*flag).into(), value.clone()));
        }
    }
    Ok(Settings { file, variables: variables.collect(), flags: given })
}
