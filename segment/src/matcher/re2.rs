//! From the regular expressions of Prometheus, which are Go's, to those of the `regex` crate.
//!
//! The two are close but not the same: Go's `\d`, `\w`, `\s` and `\b` know ASCII only, classes
//! have no operators and no classes inside, a brace that starts no repetition is itself, `a**` is
//! an error, and `\Q…\E` and octal numbers exist. Everything else passes through and is checked by
//! the crate.

use std::iter::Peekable;
use std::str::Chars;

/// The most that a repetition may ask for, as in Go.
const MAX_REPEAT: u32 = 1_000;

/// Translates an expression, or says what is wrong with it.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut t = Translator { rest: pattern.chars().peekable(), out: String::new() };
    t.run()?;
    Ok(t.out)
}

struct Translator<'a> {
    rest: Peekable<Chars<'a>>,
    out: String,
}

/// What a backslash can mean both inside and outside of a class.
enum Escape {
    Char(char),
    /// The content of a class, and whether it is negated.
    Class(&'static str, bool),
    /// A Unicode class, complete.
    Unicode(String),
}

impl Translator<'_> {
    fn run(&mut self) -> Result<(), String> {
        let mut after_repeat = false;
        while let Some(c) = self.rest.next() {
            let repeat = match c {
                '*' | '+' | '?' => Some(c.to_string()),
                '{' => self.repetition()?,
                _ => None,
            };
            if let Some(repeat) = repeat {
                if after_repeat {
                    return Err(format!("invalid nested repetition operator: `{repeat}`"));
                }
                self.out.push_str(&repeat);
                if self.rest.next_if_eq(&'?').is_some() {
                    self.out.push('?');
                }
                after_repeat = true;
                continue;
            }
            after_repeat = false;
            match c {
                '\\' => self.escape_outside()?,
                '[' => self.class()?,
                '(' => self.group()?,
                '.' | '^' | '$' | '|' | ')' => self.out.push(c),
                other => self.literal(other),
            }
        }
        Ok(())
    }

    fn literal(&mut self, c: char) {
        if regex_syntax::is_meta_character(c) {
            self.out.push('\\');
        }
        self.out.push(c);
    }

