//! Writes a configuration as a file that reads back the same, with each knob's meaning beside it.

use toml::{Table, Value};

use super::{Knob, WorkerConfig};

/// Lines are broken here.
const WIDTH: usize = 100;

impl WorkerConfig {
    /// The configuration as TOML, every knob explained. A knob without a value stands as a comment.
    pub fn to_toml(&self) -> String {
        let values = Table::try_from(self).expect("a configuration is a table of plain values");
        let mut text = String::from(
            "# Configuration of a worker. Each line can also be set by an environment variable and by\n\
             # --set KEY=VALUE; flags win over variables, variables over the file.\n",
        );
        let mut section = "";
        for knob in Self::knobs() {
            if knob.section != section {
                section = knob.section;
                text.push_str(&format!("\n[{section}]\n"));
            }
            text.push('\n');
            explain(&mut text, knob);
            match value_of(&values, knob) {
                Some(value) => text.push_str(&format!("{} = {value}\n", knob.name)),
                None => text.push_str(&format!("# {} =\n", knob.name)),
            }
        }
        text
    }
}

fn value_of<'a>(values: &'a Table, knob: &Knob) -> Option<&'a Value> {
    match knob.section {
        "" => values.get(knob.name),
        section => values.get(section)?.get(knob.name),
    }
}

fn explain(text: &mut String, knob: &Knob) {
    let words = knob.about.iter().flat_map(|line| line.split_whitespace());
    let mut line = String::from("#");
    for word in words.chain([format!("[{}]", knob.variable()).as_str()]) {
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
    use super::*;

    #[test]
    fn what_is_printed_reads_back_the_same() {
        let config = WorkerConfig {
            worker_id: Some("worker-3".into()),
            data_dir: Some("some where/with \"quotes\"".into()),
            ..WorkerConfig::default()
        };
        for config in [config, WorkerConfig::default()] {
            let text = config.to_toml();
            assert_eq!(toml::from_str::<WorkerConfig>(&text), Ok(config), "{text}");
            assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        }
    }

    #[test]
    fn every_knob_is_printed_with_its_variable() {
        let text = WorkerConfig::default().to_toml();
        for knob in WorkerConfig::knobs() {
            assert!(text.contains(&format!("{} =", knob.name)), "{}", knob.key());
            assert!(text.contains(&knob.variable()), "{}", knob.key());
        }
    }
}
