//! Puts a configuration together: the file, over it the environment, over it the flags. What is
//! not known is an error that says where it stands. Reading files is left to the caller.

use toml::{Table, Value};

use super::knob::{Kind, Knob};
use super::{BadWorkerConfig, VARIABLE_PREFIX, WorkerConfig};

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
pub enum ConfigError {
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
    Senseless(#[from] BadWorkerConfig),
}

fn meant(like: &Option<String>) -> String {
    like.as_ref().map_or_else(String::new, |like| format!("; is {like} meant?"))
}

/// Reads all settings and checks what they come to.
pub fn load(settings: &Settings) -> Result<WorkerConfig, ConfigError> {
    let mut all = Table::new();
    if let Some((name, text)) = &settings.file {
        let unreadable = |error: toml::de::Error| ConfigError::Unreadable {
            place: name.clone(),
            reason: error.to_string().trim_end().to_owned(),
        };
        // Read as a whole for its complaints, which name lines; then kept as a table to lay over.
        toml::from_str::<WorkerConfig>(text).map_err(unreadable)?;
        all = toml::from_str(text).map_err(unreadable)?;
    }
    for (variable, text) in &settings.variables {
        let Some(name) = variable.strip_prefix(VARIABLE_PREFIX) else { continue };
        if is_service_link(name) {
            continue;
        }
        let known = |knob: &&Knob| knob.variable() == *variable;
        let Some(knob) = WorkerConfig::knobs().find(known) else {
            let like = nearest(variable, Knob::variable);
            return Err(ConfigError::Unknown { place: variable.clone(), like });
        };
        set(&mut all, knob, variable, text)?;
    }
    for (key, flag, text) in &settings.flags {
        let Some(knob) = WorkerConfig::knobs().find(|knob| knob.key() == *key) else {
            let like = nearest(key, Knob::key);
            return Err(ConfigError::Unknown { place: flag.clone(), like });
        };
        set(&mut all, knob, flag, text)?;
    }
    let config: WorkerConfig = all.try_into().map_err(|error| ConfigError::Unreadable {
        place: "the configuration".into(),
        reason: error.to_string(),
    })?;
    config.check()?;
    Ok(config)
}

/// Kubernetes describes a service named `tributary-worker` to every pod beside it in variables that
/// begin like ours.
fn is_service_link(name: &str) -> bool {
    name == "PORT" || name.starts_with("PORT_") || name.starts_with("SERVICE_")
}

fn set(all: &mut Table, knob: &Knob, place: &str, text: &str) -> Result<(), ConfigError> {
    let unreadable = |reason: String| ConfigError::Unreadable { place: place.to_owned(), reason };
    let value = match knob.kind {
        Kind::Text => Value::String(text.into()),
        Kind::Number => match text.parse::<i64>() {
            Ok(number) => Value::Integer(number),
            Err(_) => return Err(unreadable(format!("{text:?} is no whole number"))),
        },
        Kind::Flag => match text.parse::<bool>() {
            Ok(flag) => Value::Boolean(flag),
            Err(_) => return Err(unreadable(format!("{text:?} is neither true nor false"))),
        },
    };
    // Alone first, so that a value that can't be is blamed on its own place.
    let mut alone = Table::new();
    insert(&mut alone, knob, value.clone());
    if let Err(error) = alone.try_into::<WorkerConfig>() {
        return Err(unreadable(error.message().to_owned()));
    }
    insert(all, knob, value);
    Ok(())
}

fn insert(all: &mut Table, knob: &Knob, value: Value) {
    let section = match knob.section {
        "" => all,
        section => {
            let empty = || Value::Table(Table::new());
            let table = all.entry(section).or_insert_with(empty).as_table_mut();
            table.expect("a file whose sections are no tables was refused")
        }
    };
    section.insert(knob.name.into(), value);
}

/// The known name that shares the longest end with an unknown one, if that is more than chance.
fn nearest(unknown: &str, name: fn(&Knob) -> String) -> Option<String> {
    let shared = |known: &String| {
        let pairs = known.bytes().rev().zip(unknown.bytes().rev());
        pairs.take_while(|(a, b)| a.eq_ignore_ascii_case(b)).count()
    };
    let best = WorkerConfig::knobs().map(name).max_by_key(shared)?;
    (shared(&best) >= 4).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::super::{LogFormat, Span};
    use super::*;

    fn settings(file: &str, variables: &[(&str, &str)], flags: &[(&str, &str)]) -> Settings {
        let own = |text: &str| text.to_owned();
        let file = (!file.is_empty()).then(|| (own("worker.toml"), own(file)));
        let variables = variables.iter().map(|(name, value)| (own(name), own(value))).collect();
        let flags = flags.iter().map(|(key, value)| (own(key), format!("--set {key}"), own(value)));
        Settings { file, variables, flags: flags.collect() }
    }

    #[track_caller]
    fn refused(file: &str, variables: &[(&str, &str)], flags: &[(&str, &str)]) -> String {
        load(&settings(file, variables, flags)).unwrap_err().to_string()
    }

    #[test]
    fn nothing_said_means_the_defaults() {
        let other = [("PATH", "/bin"), ("TRIBUTARY_API_SLOTS", "x")];
        assert_eq!(load(&settings("", &other, &[])), Ok(WorkerConfig::default()));
    }

    #[test]
    fn flags_win_over_environment_and_environment_over_the_file() {
        let file = "worker_id = 'from-file'\n[execution]\nslots = 1\nqueue_limit = 1\nnice = 1\n";
        let variables = [
            ("TRIBUTARY_WORKER_EXECUTION_QUEUE_LIMIT", "2"),
            ("TRIBUTARY_WORKER_EXECUTION_NICE", "2"),
            ("TRIBUTARY_WORKER_CONTROL_HELLO_TIMEOUT", "750ms"),
            ("TRIBUTARY_WORKER_LOG_FORMAT", "json"),
            ("TRIBUTARY_WORKER_DRAIN_OVER_HTTP", "false"),
        ];
        let flags = [("execution.nice", "3"), ("http", "127.0.0.1:0")];
        let config = load(&settings(file, &variables, &flags)).unwrap();
        assert_eq!(config.worker_id.as_deref(), Some("from-file"));
        let execution = &config.execution;
        assert_eq!((execution.slots, execution.queue_limit, execution.nice), (1, 2, 3));
        assert_eq!(config.control.hello_timeout, Span::millis(750));
        assert_eq!((config.log.format, config.drain.over_http), (LogFormat::Json, false));
        assert_eq!(config.http.to_string(), "127.0.0.1:0");
    }

    #[test]
    fn a_name_of_digits_is_a_name() {
        let config = load(&settings("", &[("TRIBUTARY_WORKER_WORKER_ID", "7")], &[])).unwrap();
        assert_eq!(config.worker_id.as_deref(), Some("7"));
    }

    #[test]
    fn an_unknown_key_of_the_file_is_named_with_its_line() {
        let complaint = refused("[control]\nheartbeat = '1s'\n", &[], &[]);
        assert!(complaint.starts_with("worker.toml: "), "{complaint}");
        assert!(complaint.contains("line 2") && complaint.contains("heartbeat"), "{complaint}");
        assert!(refused("[controls]\n", &[], &[]).contains("controls"));
        assert!(refused("slots = = 1", &[], &[]).contains("line 1"));
    }

    #[test]
    fn unknown_variables_and_flags_are_errors_too() {
        assert_eq!(
            refused("", &[("TRIBUTARY_WORKER_SLOTS", "2")], &[]),
            "TRIBUTARY_WORKER_SLOTS: there is no such setting; is \
             TRIBUTARY_WORKER_EXECUTION_SLOTS meant?"
        );
        assert_eq!(
            refused("", &[], &[("slots", "2")]),
            "--set slots: there is no such setting; is execution.slots meant?"
        );
        assert_eq!(refused("", &[], &[("xyz", "2")]), "--set xyz: there is no such setting");
    }

    #[test]
    fn what_kubernetes_says_of_a_service_of_that_name_is_passed_over() {
        let links = [
            ("TRIBUTARY_WORKER_PORT", "tcp://10.0.0.1:9470"),
            ("TRIBUTARY_WORKER_PORT_9470_TCP_ADDR", "10.0.0.1"),
            ("TRIBUTARY_WORKER_SERVICE_HOST", "10.0.0.1"),
        ];
        assert_eq!(load(&settings("", &links, &[])), Ok(WorkerConfig::default()));
        for knob in WorkerConfig::knobs() {
            let variable = knob.variable();
            assert!(!is_service_link(&variable[VARIABLE_PREFIX.len()..]), "{variable}");
        }
    }

    #[test]
    fn a_bad_value_is_blamed_on_its_place() {
        let variable = "TRIBUTARY_WORKER_CONTROL_HELLO_TIMEOUT";
        let complaint = refused("", &[(variable, "soon")], &[]);
        assert!(complaint.starts_with(variable) && complaint.contains("as in 30s"), "{complaint}");
        let complaint = refused("", &[], &[("execution.slots", "many")]);
        assert_eq!(complaint, "--set execution.slots: \"many\" is no whole number");
        let complaint = refused("", &[], &[("execution.slots", "-1")]);
        assert!(complaint.starts_with("--set execution.slots: "), "{complaint}");
        let complaint = refused("", &[], &[("drain.over_http", "yes")]);
        assert!(complaint.contains("neither true nor false"), "{complaint}");
        let complaint = refused("[execution]\nnice = 99\n", &[], &[]);
        assert_eq!(complaint, "execution.nice must be from 0 to 19");
    }
}