    /// Takes `n}`, `n,}` or `n,m}`, if that is what follows; otherwise the brace is just a brace.
    fn repetition(&mut self) -> Result<Option<String>, String> {
        let mut ahead = self.rest.clone();
        let number = |ahead: &mut Peekable<Chars<'_>>| {
            let mut digits = String::new();
            while let Some(digit) = ahead.next_if(char::is_ascii_digit) {
                digits.push(digit);
            }
            digits
        };
        let min = number(&mut ahead);
        let comma = ahead.next_if_eq(&',').is_some();
        let max = if comma { number(&mut ahead) } else { String::new() };
        let leading_zero = |digits: &str| digits.len() > 1 && digits.starts_with('0');
        if min.is_empty()
            || leading_zero(&min)
            || leading_zero(&max)
            || ahead.next_if_eq(&'}').is_none()
        {
            return Ok(None);
        }
        let text = if comma { format!("{{{min},{max}}}") } else { format!("{{{min}}}") };
        let value = |digits: &str| digits.parse().unwrap_or(u32::MAX);
        let (low, high) = (value(&min), if max.is_empty() { value(&min) } else { value(&max) });
        if low > MAX_REPEAT || high > MAX_REPEAT || low > high {
            return Err(format!("invalid repeat count: `{text}`"));
        }
        self.rest = ahead;
        Ok(Some(text))
    }

    /// Passes a group's head on. Go has the flags i, m, s and U and no others.
    fn group(&mut self) -> Result<(), String> {
        self.out.push('(');
        if self.rest.next_if_eq(&'?').is_none() {
            return Ok(());
        }
        self.out.push('?');
        if self.rest.peek().is_some_and(|c| matches!(c, 'P' | '<')) {
            // A named group: the crate checks the name.
            return Ok(());
        }
        loop {
            match self.rest.next() {
                Some(c @ ('i' | 'm' | 's' | 'U' | '-')) => self.out.push(c),
                Some(c @ (':' | ')')) => {
                    self.out.push(c);
                    return Ok(());
                }
                _ => return Err("invalid or unsupported Perl syntax: `(?`".to_owned()),
            }
        }
    }

    fn escape_outside(&mut self) -> Result<(), String> {
        match self.rest.peek() {
            Some('A' | 'z') => {
                self.out.push('\\');
                self.out.extend(self.rest.next());
            }
            Some(c @ ('b' | 'B')) => {
                self.out.push_str(if *c == 'b' { r"(?-u:\b)" } else { r"(?-u:\B)" });
                self.rest.next();
            }
            Some('Q') => {
                self.rest.next();
                self.quoted();
            }
            _ => match self.escape()? {
                Escape::Char(c) => self.literal(c),
                Escape::Class(content, negated) => {
                    let not = if negated { "^" } else { "" };
                    self.out.push_str(&format!("[{not}{content}]"));
                }
                Escape::Unicode(class) => self.out.push_str(&class),
            },
        }
        Ok(())
    }

    fn quoted(&mut self) {
        while let Some(c) = self.rest.next() {
            if c == '\\' && self.rest.next_if_eq(&'E').is_some() {
                return;
            }
            self.literal(c);
        }
    }

    fn escape(&mut self) -> Result<Escape, String> {
        let Some(c) = self.rest.next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        let invalid = || format!("invalid escape sequence: `\\{c}`");
        Ok(match c {
            'd' | 'D' => Escape::Class("0-9", c == 'D'),
            's' | 'S' => Escape::Class(r"\t\n\x0C\r ", c == 'S'),
            'w' | 'W' => Escape::Class("0-9A-Za-z_", c == 'W'),
            'p' | 'P' => Escape::Unicode(self.unicode_class(c == 'P').ok_or_else(invalid)?),
            'a' => Escape::Char('\x07'),
            'f' => Escape::Char('\x0c'),
            'n' => Escape::Char('\n'),
            'r' => Escape::Char('\r'),
            't' => Escape::Char('\t'),
            'v' => Escape::Char('\x0b'),
            'x' => Escape::Char(self.hex().ok_or_else(invalid)?),
            // A single digit would be a reference to a group, which neither side has.
            '1'..='7' if !self.rest.peek().is_some_and(|next| next.is_digit(8)) => {
                return Err(invalid());
            }
            '0'..='7' => Escape::Char(self.octal(c).ok_or_else(invalid)?),
            c if c.is_ascii() && !c.is_ascii_alphanumeric() => Escape::Char(c),
            _ => return Err(invalid()),
        })
    }

    fn hex(&mut self) -> Option<char> {
        let mut digits = String::new();
        if self.rest.next_if_eq(&'{').is_some() {
            loop {
                match self.rest.next()? {
                    '}' => break,
                    digit => digits.push(digit),
                }
            }
        } else {
            digits.extend([self.rest.next()?, self.rest.next()?]);
        }
        if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return None;
        }
        char::from_u32(u32::from_str_radix(&digits, 16).ok()?)
    }

    fn octal(&mut self, first: char) -> Option<char> {
        let mut value = first.to_digit(8)?;
        for _ in 0..2 {
            let Some(digit) = self.rest.next_if(|c| c.is_digit(8)) else { break };
            value = value * 8 + digit.to_digit(8)?;
        }
        char::from_u32(value)
    }

    fn unicode_class(&mut self, negated: bool) -> Option<String> {
        let mut name = String::new();
        let mut negated = negated;
        match self.rest.next()? {
            '{' => loop {
                match self.rest.next()? {
                    '}' => break,
                    '^' if name.is_empty() => negated = !negated,
                    c => name.push(c),
                }
            },
            c => name.push(c),
        }
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        plain.then(|| format!(r"\{}{{{name}}}", if negated { 'P' } else { 'p' }))
    }

    /// A class, rewritten so that nothing in it has a meaning that Go does not know.
    fn class(&mut self) -> Result<(), String> {
        let missing = || "missing closing ]".to_owned();
        self.out.push('[');
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
        }
        let mut first = true;
        loop {
            let c = self.rest.next().ok_or_else(missing)?;
            if c == ']' && !first {
                self.out.push(']');
                return Ok(());
            }
            first = false;
            if c == '[' && self.rest.peek() == Some(&':') && self.ascii_class()? {
                continue;
            }
            let low = match self.class_item(c)? {
                Escape::Char(c) => c,
                Escape::Class(content, false) => {
                    self.out.push_str(content);
                    continue;
                }
                Escape::Class(content, true) => {
                    self.out.push_str(&format!("[^{content}]"));
                    continue;
                }
                Escape::Unicode(class) => {
                    self.out.push_str(&class);
                    continue;
                }
            };
            let mut ahead = self.rest.clone();
            let range = ahead.next() == Some('-') && ahead.peek().is_some_and(|c| *c != ']');
            if !range {
                self.out.push_str(&format!(r"\x{{{:x}}}", u32::from(low)));
                continue;
            }
            self.rest = ahead;
            let c = self.rest.next().ok_or_else(missing)?;
            match self.class_item(c)? {
                Escape::Char(high) if low <= high => {
                    let (low, high) = (u32::from(low), u32::from(high));
                    self.out.push_str(&format!(r"\x{{{low:x}}}-\x{{{high:x}}}"));
                }
                _ => return Err(format!("invalid character class range: `{low}-{c}`")),
            }
        }
    }

    fn class_item(&mut self, c: char) -> Result<Escape, String> {
        if c == '\\' { self.escape() } else { Ok(Escape::Char(c)) }
    }

    /// A class such as `[:alpha:]` within a class, which both sides have alike.
    fn ascii_class(&mut self) -> Result<bool, String> {
        let mut ahead = self.rest.clone();
        ahead.next();
        let mut name = String::new();
        while let Some(c) = ahead.next_if(|c| c.is_ascii_lowercase() || *c == '^') {
            name.push(c);
        }
        if ahead.next() != Some(':') || ahead.next() != Some(']') {
            return Ok(false);
        }
        self.out.push_str(&format!("[:{name}:]"));
        self.rest = ahead;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_rewritten() {
        for (go, rust) in [
            ("a.*b", "a.*b"),
            (r"\d+", "[0-9]+"),
            (r"\W", "[^0-9A-Za-z_]"),
            (r"[\d\S]", r"[0-9[^\t\n\x0C\r ]]"),
            (r"\bx\B", r"(?-u:\b)x(?-u:\B)"),
            (r"\Qa.b\E.c", r"a\.b.c"),
            (r"\Qa\b", r"a\\b"),
            ("a{2,3}?", "a{2,3}?"),
            ("a{b}", r"a\{b\}"),
            ("a{,3}", r"a\{,3\}"),
            ("a{01}", r"a\{01\}"),
            ("[a&&b]", r"[\x{61}\x{26}\x{26}\x{62}]"),
            ("[a-c[]", r"[\x{61}-\x{63}\x{5b}]"),
            ("[]a]", r"[\x{5d}\x{61}]"),
            ("[^a-]", r"[^\x{61}\x{2d}]"),
            ("[[:alpha:]_]", r"[[:alpha:]\x{5f}]"),
            (r"\101\x41\x{e9}", "AAé"),
            (r"\pL\p{^Greek}", r"\p{L}\P{Greek}"),
            ("(?i:a)(?P<x>b)(?-s).", "(?i:a)(?P<x>b)(?-s)."),
            ("a#b &~", r"a\#b \&\~"),
        ] {
            assert_eq!(translate(go).as_deref(), Ok(rust), "{go}");
        }
    }

    #[test]
    fn what_go_refuses_is_refused() {
        for bad in [
            "a**",
            "a*?*",
            "a+{2}",
            "a{1001}",
            "a{3,2}",
            r"\1",
            r"\8",
            r"\Z",
            r"\C",
            r"\E",
            r"\e",
            "[a",
            "[b-a]",
            r"[a-\d]",
            "(?x)a",
            "(?u)a",
            "(?=a)",
            "a\\",
            r"\xg0",
            r"\x{110000}",
        ] {
            assert!(translate(bad).is_err(), "{bad}");
        }
    }
}
