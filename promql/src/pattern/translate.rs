//! Reads a pattern from left to right and writes the translation along the way. Nothing recurses:
//! open groups are a stack. Every atom is written so that a repetition can follow it, and so that
//! it means the same under any flags.

use super::{PatternError, Problem};

/// Groups inside each other. The `regex` crate counts every kind of nesting, up to four for one
/// group, and allows 250.
const MAX_DEPTH: usize = 50;

/// The most often anything may be repeated, nested repetitions multiplied. Go's rule.
const MAX_REPEAT: usize = 1_000;

/// Weights of atoms that the `regex` crate spells out byte by byte.
pub(super) const ANY_CHAR_SIZE: usize = 10;

/// A pattern for the `regex` crate.
pub(super) struct Translation {
    pub(super) text: String,
    pub(super) matches_empty: bool,
    /// Characters and classes, repetitions written out.
    pub(super) size: usize,
    /// The names of the groups that capture, in their order, if they were asked for.
    pub(super) captures: Vec<Option<String>>,
}

/// Flags as they stand at some place; groups restore them.
#[derive(Clone, Copy)]
pub(super) struct Flags {
    /// `i`
    pub(super) fold_case: bool,
    /// `m`
    many_lines: bool,
    /// `s`, on from the start as Prometheus has it.
    dot_is_everything: bool,
    /// `U`
    ungreedy: bool,
}

/// What is known of a part of the pattern.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub(super) matches_empty: bool,
    /// Characters and classes, repetitions written out.
    pub(super) size: usize,
    /// The most often a part of it is repeated.
    repeats: usize,
    /// Groups inside each other.
    depth: usize,
}

impl Extent {
    const NOTHING: Self = Self { matches_empty: true, size: 0, repeats: 1, depth: 0 };

    const fn assertion(matches_empty: bool) -> Self {
        Self { matches_empty, ..Self::NOTHING }
    }

    pub(super) const fn character(size: usize) -> Self {
        Self { matches_empty: false, size, repeats: 1, depth: 0 }
    }

    fn then(self, next: Self) -> Self {
        Self { matches_empty: self.matches_empty && next.matches_empty, ..self.beside(next) }
    }

    fn or(self, other: Self) -> Self {
        Self { matches_empty: self.matches_empty || other.matches_empty, ..self.beside(other) }
    }

    fn beside(self, other: Self) -> Self {
        Self {
            matches_empty: false,
            size: self.size.saturating_add(other.size),
            repeats: self.repeats.max(other.repeats),
            depth: self.depth.max(other.depth),
        }
    }
}

/// The last thing read, which a repetition would repeat.
struct Atom {
    extent: Extent,
    /// Where its translation begins.
    start: usize,
    is_repetition: bool,
}

/// An open group, or the whole pattern.
struct Group {
    /// Where its translation begins.
    start: usize,
    /// The flags to restore at its end.
    outer_flags: Flags,
    /// The alternatives before the current one.
    alternatives: Option<Extent>,
    /// The current alternative up to, not including, `last`.
    sequence: Extent,
    last: Option<Atom>,
}

impl Group {
    fn new(start: usize, outer_flags: Flags) -> Self {
        Self { start, outer_flags, alternatives: None, sequence: Extent::NOTHING, last: None }
    }

    fn end_alternative(&mut self) -> Extent {
        let last = self.last.take().map_or(Extent::NOTHING, |atom| atom.extent);
        let sequence = std::mem::replace(&mut self.sequence, Extent::NOTHING).then(last);
        let all = self.alternatives.map_or(sequence, |others| others.or(sequence));
        self.alternatives = Some(all);
        all
    }
}

pub(super) struct Translator<'a> {
    pub(super) source: &'a str,
    pub(super) rest: &'a str,
    pub(super) out: String,
    pub(super) flags: Flags,
    groups: Vec<Group>,
    /// The names of the groups that capture, in their order. None if captures do not matter.
    captures: Option<Vec<Option<String>>>,
    max_size: usize,
}

