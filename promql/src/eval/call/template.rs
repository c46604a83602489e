//! What a match is replaced with: a text in which `$1`, `${1}`, `$name` and `${name}` stand for what
//! groups of the pattern matched, and `$$` for a dollar. The rules are those of Go's `regexp`.

use regex::{Captures, Regex};

/// A replacement that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// What one of these groups matched: the first that took part in the match.
    Group(Vec<usize>),
}

impl Template {
    /// Reads a replacement for a pattern whose groups have these names, from the first on.
    pub(super) fn parse(text: &str, names: &[Option<String>]) -> Self {
        let reference = Regex::new(r"\A(?:\{([\p{L}\p{Nd}_]+)\}|([\p{L}\p{Nd}_]+))")
            .expect("the pattern is a fixed one");
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('$') {
            plain.push_str(before);
            rest = after;
            if let Some(after) = rest.strip_prefix('$') {
                plain.push('$');
                rest = after;
            } else if let Some(found) = reference.captures(rest) {
                let name = found.get(1).or(found.get(2)).expect("one of the two matched").as_str();
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
                pieces.push(Piece::Group(groups(name, names)));
                rest = &rest[found[0].len()..];
            } else {
                // A dollar that refers to nothing is a dollar.
                plain.push('$');
            }
        }
        plain.push_str(rest);
        pieces.push(Piece::Text(plain));
        Self(pieces)
    }

    /// How long the replacement of a match is.
    pub(super) fn expanded_len(&self, found: &Captures<'_>) -> usize {
        self.0.iter().map(|piece| piece.text(found).len()).sum()
    }

    /// The replacement of a match. References to groups that are not there are empty.
    pub(super) fn expand(&self, found: &Captures<'_>) -> String {
        self.0.iter().map(|piece| piece.text(found)).collect()
    }
}

impl Piece {
    /// What it is in the replacement of a match.
    fn text<'a>(&'a self, found: &Captures<'a>) -> &'a str {
        match self {
            Self::Text(text) => text,
            Self::Group(groups) => {
                let matched = groups.iter().find_map(|group| found.get(*group));
                matched.map_or("", |matched| matched.as_str())
            }
        }
    }
}

/// The groups that a reference means: one by its number, or all of that name.
fn groups(reference: &str, names: &[Option<String>]) -> Vec<usize> {
    let is_number = reference.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && (reference == "0" || !reference.starts_with('0')) {
        return reference.parse().into_iter().collect();
    }
    let named = (1..).zip(names).filter(|(_, name)| name.as_deref() == Some(reference));
    named.map(|(group, _)| group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(template: &str) -> String {
        let regex = Regex::new("(a)(b)?(c)").unwrap();
        let names = [Some("x".into()), Some("y".into()), Some("y".into())];
        let found = regex.captures("ac").unwrap();
        Template::parse(template, &names).expand(&found)
    }

    #[test]
    fn references_are_replaced_by_what_groups_matched() {
        for (template, result) in [
            ("plain", "plain"),
            ("", ""),
            ("$1-${3}", "a-c"),
            ("$0", "ac"),
            ("<$2>", "<>"),
            ("$1x", ""),
            ("${1}x", "ax"),
            ("$x.$y", "a.c"),
            ("$$1", "$1"),
            ("$", "$"),
            ("a$ b", "a$ b"),
            ("${1", "${1"),
            ("${}", "${}"),
            ("$01", ""),
            ("$9", ""),
            ("$99999999999999999999", ""),
            ("$é", ""),
            ("$-", "$-"),
        ] {
            assert_eq!(expanded(template), result, "{template}");
        }
    }
}
