//! Cuts strings: quoted with escapes, or raw. What they stand for is `quote`'s.

use super::{LexFault, Lexed, Lexer, fault};
use crate::quote::code_point;
use crate::token::Kind;

impl Lexer<'_> {
    /// A string whose opening quote is taken already.
    pub(super) fn string(&mut self, start: usize, quote: char) -> Lexed {
        let is_raw = quote == '`';
        loop {
            match self.bump() {
                Some(char) if char == quote => return Ok(self.token(Kind::String, start)),
                // A replacement character is what Go makes of bytes that are no UTF-8; Prometheus
                // does not tell the two apart.
                Some(char::REPLACEMENT_CHARACTER) => return fault(start, "invalid UTF-8 rune"),
                None if is_raw => return fault(start, "unterminated raw string"),
                None => return fault(start, "unterminated quoted string"),
                Some('\n') if !is_raw => return fault(start, "unterminated quoted string"),
                Some('\\') if !is_raw => self.escape(start, quote)?,
                Some(_) => {}
            }
        }
    }

    /// An escape whose backslash is taken already.
    fn escape(&mut self, start: usize, quote: char) -> Result<(), LexFault> {
        let before = self.at;
        let (digits, radix, largest) = match self.bump() {
            Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '\\') => return Ok(()),
            Some(char) if char == quote => return Ok(()),
            Some('0'..='7') => {
                // The first digit is among those counted below.
                self.at = before;
                (3, 8, 255)
            }
            Some('x') => (2, 16, 255),
            Some('u') => (4, 16, u32::from(char::MAX)),
            Some('U') => (8, 16, u32::from(char::MAX)),
            None => return fault(start, "escape sequence not terminated"),
            Some(other) => {
                return fault(start, format!("unknown escape sequence {}", code_point(other)));
            }
        };
        let mut value = 0_u32;
        for _ in 0..digits {
            let Some(char) = self.bump() else {
                return fault(start, "escape sequence not terminated");
            };
            let Some(digit) = char.to_digit(radix) else {
                let char = code_point(char);
                return fault(start, format!("illegal character {char} in escape sequence"));
            };
            value = value.wrapping_mul(radix).wrapping_add(digit);
        }
        if value > largest || char::from_u32(value).is_none() {
            return fault(start, "escape sequence is an invalid Unicode code point");
        }
        Ok(())
    }
}