/// Translates a pattern. Where its captures matter, groups and greed are kept as they are.
pub(super) fn translate(
    source: &str,
    max_size: usize,
    captures: bool,
) -> Result<Translation, PatternError> {
    let flags =
        Flags { fold_case: false, many_lines: false, dot_is_everything: true, ungreedy: false };
    let mut translator = Translator {
        source,
        rest: source,
        out: String::with_capacity(source.len() + 16),
        flags,
        groups: vec![Group::new(0, flags)],
        captures: captures.then(Vec::new),
        max_size,
    };
    translator.out.push_str("\\A(?:");
    // The repetition just before, which must not be followed by another.
    let mut repetition = None;
    while !translator.rest.is_empty() {
        repetition = translator.step(repetition)?;
    }
    translator.finish()
}

impl<'a> Translator<'a> {
    /// Reads the next thing; gives the rest of the pattern from it on if it was a repetition.
    fn step(&mut self, repetition: Option<&'a str>) -> Result<Option<&'a str>, PatternError> {
        let before = self.rest;
        match before.as_bytes()[0] {
            b'(' if before.starts_with("(?") => self.flags_or_group()?,
            b'(' => {
                self.rest = &before[1..];
                self.open_capture(None);
            }
            b')' => self.close_group()?,
            b'|' => {
                self.rest = &before[1..];
                self.group().end_alternative();
                self.out.push('|');
            }
            b'^' => {
                let anchor = if self.flags.many_lines { "(?m:^)" } else { "\\A" };
                self.atom(1, anchor, Extent::assertion(true))?;
            }
            b'$' => {
                let anchor = if self.flags.many_lines { "(?m:$)" } else { "\\z" };
                self.atom(1, anchor, Extent::assertion(true))?;
            }
            b'.' => {
                let any = if self.flags.dot_is_everything { "(?s:.)" } else { "[^\\n]" };
                self.atom(1, any, Extent::character(ANY_CHAR_SIZE))?;
            }
            b'[' => self.class()?,
            b'*' => return self.repeat(repetition, 1, (0, None)),
            b'+' => return self.repeat(repetition, 1, (1, None)),
            b'?' => return self.repeat(repetition, 1, (0, Some(1))),
            b'{' => {
                let Some((length, min, max)) = counted_repetition(before) else {
                    self.rest = &before[1..];
                    return self.literal('{').map(|()| None);
                };
                let bounds = |count: usize| count <= MAX_REPEAT;
                if !bounds(min) || !max.is_none_or(|max| bounds(max) && min <= max) {
                    return Err(fault(Problem::RepeatCount, &before[..length]));
                }
                return self.repeat(repetition, length, (min, max));
            }
            b'\\' => self.escape()?,
            _ => {
                let char = self.bump().expect("the rest is not empty");
                self.literal(char)?;
            }
        }
        Ok(None)
    }

    fn group(&mut self) -> &mut Group {
        self.groups.last_mut().expect("the whole pattern is the first group")
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let char = self.rest.chars().next()?;
        self.rest = &self.rest[char.len_utf8()..];
        Some(char)
    }

    /// Takes `length` bytes of the pattern and writes what they mean.
    pub(super) fn atom(
        &mut self,
        length: usize,
        translated: &str,
        extent: Extent,
    ) -> Result<(), PatternError> {
        self.rest = &self.rest[length..];
        let start = self.out.len();
        self.out.push_str(translated);
        self.push(start, extent)
    }

    /// Notes what was written from `start` on.
    fn push(&mut self, start: usize, extent: Extent) -> Result<(), PatternError> {
        let group = self.group();
        if let Some(before) = group.last.take() {
            group.sequence = group.sequence.then(before.extent);
        }
        group.last = Some(Atom { extent, start, is_repetition: false });
        let extent = group.sequence.beside(extent);
        self.check_size(extent)
    }

    fn check_size(&self, extent: Extent) -> Result<(), PatternError> {
        if extent.depth > MAX_DEPTH {
            let what = "groups inside each other";
            return Err(PatternError::TooLarge { what, most: MAX_DEPTH });
        }
        if extent.size > self.max_size {
            let what = "characters and classes, repetitions written out";
            return Err(PatternError::TooLarge { what, most: self.max_size });
        }
        Ok(())
    }

    pub(super) fn literal(&mut self, char: char) -> Result<(), PatternError> {
        let start = self.out.len();
        let folds = self.flags.fold_case && char.is_alphabetic();
        if folds {
            self.out.push_str("(?i:");
        }
        push_char(&mut self.out, char);
        if folds {
            self.out.push(')');
        }
        self.push(start, Extent::character(1))
    }

    fn repeat(
        &mut self,
        repetition: Option<&str>,
        length: usize,
        (min, max): (usize, Option<usize>),
    ) -> Result<Option<&'a str>, PatternError> {
        let before = self.rest;
        self.rest = &before[length..];
        let mut lazy = self.flags.ungreedy;
        if let Some(rest) = self.rest.strip_prefix('?') {
            self.rest = rest;
            lazy = !lazy;
        }
        let until_here = |from: &str| from[..from.len() - self.rest.len()].to_owned();
        if let Some(repetition) = repetition {
            return Err(fault(Problem::NestedRepetition, &until_here(repetition)));
        }
        let operator = until_here(before);
        let group = self.groups.last_mut().expect("the whole pattern is the first group");
        let Some(atom) = &mut group.last else {
            return Err(fault(Problem::MissingArgument, &operator));
        };
        if atom.is_repetition {
            // Only flags stand between the two: `a*(?i)*`.
            self.out.insert_str(atom.start, "(?:");
            self.out.push(')');
            atom.extent.depth += 1;
        }
        self.out.push_str(&match (min, max) {
            (0, None) => "*".to_owned(),
            (1, None) => "+".to_owned(),
            (0, Some(1)) => "?".to_owned(),
            (min, None) => format!("{{{min},}}"),
            (min, Some(max)) => format!("{{{min},{max}}}"),
        });
        // Greedy or not is the same to a match of the whole value, but not to its groups.
        if lazy && self.captures.is_some() {
            self.out.push('?');
        }
        let counted = operator.starts_with('{');
        let times = max.unwrap_or(min);
        atom.is_repetition = true;
        atom.extent.matches_empty |= min == 0;
        atom.extent.size = atom.extent.size.saturating_mul(times.max(1));
        if counted {
            atom.extent.repeats = match (max, times) {
                (Some(0), _) => 1,
                (_, times) => atom.extent.repeats.saturating_mul(times.max(1)),
            };
        }
        if counted && times >= 2 && atom.extent.repeats > MAX_REPEAT {
            return Err(fault(Problem::RepeatCount, &operator));
        }
        let extent = group.sequence.beside(atom.extent);
        self.check_size(extent)?;
        Ok(Some(before))
    }

