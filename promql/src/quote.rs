//! Strings between quotes: what a quoted text stands for, and how a string is quoted in output and
//! in error messages. The rules are those of Go's `strconv`, which Prometheus prints with.

use std::fmt::Write;

/// Quotes bytes in double quotes, with escapes for whatever is not printable or not UTF-8.
pub fn quoted(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            push_escaped(&mut out, char, '"');
        }
        for byte in chunk.invalid() {
            push_hex_byte(&mut out, *byte);
        }
    }
    out.push('"');
    out
}

/// Quotes one character in single quotes; the end of the input stands as U+FFFD.
pub(crate) fn quoted_char(char: Option<char>) -> String {
    let mut out = String::from("'");
    push_escaped(&mut out, char.unwrap_or(char::REPLACEMENT_CHARACTER), '\'');
    out.push('\'');
    out
}

/// Names a code point, with the character itself where it can be printed: `U+0071 'q'`.
pub(crate) fn code_point(char: char) -> String {
    let code = u32::from(char);
    if is_printable(char) { format!("U+{code:04X} '{char}'") } else { format!("U+{code:04X}") }
}

/// The bytes a quoted text stands for. Escapes may spell bytes that are not UTF-8.
///
/// Takes what the lexer took for a string, so every escape is complete and every quote is closed.
pub(crate) fn unquoted(literal: &str) -> Vec<u8> {
    let body = &literal[1..literal.len() - 1];
    if literal.starts_with('`') || !body.contains('\\') {
        return body.as_bytes().to_vec();
    }
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(escape) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..escape]);
        rest = push_unescaped(&mut out, &rest[escape + 1..]);
    }
    out.extend_from_slice(rest.as_bytes());
    out
}

/// Appends what the escape at the start of `rest` stands for and returns what follows it.
fn push_unescaped<'a>(out: &mut Vec<u8>, rest: &'a str) -> &'a str {
    let (digits, radix) = match rest.as_bytes()[0] {
        b'x' => (1..3, 16),
        b'u' => (1..5, 16),
        b'U' => (1..9, 16),
        b'0'..=b'7' => (0..3, 8),
        named => {
            out.push(match named {
                b'a' => 0x07,
                b'b' => 0x08,
                b'f' => 0x0c,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 0x0b,
                itself => itself,
            });
            return &rest[1..];
        }
    };
    let after = &rest[digits.end..];
    let is_byte = digits.len() < 4;
    let code = u32::from_str_radix(&rest[digits], radix).expect("the lexer checked the digits");
    if is_byte {
        out.push(u8::try_from(code).expect("the lexer keeps byte escapes below 256"));
    } else {
        let char = char::from_u32(code).expect("the lexer checked the code point");
        out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
    }
    after
}

fn push_escaped(out: &mut String, char: char, quote: char) {
    match char {
        '\\' => out.push_str("\\\\"),
        char if char == quote => out.extend(['\\', char]),
        char if is_printable(char) => out.push(char),
        '\x07' => out.push_str("\\a"),
        '\x08' => out.push_str("\\b"),
        '\x0c' => out.push_str("\\f"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\x0b' => out.push_str("\\v"),
        '\0'..=' ' | '\x7f' => push_hex(out, 'x', 2, u32::from(char)),
        '\u{80}'..='\u{ffff}' => push_hex(out, 'u', 4, u32::from(char)),
        _ => push_hex(out, 'U', 8, u32::from(char)),
    }
}

fn push_hex_byte(out: &mut String, byte: u8) {
    push_hex(out, 'x', 2, u32::from(byte));
}

fn push_hex(out: &mut String, letter: char, width: usize, code: u32) {
    write!(out, "\\{letter}{code:0width$x}").expect("a string takes everything");
}

/// Letters, marks, numbers, punctuation, symbols and the ASCII space, by Unicode category.
fn is_printable(char: char) -> bool {
    if char.is_ascii() {
        return matches!(char, ' '..='~');
    }
    // The standard library knows these categories, but tells only through its own escaping. In the
    // middle of a string it spells out just what is not printable.
    let mut buffer = [b'a'; 5];
    let width = char.encode_utf8(&mut buffer[1..]).len();
    let probe = str::from_utf8(&buffer[..=width]).expect("an encoded character after a letter");
    probe.escape_debug().nth(1) == Some(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_bytes_and_code_points() {
        let text = |literal| String::from_utf8(unquoted(literal)).unwrap();
        assert_eq!(text(r#""plain""#), "plain");
        assert_eq!(text(r"'it\'s'"), "it's");
        assert_eq!(text(r#""\a\b\f\n\r\t\v\\\"""#), "\x07\x08\x0c\n\r\t\x0b\\\"");
        assert_eq!(text(r#""\x41\101\u0041\U00000041""#), "AAAA");
        assert_eq!(text(r#""µ\u00B5\U0001F600x""#), "µµ😀x");
        assert_eq!(text(r"`raw \n`"), r"raw \n");
        assert_eq!(unquoted(r#""a\xc5z\377""#), b"a\xc5z\xff");
    }

    #[test]
    fn quoting_escapes_what_is_not_printable() {
        assert_eq!(quoted(b"a\"b\\c'"), r#""a\"b\\c'""#);
        assert_eq!(quoted(b"\x00\x07\n\x1f\x7f"), r#""\x00\a\n\x1f\x7f""#);
        assert_eq!(quoted("µ 😀\u{301}".as_bytes()), "\"µ 😀\u{301}\"");
        assert_eq!(quoted("\u{a0}\u{200b}\u{e0001}".as_bytes()), r#""\u00a0\u200b\U000e0001""#);
        assert_eq!(quoted(b"a\xc5z"), r#""a\xc5z""#);
    }

    #[test]
    fn single_characters_are_named_for_messages() {
        assert_eq!(quoted_char(Some('\'')), r"'\''");
        assert_eq!(quoted_char(Some('"')), "'\"'");
        assert_eq!(quoted_char(Some('\n')), r"'\n'");
        assert_eq!(quoted_char(None), "'\u{fffd}'");
        assert_eq!(code_point('q'), "U+0071 'q'");
        assert_eq!(code_point('\n'), "U+000A");
        assert_eq!(code_point('😀'), "U+1F600 '😀'");
    }
}
