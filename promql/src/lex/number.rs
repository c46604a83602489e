//! Cuts numbers and durations. Takes what looks like one; its value, if it has any, is found later.

use super::{Lexed, Lexer, fault, is_word_byte};
use crate::quote::quoted;
use crate::token::Kind;

const DECIMAL: &[u8] = b"0123456789";
const HEXADECIMAL: &[u8] = b"0123456789abcdefABCDEF";

impl Lexer<'_> {
    /// A number or a duration that begins at `start`.
    pub(super) fn number_or_duration(&mut self, start: usize) -> Lexed {
        self.at = start;
        if self.take_number() {
            return Ok(self.token(Kind::Number, start));
        }
        if self.take_units() {
            return Ok(self.token(Kind::Duration, start));
        }
        let taken = quoted(&self.text.as_bytes()[start..self.at]);
        fault(start, format!("bad number or duration syntax: {taken}"))
    }

    /// A number among the values of a series.
    pub(super) fn series_number(&mut self, start: usize) -> Lexed {
        self.at = start;
        if self.take_number() {
            return Ok(self.token(Kind::Number, start));
        }
        let taken = quoted(&self.text.as_bytes()[start..self.at]);
        fault(start, format!("bad number syntax: {taken}"))
    }

    /// Takes digits with at most one exponent and, after the first digit, at most one dot. What was
    /// taken before this says no stays taken: it is the number of a duration, or what the error
    /// message quotes.
    fn take_number(&mut self) -> bool {
        let start = self.at;
        // `0x` would be a zero and a repetition in the values of a series.
        let is_hex = !self.is_series && self.take(b"0") && self.take(b"xX");
        if is_hex {
            self.take(b"_");
        }
        let digits = if is_hex { HEXADECIMAL } else { DECIMAL };
        self.take(b".");
        self.take(digits);
        let mut dot_taken = false;
        let mut exponent_taken = false;
        while self.peek_is(|byte| b"._eE".contains(&byte) || digits.contains(&byte)) {
            if self.take(b".") {
                if dot_taken || self.take(b"_.") || is_hex {
                    return false;
                }
                dot_taken = true;
            } else if self.take(b"eE") {
                // In a hexadecimal number too: Prometheus takes the digit `e` for an exponent
                // there, unless it comes first.
                if exponent_taken {
                    return false;
                }
                exponent_taken = true;
                self.take(b"+-");
                if self.take(b"._eE") || self.is_at_end() {
                    return false;
                }
            } else if self.take(b"_") {
                if self.take(b"._eE") || self.is_at_end() {
                    return false;
                }
            } else {
                self.take_while(|byte| digits.contains(&byte));
            }
        }
        let followed_by_repetition = self.is_series && self.peek_is(|byte| byte == b'x');
        self.at > start && (followed_by_repetition || !self.peek_is(is_word_byte))
    }

    /// Takes the unit after the number of a duration, and further numbers with units.
    fn take_units(&mut self) -> bool {
        if !self.take(b"smhdwy") {
            return false;
        }
        // The second letter of `ms`. A unit such as `hs` is refused with the duration's value.
        self.take(b"s");
        while self.take(DECIMAL) {
            self.take_while(|byte| byte.is_ascii_digit());
            if !self.take(b"smhdw") {
                return false;
            }
            self.take(b"s");
        }
        if self.peek_is(is_word_byte) {
            self.at += 1;
            return false;
        }
        true
    }

    fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }
}
