//! Where settings come from, which of them wins, and what is said of those that can't be.

use super::super::tests::KettleConfig;
use super::super::{OutOfRange, Span};
use super::{ConfigError, Settings, is_service_link, load};
use crate::config::Section;
use crate::logs::LogFormat;

type Loaded = Result<KettleConfig, ConfigError<OutOfRange>>;

fn loaded(file: &str, variables: &[(&str, &str)], flags: &[(&str, &str)]) -> Loaded {
    let own = |text: &str| text.to_owned();
    let file = (!file.is_empty()).then(|| (own("kettle.toml"), own(file)));
    let variables = variables.iter().map(|(name, value)| (own(name), own(value))).collect();
    let flags = flags.iter().map(|(key, value)| (own(key), format!("--set {key}"), own(value)));
    load(&Settings { file, variables, flags: flags.collect() })
}

#[track_caller]
fn refused(file: &str, variables: &[(&str, &str)], flags: &[(&str, &str)]) -> String {
    loaded(file, variables, flags).unwrap_err().to_string()
}

#[test]
fn nothing_said_means_the_defaults() {
    let other = [("PATH", "/bin"), ("TEAPOT_WATTS", "x")];
    assert_eq!(loaded("", &other, &[]), Ok(KettleConfig::default()));
}

#[test]
fn flags_win_over_environment_and_environment_over_the_file() {
    let file = "owner = 'from-file'\n[heating]\nwatts = 1\nvolume = 1\nwhistles = true\n";
    let variables = [
        ("KETTLE_HEATING_WATTS", "2"),
        ("KETTLE_HEATING_VOLUME", "2"),
        ("KETTLE_HEATING_KEEP_WARM", "750ms"),
        ("KETTLE_LOG_FORMAT", "json"),
        ("KETTLE_HEATING_WHISTLES", "false"),
    ];
    let flags = [("heating.volume", "3"), ("place", "127.0.0.1:0"), ("manual", "a b")];
    let config = loaded(file, &variables, &flags).unwrap();
    assert_eq!(config.owner.as_deref(), Some("from-file"));
    let heating = &config.heating;
    assert_eq!((heating.watts, heating.volume, heating.whistles), (2, 3, false));
    assert_eq!(heating.keep_warm, Span::millis(750));
    assert_eq!((config.log.format, config.manual), (LogFormat::Json, Some("a b".into())));
    assert_eq!(config.place.to_string(), "127.0.0.1:0");
}

#[test]
fn lists_have_commas_in_text_and_brackets_in_the_file() {
    let config = loaded("guests = ['a', 'b,c']", &[], &[]).unwrap();
    assert_eq!(config.guests, ["a", "b,c"]);
    let config = loaded("guests = ['a']", &[("KETTLE_GUESTS", "b, c,")], &[]).unwrap();
    assert_eq!(config.guests, ["b", "c"]);
    assert!(loaded("guests = ['a']", &[], &[("guests", "")]).unwrap().guests.is_empty());
}

#[test]
fn a_number_with_a_fraction_may_have_none() {
    for share in ["1", "0.5", "1e-3"] {
        let config = loaded("", &[], &[("heating.share", share)]).unwrap();
        assert!((config.heating.share - share.parse::<f64>().unwrap()).abs() < 1e-12);
    }
    assert!(
        (loaded("[heating]\nshare = 1\n", &[], &[]).unwrap().heating.share - 1.0).abs() < 1e-12
    );
    assert!(refused("", &[], &[("heating.share", "half")]).ends_with("\"half\" is no number"));
}

#[test]
fn a_name_of_digits_is_a_name() {
    let config = loaded("", &[("KETTLE_OWNER", "7")], &[]).unwrap();
    assert_eq!(config.owner.as_deref(), Some("7"));
}

#[test]
fn an_unknown_key_of_the_file_is_named_with_its_line() {
    let complaint = refused("[heating]\nwarm = '1s'\n", &[], &[]);
    assert!(complaint.starts_with("kettle.toml: "), "{complaint}");
    assert!(complaint.contains("line 2") && complaint.contains("warm"), "{complaint}");
    assert!(refused("[heatings]\n", &[], &[]).contains("heatings"));
    assert!(refused("watts = = 1", &[], &[]).contains("line 1"));
}

#[test]
fn unknown_variables_and_flags_are_errors_too() {
    assert_eq!(
        refused("", &[("KETTLE_WATTS", "2")], &[]),
        "KETTLE_WATTS: there is no such setting; is KETTLE_HEATING_WATTS meant?"
    );
    assert_eq!(
        refused("", &[], &[("watts", "2")]),
        "--set watts: there is no such setting; is heating.watts meant?"
    );
    assert_eq!(refused("", &[], &[("xyz", "2")]), "--set xyz: there is no such setting");
}

#[test]
fn what_kubernetes_says_of_a_service_of_that_name_is_passed_over() {
    let links = [
        ("KETTLE_PORT", "tcp://10.0.0.1:9470"),
        ("KETTLE_PORT_9470_TCP_ADDR", "10.0.0.1"),
        ("KETTLE_SERVICE_HOST", "10.0.0.1"),
    ];
    assert_eq!(loaded("", &links, &[]), Ok(KettleConfig::default()));
    assert!(KettleConfig::settings().all(|setting| !is_service_link(&setting.variable(""))));
}

#[test]
fn a_bad_value_is_blamed_on_its_place() {
    let variable = "KETTLE_HEATING_KEEP_WARM";
    let complaint = refused("", &[(variable, "soon")], &[]);
    assert!(complaint.starts_with(variable) && complaint.contains("as in 30s"), "{complaint}");
    let complaint = refused("", &[], &[("heating.watts", "many")]);
    assert_eq!(complaint, "--set heating.watts: \"many\" is no whole number");
    let complaint = refused("", &[], &[("heating.watts", "-1")]);
    assert!(complaint.starts_with("--set heating.watts: "), "{complaint}");
    let complaint = refused("", &[], &[("heating.whistles", "yes")]);
    assert!(complaint.contains("neither true nor false"), "{complaint}");
    let complaint = refused("[heating]\nwatts = 9999\n", &[], &[]);
    assert_eq!(complaint, "heating.watts must be from 1 to 3000");
}
