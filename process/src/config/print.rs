//! Writes a configuration as a file that reads back the same, with each knob's meaning beside it.

use toml::{Table, Value};

use super::knob::Setting;
use super::load::Configured;

/// Lines are broken here.
const WIDTH: usize = 100;

/// The configuration as TOML, every knob explained. A knob without a value stands as a comment.
pub fn to_toml<C: Configured>(config: &C) -> String {
    let values = Table::try_from(config).expect("a configuration is a table of plain values");
    let mut text = format!(
        "# Configuration of {}. Each line can also be set by an environment variable and by\n\
         # --set KEY=VALUE; flags win over variables, variables over the file.\n",
        C::WHAT
    );
    for part in C::PARTS {
        if !part.name.is_empty() {
            text.push_str(&format!("\n[{}]\n", part.name));
            wrap(&mut text, part.about.iter().flat_map(|line| line.split_whitespace()));
        }
        for knob in part.knobs {
            let setting = Setting { section: part.name, knob };
            let variable = format!("[{}]", setting.variable(C::VARIABLE_PREFIX));
            let about = knob.about.iter().flat_map(|line| line.split_whitespace());
            text.push('\n');
            wrap(&mut text, about.chain([variable.as_str()]));
            match value_of(&values, setting) {
                Some(value) => text.push_str(&format!("{} = {value}\n", knob.name)),
                None => text.push_str(&format!("# {} =\n", knob.name)),
            }
        }
    }
    text
}

fn value_of(values: &Table, setting: Setting) -> Option<&Value> {
    match setting.section {
        "" => values.get(setting.knob.name),
        section => values.get(section)?.get(setting.knob.name),
    }
}

/// Words as a comment, in lines that are not too long.
fn wrap<'a>(text: &mut String, words: impl Iterator<Item = &'a str>) {
    let mut line = String::from("#");
    for word in words {
        if line.len() + 1 + word.len() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::super::tests::KettleConfig;
    use super::*;
    use crate::config::Section;

    #[test]
    fn what_is_printed_reads_back_the_same() {
        let mut config = KettleConfig {
            owner: Some("somebody with \"quotes\"".into()),
            guests: vec!["one".into(), "two".into()],
            ..KettleConfig::default()
        };
        config.heating.share = 0.25;
        for config in [config, KettleConfig::default()] {
            let text = to_toml(&config);
            assert_eq!(toml::from_str::<KettleConfig>(&text), Ok(config), "{text}");
            assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
            assert!(text.starts_with("# Configuration of a kettle."), "{text}");
        }
    }

    #[test]
    fn every_knob_is_printed_with_its_variable_and_every_section_with_its_meaning() {
        let text = to_toml(&KettleConfig::default());
        assert!(text.contains("\n[heating]\n# Heating.\n\n# Watts"), "{text}");
        for setting in KettleConfig::settings() {
            assert!(text.contains(&format!("{} =", setting.knob.name)), "{}", setting.key());
            assert!(text.contains(&setting.variable("KETTLE_")), "{}", setting.key());
        }
    }
}
