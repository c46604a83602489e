//! Rust text reduced to what the rules look at: code without comments and strings, and `use` trees
//! spelled out. Knows no rule.

/// The text with comments and the insides of strings and characters blanked. Lines stay lines, so
/// that a finding can name one.
pub(super) fn without_words(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = literal_or_comment_end(&chars, at);
        if end > at {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            out.push(chars[at]);
            at += 1;
        }
    }
    out
}

/// Whether `word` stands in `text` on its own, not as a part of a longer name.
pub(super) fn has_word(text: &str, word: &str) -> bool {
    let in_name = |c: char| c.is_alphanumeric() || c == '_';
    let opens_name = word.starts_with(in_name);
    let closes_name = word.ends_with(in_name);
    text.match_indices(word).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + word.len()..]);
        !(opens_name && before.ends_with(in_name) || closes_name && after.starts_with(in_name))
    })
}

/// Every path that a `use` brings in, written out in full, with its line: `use std::{fs, io::Read}`
/// is `std::fs` and `std::io::Read`. Takes the result of [`without_words`].
pub(super) fn used_paths(code: &str) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    let mut rest = 0;
    while let Some(found) = code[rest..].find("use ") {
        let start = rest + found;
        let body = start + "use ".len();
        rest = body;
        let opens = code[..start].chars().next_back().is_none_or(|c| c.is_whitespace());
        if let (true, Some(length)) = (opens, code[body..].find(';')) {
            let line = 1 + code[..start].matches('\n').count();
            spell_out("", &code[body..body + length], line, &mut paths);
            rest = body + length;
        }
    }
    paths
}

/// One branch of a `use` tree below `prefix`; `line` is where its text begins.
fn spell_out(prefix: &str, tree: &str, line: usize, paths: &mut Vec<(usize, String)>) {
    let mut depth = 0_usize;
    let mut start = 0;
    let mut branch = |text: &str, from: usize| {
        let line = line + tree[..from].matches('\n').count();
        let leading = text.len() - text.trim_start().len();
        let line = line + text[..leading].matches('\n').count();
        let text = text.trim();
        match text.split_once('{') {
            Some((path, inner)) => {
                let inner = inner.strip_suffix('}').unwrap_or(inner);
                spell_out(&format!("{prefix}{}", path.trim()), inner, line, paths);
            }
            None if text.is_empty() => {}
            None => {
                let path = text.split_whitespace().next().unwrap_or(text);
                paths.push((line, format!("{prefix}{path}")));
            }
        }
    };
    for (at, c) in tree.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                branch(&tree[start..at], start);
                start = at + 1;
            }
            _ => {}
        }
    }
    branch(&tree[start..], start);
}

/// The end of the comment, string or character literal that begins at `at`; `at` if none does.
fn literal_or_comment_end(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => end_of_line(chars, at),
        '/' if next == Some('*') => end_of_block_comment(chars, at),
        '"' => end_of_quoted(chars, at, '"'),
        'r' => end_of_raw_string(chars, at),
        '\'' if next == Some('\\') || chars.get(at + 2) == Some(&'\'') => {
            end_of_quoted(chars, at, '\'')
        }
        // Any other quote opens a lifetime.
        _ => at,
    }
}

fn end_of_line(chars: &[char], at: usize) -> usize {
    chars[at..].iter().position(|c| *c == '\n').map_or(chars.len(), |length| at + length)
}

fn end_of_block_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => {
                depth += 1;
                at += 2;
            }
            ('*', Some('/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    at
}

fn end_of_quoted(chars: &[char], at: usize, quote: char) -> usize {
    let mut at = at + 1;
    while at < chars.len() {
        match chars[at] {
            '\\' => at += 2,
            c if c == quote => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

fn end_of_raw_string(chars: &[char], at: usize) -> usize {
    let before = at.checked_sub(1).map(|i| chars[i]);
    let inside_a_name =
        before.is_some_and(|c| (c.is_alphanumeric() || c == '_') && c != 'b' && c != 'c');
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    let open = at + 1 + hashes;
    if inside_a_name || chars.get(open) != Some(&'"') {
        return at;
    }
    let closes = |i: &usize| {
        chars[*i] == '"'
            && chars.len() > *i + hashes
            && chars[*i + 1..=*i + hashes].iter().all(|c| *c == '#')
    };
    (open + 1..chars.len()).find(closes).map_or(chars.len(), |i| i + 1 + hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_blanked_and_code_stays() {
        let text = "let a = \"x // y\\\" z\"; // word\n/* a /* b */ c */ let b = r#\"w\"o\"#;\n";
        let code = without_words(text);
        assert_eq!(code.split_whitespace().collect::<Vec<_>>().join(" "), "let a = ; let b = ;");
        assert_eq!(code.lines().count(), 2);
        assert_eq!(without_words("let c = b\"in\";").trim_end(), "let c = b    ;");
    }

    #[test]
    fn lifetimes_and_raw_names_are_code_and_characters_are_not() {
        let text = "fn f<'a>(x: &'a str) -> char { let r#type = '\"'; let q = '\\''; 'x' } // end";
        let code = without_words(text);
        assert!(code.contains("<'a>(x: &'a str)") && code.contains("r#type"), "{code}");
        assert!(!code.contains('"') && !code.contains("'x'") && !code.contains("end"), "{code}");
    }

    #[test]
    fn words_are_whole() {
        assert!(has_word("use rand::Rng;", "rand::"));
        assert!(!has_word("operand::new()", "rand::"));
        assert!(has_word("a HashMap<u8, u8>", "HashMap"));
        assert!(!has_word("MyHashMap HashMaps", "HashMap"));
    }

    #[test]
    fn use_trees_are_spelled_out_with_their_lines() {
        let code = "use std::{\n    fs,\n    io::{self, Read as R},\n};\npub use a::b;\nreuse c;";
        let expected = [(2, "std::fs"), (3, "std::io::self"), (3, "std::io::Read"), (5, "a::b")];
        let expected: Vec<_> = expected.iter().map(|(l, p)| (*l, (*p).to_owned())).collect();
        assert_eq!(used_paths(code), expected);
    }
}
