//! Classes of characters and single escaped characters.

use super::translate::{ANY_CHAR_SIZE, Extent, Translator, fault, push_char};
use super::unicode::is_class_name;
use super::{PatternError, Problem};

/// A class of the size of a script or a category, roughly.
const UNICODE_CLASS_SIZE: usize = 1_000;

/// The names between `[:` and `:]`.
const POSIX_CLASSES: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct",
    "space", "upper", "word", "xdigit",
];

/// The part of a class that no text has: halves of code points in another encoding.
const SURROGATES: std::ops::RangeInclusive<u32> = 0xd800..=0xdfff;

/// A class that matches no character, and its opposite.
const NOTHING: &str = "[^\\x{0}-\\x{10ffff}]";
const ANYTHING: &str = "[\\x{0}-\\x{10ffff}]";

impl Translator<'_> {
    /// `[…]`
    pub(super) fn class(&mut self) -> Result<(), PatternError> {
        let before = self.rest;
        self.rest = &before[1..];
        let is_negated = self.rest.starts_with('^');
        self.rest = self.rest.strip_prefix('^').unwrap_or(self.rest);
        let mut class = String::from(if is_negated { "[^" } else { "[" });
        let members = class.len();
        let mut size = if is_negated { ANY_CHAR_SIZE } else { 1 };
        // A bracket that comes first is a member.
        let mut is_first = true;
        while is_first || !self.rest.starts_with(']') {
            is_first = false;
            if let Some(posix) = self.posix_class()? {
                class.push_str(&posix);
            } else if let Some(named) = self.unicode_class()? {
                class.push_str(&named);
                size = size.max(UNICODE_CLASS_SIZE);
            } else if let Some(perl) = self.perl_class() {
                class.push_str(perl);
            } else {
                size = size.max(self.range(before, &mut class)?);
            }
        }
        self.rest = &self.rest[1..];
        if class.len() == members {
            // Only surrogates were in it.
            class.push_str(NOTHING);
        }
        class.push(']');
        self.folded_atom(&class, size)
    }

    /// `[:alpha:]` or `[:^alpha:]`, inside a class only.
    fn posix_class(&mut self) -> Result<Option<String>, PatternError> {
        let Some(after) = self.rest.strip_prefix("[:") else {
            return Ok(None);
        };
        let Some(length) = after.find(":]") else {
            return Ok(None);
        };
        let name = &after[..length];
        let whole = &self.rest[..length + 4];
        if !POSIX_CLASSES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(fault(Problem::ClassRange, whole));
        }
        self.rest = &self.rest[whole.len()..];
        Ok(Some(whole.to_owned()))
    }

    /// `\pL`, `\p{Greek}`, `\P{^Greek}`.
    fn unicode_class(&mut self) -> Result<Option<String>, PatternError> {
        let before = self.rest;
        let is_upper = match before.as_bytes() {
            [b'\\', b'p', ..] => false,
            [b'\\', b'P', ..] => true,
            _ => return Ok(None),
        };
        let (length, name) = if before[2..].starts_with('{') {
            let Some(end) = before.find('}') else {
                return Err(fault(Problem::ClassRange, before));
            };
            (end + 1, &before[3..end])
        } else {
            let letter = before[2..].chars().next().map_or(0, char::len_utf8);
            (2 + letter, &before[2..2 + letter])
        };
        let bare = name.strip_prefix('^').unwrap_or(name);
        if !is_class_name(bare) {
            return Err(fault(Problem::ClassRange, &before[..length]));
        }
        self.rest = &before[length..];
        let is_negated = is_upper != name.starts_with('^');
        Ok(Some(match (bare, is_negated) {
            ("Cs", false) => NOTHING.to_owned(),
            ("Cs", true) => ANYTHING.to_owned(),
            (bare, false) => format!("\\p{{{bare}}}"),
            (bare, true) => format!("\\P{{{bare}}}"),
        }))
    }

    /// `\d` and its like, which hold ASCII only.
    fn perl_class(&mut self) -> Option<&'static str> {
        let class = match self.rest.as_bytes() {
            [b'\\', b'd', ..] => "[0-9]",
            [b'\\', b'D', ..] => "[^0-9]",
            [b'\\', b's', ..] => "[\\t\\n\\x0c\\r\\x20]",
            [b'\\', b'S', ..] => "[^\\t\\n\\x0c\\r\\x20]",
            [b'\\', b'w', ..] => "[0-9A-Za-z_]",
            [b'\\', b'W', ..] => "[^0-9A-Za-z_]",
            _ => return None,
        };
        self.rest = &self.rest[2..];
        Some(class)
    }

    /// One character of a class, or a range from one to another. Gives its weight.
    fn range(&mut self, whole_class: &str, class: &mut String) -> Result<usize, PatternError> {
        let before = self.rest;
        let low = self.class_char(whole_class)?;
        let mut high = low;
        if let [b'-', next, ..] = self.rest.as_bytes()
            && *next != b']'
        {
            self.rest = &self.rest[1..];
            high = self.class_char(whole_class)?;
            if high < low {
                let range = &before[..before.len() - self.rest.len()];
                return Err(fault(Problem::ClassRange, range));
            }
        }
        push_range(class, low, high.min(SURROGATES.start() - 1));
        push_range(class, low.max(SURROGATES.end() + 1), high);
        Ok(if high < 0x80 { 1 } else { ANY_CHAR_SIZE })
    }

    fn class_char(&mut self, whole_class: &str) -> Result<u32, PatternError> {
        if self.rest.starts_with('\\') {
            return self.escaped_char();
        }
        match self.bump() {
            Some(char) => Ok(u32::from(char)),
            None => Err(fault(Problem::MissingBracket, whole_class)),
        }
    }

    /// An escape that stands for a class or for a character.
    pub(super) fn escaped_class_or_char(&mut self) -> Result<(), PatternError> {
        if let Some(class) = self.unicode_class()? {
            return self.folded_atom(&class, UNICODE_CLASS_SIZE);
        }
        if let Some(class) = self.perl_class() {
            let size = if class.starts_with("[^") { ANY_CHAR_SIZE } else { 1 };
            return self.folded_atom(class, size);
        }
        let code = self.escaped_char()?;
        match char::from_u32(code) {
            Some(char) => self.literal(char),
            None => self.atom(0, NOTHING, Extent::character(1)),
        }
    }

    fn folded_atom(&mut self, class: &str, size: usize) -> Result<(), PatternError> {
        let extent = Extent::character(size);
        if self.flags.fold_case {
            self.atom(0, &format!("(?i:{class})"), extent)
        } else {
            self.atom(0, class, extent)
        }
    }

    /// An escape that stands for one character: punctuation, octal, hexadecimal, or a letter that C
    /// knows.
    fn escaped_char(&mut self) -> Result<u32, PatternError> {
        let before = self.rest;
        self.rest = &before[1..];
        let Some(char) = self.bump() else {
            return Err(fault(Problem::TrailingBackslash, ""));
        };
        let code = match char {
            '0' => Some(self.octal(0)),
            '1'..='7' if self.rest.starts_with(|c: char| c.is_digit(8)) => {
                Some(self.octal(u32::from(char) - u32::from('0')))
            }
            'x' => self.hexadecimal(),
            'a' => Some(0x07),
            'f' => Some(0x0c),
            'n' => Some(u32::from('\n')),
            'r' => Some(u32::from('\r')),
            't' => Some(u32::from('\t')),
            'v' => Some(0x0b),
            char if char.is_ascii() && !char.is_ascii_alphanumeric() => Some(u32::from(char)),
            _ => None,
        };
        code.ok_or_else(|| fault(Problem::Escape, &before[..before.len() - self.rest.len()]))
    }

    /// Up to two more octal digits.
    fn octal(&mut self, mut code: u32) -> u32 {
        for _ in 0..2 {
            let Some(digit) = self.rest.chars().next().and_then(|char| char.to_digit(8)) else {
                break;
            };
            code = code * 8 + digit;
            self.rest = &self.rest[1..];
        }
        code
    }

    /// Two digits, or any number of them in braces.
    fn hexadecimal(&mut self) -> Option<u32> {
        let first = self.bump()?;
        if first != '{' {
            let second = self.bump();
            return Some(first.to_digit(16)? * 16 + second?.to_digit(16)?);
        }
        let mut code = None;
        loop {
            match self.bump()? {
                '}' => return code,
                digit => {
                    let so_far = code.unwrap_or(0) * 16 + digit.to_digit(16)?;
                    if so_far > u32::from(char::MAX) {
                        return None;
                    }
                    code = Some(so_far);
                }
            }
        }
    }
}

/// Writes a range that holds no surrogate, unless it is empty.
fn push_range(class: &mut String, low: u32, high: u32) {
    let (Some(low), Some(high)) = (char::from_u32(low), char::from_u32(high)) else {
        return;
    };
    if low > high {
        return;
    }
    push_char(class, low);
    if low < high {
        class.push('-');
        push_char(class, high);
    }
}
