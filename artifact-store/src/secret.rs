//! Names and tokens that nobody can guess, drawn from the system's randomness. No name here is ever
//! made of what a peer says.

use std::fmt;
use std::str::FromStr;

use subtle::ConstantTimeEq as _;

/// An artifact's name in its address. Knowing it is not enough to get the artifact.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArtifactId([u8; 16]);

/// What opens the artifacts of one session. Printed only by [`Token::reveal`].
#[derive(Clone)]
pub struct Token([u8; 32]);

/// The text is not 32 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an artifact's name is 32 lower-case hex digits")]
pub struct BadArtifactId;

impl ArtifactId {
    pub(crate) fn draw() -> Self {
        Self(draw())
    }
}

impl FromStr for ArtifactId {
    type Err = BadArtifactId;

    fn from_str(text: &str) -> Result<Self, BadArtifactId> {
        read_hex(text).map(Self).ok_or(BadArtifactId)
    }
}

impl fmt::Display for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ArtifactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Token {
    pub(crate) fn draw() -> Self {
        Self(draw())
    }

    /// The text that a peer must show: 64 hex digits.
    pub fn reveal(&self) -> String {
        hex(&self.0)
    }

    /// Whether a text is this token, in a time that does not tell how much of it is right.
    pub fn opens_with(&self, shown: &str) -> bool {
        self.reveal().as_bytes().ct_eq(shown.as_bytes()).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// A file name that nobody can guess and that no other file has.
pub(crate) fn file_name(suffix: &str) -> String {
    hex(&draw::<16>()) + suffix
}

fn draw<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("a system that runs a worker has randomness");
    bytes
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string can't fail");
        text
    })
}

fn read_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let text = text.as_bytes();
    if text.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_name_reads_back_and_nothing_else_is_one() {
        let id = ArtifactId::draw();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_ne!(id, ArtifactId::draw());
        let bad = ["", "..", "../../etc/passwd", &"A".repeat(32), &"0".repeat(33), &"é".repeat(16)];
        for bad in bad {
            assert_eq!(bad.parse::<ArtifactId>(), Err(BadArtifactId), "{bad}");
        }
    }

    #[test]
    fn a_token_opens_with_its_own_text_alone_and_is_never_printed() {
        let (token, other) = (Token::draw(), Token::draw());
        assert!(token.opens_with(&token.reveal()));
        let text = token.reveal();
        for bad in ["", &text[1..], &text.to_uppercase(), &other.reveal(), &format!("{text} ")] {
            assert!(!token.opens_with(bad) || bad == text, "{bad}");
        }
        assert_eq!(format!("{token:?}"), "Token");
    }
}
