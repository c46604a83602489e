//! Scripts as text, and what they say: commands in the order they stand. What is done with them is
//! `run`'s.

mod case;
mod lines;
mod load;

use std::io;
use std::path::{Path, PathBuf};
use std::{fs, iter};

use thiserror::Error;
use tributary_promql::duration::PromDuration;

pub use case::{AnnotationRule, Case, Expectation, Expected, Message, Window};
pub use load::{Load, LoadedSeries};

use lines::Lines;

/// The commands of a script.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// In the order they stand.
    pub commands: Vec<Command>,
}

/// One command.
#[derive(Clone, Debug)]
pub enum Command {
    /// Forget everything loaded so far.
    Clear,
    /// Load series.
    Load(Load),
    /// Cut the data at these times, in milliseconds.
    CutAt(Vec<i64>),
    /// Ask a query and judge the answer.
    Eval(Box<Case>),
}

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct ScriptError {
    /// The line, the first being 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// What the comment that pins cuts begins with.
const CUT_AT: &str = "# cut at ";

impl Script {
    /// Reads a script.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut lines = Lines::of(text);
        let mut commands = Vec::new();
        while let Some(line) = lines.take() {
            if let Some(times) = line.text.strip_prefix(CUT_AT) {
                let times = times.split_whitespace().map(|time| line.millis(time));
                commands.push(Command::CutAt(times.collect::<Result<_, _>>()?));
                continue;
            }
            if line.content().is_empty() {
                continue;
            }
            let word = line.text.split_whitespace().next().unwrap_or_default();
            let word = word.to_ascii_lowercase();
            commands.push(if word == "clear" {
                Command::Clear
            } else if word.starts_with("load") {
                Command::Load(load::parse(&mut lines, line)?)
            } else if word.starts_with("eval") {
                Command::Eval(Box::new(case::parse(&mut lines, line)?))
            } else {
                return Err(line.error(format!("invalid command {:?}", line.text)));
            });
        }
        Ok(Self { commands })
    }

    /// Every case.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.commands.iter().filter_map(|command| match command {
            Command::Eval(case) => Some(&**case),
            Command::Clear | Command::Load(_) | Command::CutAt(_) => None,
        })
    }
}

/// The scripts that paths mean: files as they are, and all `.test` files below folders, by name.
pub fn find_scripts(paths: &[PathBuf]) -> Result<Vec<PathBuf>, (PathBuf, io::Error)> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            find_below(path, &mut found)?;
        } else {
            fs::metadata(path).map_err(|error| (path.clone(), error))?;
            found.push(path.clone());
        }
    }
    Ok(found)
}

fn find_below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), (PathBuf, io::Error)> {
    let entries = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>());
    let mut entries = entries.map_err(|error| (folder.to_owned(), error))?;
    entries.sort();
    for path in entries {
        if path.is_dir() {
            find_below(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "test") {
            found.push(path);
        }
    }
    Ok(())
}

impl<'a> lines::Line<'a> {
    /// A length of time that stands in this line.
    fn millis(&self, text: &str) -> Result<i64, ScriptError> {
        let duration = PromDuration::parse(text);
        duration.map(PromDuration::as_millis).map_err(|fault| self.error(fault.to_string()))
    }

    /// The text as words, the rest of the line after the last one asked for.
    fn words<const N: usize>(&self) -> ([&'a str; N], &'a str) {
        let mut rest = self.text;
        let mut words = [""; N];
        for word in &mut words {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            *word = &rest[..end];
            rest = rest[end..].trim_start();
        }
        (words, rest)
    }
}

/// Reads lines of a block until an empty one or a comment.
fn block<'a, 'b>(lines: &'b mut Lines<'a>) -> impl Iterator<Item = lines::Line<'a>> + use<'a, 'b> {
    iter::from_fn(move || lines.take_if(|line| !line.content().is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, line: usize, message: &str) {
        let error = Script::parse(text).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.message.contains(message), "{error}");
    }

    #[test]
    fn commands_come_in_order_and_comments_end_a_block() {
        let text = "\n# comment\nload 1m\n  a 1\n  b 2\n# cut at 1m 90s\nCLEAR\n\neval instant at 1m a\n  {} 1\n\neval range from 0 to 1m step 1m a\n";
        let script = Script::parse(text).unwrap();
        assert!(
            matches!(
                script.commands.as_slice(),
                [Command::Load(load), Command::CutAt(times), Command::Clear, Command::Eval(one), Command::Eval(_)]
                    if load.series.len() == 2 && *times == [60_000, 90_000] && one.line == 9
            ),
            "{script:#?}"
        );
    }

    #[test]
    fn an_expected_series_after_a_comment_is_no_command() {
        refused("eval instant at 1m a\n  # comment\n  a 1\n", 3, "invalid command");
    }

    #[test]
    fn broken_lines_are_refused_with_their_number() {
        refused("load\n", 1, "invalid load");
        refused("load_with 1m\n", 1, "invalid load");
        refused("load 1parsec\n", 1, "unknown unit");
        refused("load 1m\n a{ 1\n", 2, "parse error");
        refused("clear\neval\n", 2, "invalid evaluation");
        refused("eval instant a\n", 1, "invalid evaluation");
        refused("eval instant at soon a\n", 1, "not a valid duration");
        refused("eval instant at 1m a +\n", 1, "parse error");
        refused("eval_ordered range from 0 to 1m step 1m a\n", 1, "invalid evaluation");
        refused("eval range from 2m to 1m step 1m a\n", 1, "before");
        refused("eval range from 1m to 2m step 0s a\n", 1, "step");
        refused("eval instant at 1m a\n expect warning\n", 2, "invalid expect");
        refused("eval instant at 1m a\n expect warn msg:\n", 2, "invalid expect");
        refused("eval instant at 1m a\n expect warn regex: (\n", 2, "regex");
        refused("eval instant at 1m a\n expect warn\n expect no_warn\n", 3, "together");
        refused("eval instant at 1m a\n expect no_info\n expect info\n", 3, "together");
        refused("eval instant at 1m a\n expect fail\n expect fail\n", 3, "multiple");
        refused("eval instant at 1m a\n a 1 2\n", 2, "expect range vector");
        refused("eval instant at 1m a\n a\n", 2, "no value");
        refused("eval instant at 1m a\n expect string x\n", 2, "quoted");
        refused("eval instant at 1m a\n expect range vector from 1m\n", 2, "range vector");
        refused("# cut at noon\n", 1, "not a valid duration");
    }

    #[test]
    fn scripts_are_found_in_folders_and_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("b")).unwrap();
        for name in ["z.test", "b/y.test", "a.test", "a.txt"] {
            fs::write(at(name), "").unwrap();
        }
        let found = find_scripts(&[folder.path().to_owned(), at("a.txt")]).unwrap();
        assert_eq!(found, [at("a.test"), at("b/y.test"), at("z.test"), at("a.txt")]);
        let (path, error) = find_scripts(&[at("none.test")]).unwrap_err();
        assert_eq!((path, error.kind()), (at("none.test"), io::ErrorKind::NotFound));
    }
}