    /// Opens a group whose start is taken already.
    fn open_group(&mut self) {
        self.open("(?:");
    }

    /// Opens a group that captures, whose start is taken already.
    fn open_capture(&mut self, name: Option<&str>) {
        let Some(captures) = &mut self.captures else { return self.open_group() };
        captures.push(name.map(str::to_owned));
        self.open("(");
    }

    fn open(&mut self, bracket: &str) {
        let start = self.out.len();
        self.out.push_str(bracket);
        self.groups.push(Group::new(start, self.flags));
    }

    fn close_group(&mut self) -> Result<(), PatternError> {
        self.rest = &self.rest[1..];
        if self.groups.len() == 1 {
            return Err(fault(Problem::UnexpectedParen, self.source));
        }
        let mut group = self.groups.pop().expect("there is more than one");
        self.out.push(')');
        self.flags = group.outer_flags;
        let extent = group.end_alternative();
        self.push(group.start, Extent { depth: extent.depth + 1, ..extent })
    }

    fn finish(mut self) -> Result<Translation, PatternError> {
        if self.groups.len() > 1 {
            return Err(fault(Problem::MissingParen, self.source));
        }
        let extent = self.group().end_alternative();
        self.check_size(extent)?;
        self.out.push_str(")\\z");
        Ok(Translation {
            text: self.out,
            matches_empty: extent.matches_empty,
            size: extent.size,
            captures: self.captures.unwrap_or_default(),
        })
    }

    /// `(?flags)`, `(?flags:…)` or a named group.
    fn flags_or_group(&mut self) -> Result<(), PatternError> {
        let before = self.rest;
        let name_start = match before.as_bytes() {
            [_, _, b'P', b'<', _, ..] => Some(4),
            [_, _, b'<', _, ..] => Some(3),
            _ => None,
        };
        if let Some(name_start) = name_start {
            let Some(end) = before.find('>') else {
                return Err(fault(Problem::NamedCapture, before));
            };
            let name = &before[name_start..end];
            if name.is_empty() || !name.bytes().all(|b| b == b'_' || b.is_ascii_alphanumeric()) {
                return Err(fault(Problem::NamedCapture, &before[..=end]));
            }
            self.rest = &before[end + 1..];
            self.open_capture(Some(name));
            return Ok(());
        }
        self.rest = &before[2..];
        let mut flags = self.flags;
        let mut value = true;
        let mut needs_flag = false;
        while let Some(char) = self.bump() {
            match char {
                'i' => flags.fold_case = value,
                'm' => flags.many_lines = value,
                's' => flags.dot_is_everything = value,
                'U' => flags.ungreedy = value,
                '-' if value => {
                    value = false;
                    needs_flag = true;
                    continue;
                }
                ':' if !needs_flag => {
                    self.open_group();
                    self.flags = flags;
                    return Ok(());
                }
                ')' if !needs_flag => {
                    self.flags = flags;
                    return Ok(());
                }
                _ => break,
            }
            needs_flag = false;
        }
        let taken = &before[..before.len() - self.rest.len()];
        Err(fault(Problem::PerlSyntax, taken))
    }

    /// Anything that begins with a backslash, outside of a class.
    fn escape(&mut self) -> Result<(), PatternError> {
        let before = self.rest;
        match before.as_bytes().get(1) {
            Some(b'A') => self.atom(2, "\\A", Extent::assertion(true)),
            Some(b'z') => self.atom(2, "\\z", Extent::assertion(true)),
            // In an empty value there is no boundary of a word.
            Some(b'b') => self.atom(2, "(?-u:\\b)", Extent::assertion(false)),
            Some(b'B') => self.atom(2, "(?-u:\\B)", Extent::assertion(true)),
            Some(b'C') => Err(fault(Problem::Escape, &before[..2])),
            Some(b'Q') => {
                let (literals, rest) = before[2..].split_once("\\E").unwrap_or((&before[2..], ""));
                self.rest = rest;
                literals.chars().try_for_each(|char| self.literal(char))
            }
            _ => self.escaped_class_or_char(),
        }
    }
}

pub(super) fn fault(problem: Problem, fragment: &str) -> PatternError {
    PatternError::Syntax { problem, fragment: fragment.to_owned() }
}

/// Writes a character so that it means itself, in a class too.
pub(super) fn push_char(out: &mut String, char: char) {
    if char == '_' || char.is_alphanumeric() {
        out.push(char);
    } else {
        out.push_str(&format!("\\x{{{:x}}}", u32::from(char)));
    }
}

/// The length and the bounds of `{min}`, `{min,}` or `{min,max}`. None if it is not of that form:
/// the brace is a literal then.
fn counted_repetition(text: &str) -> Option<(usize, usize, Option<usize>)> {
    let close = text.find('}')?;
    let inside = &text[1..close];
    let (min, max) = match inside.split_once(',') {
        None => (count(inside)?, Some(count(inside)?)),
        Some((min, "")) => (count(min)?, None),
        Some((min, max)) => (count(min)?, Some(count(max)?)),
    };
    Some((close + 1, min, max))
}

/// A count without leading zeros; one that is far too large still is a count.
fn count(digits: &str) -> Option<usize> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some(digits.parse().unwrap_or(usize::MAX))
}
