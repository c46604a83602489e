//! Bytes that were checked: only here does a [`VerifiedArtifact`] come into being, so that whoever
//! has one need not ask. What the bytes mean is for the decoder.

use bytes::Bytes;
use core_workcoord::artifact::Checksum;
use sha2::{Digest, Sha256};

/// The bytes of an artifact, of the size and with the checksum that were announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedArtifact {
    bytes: Bytes,
    checksum: Checksum,
}

/// The bytes are not those that were announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// There are more or fewer of them.
    #[error("the artifact has {actual} bytes instead of {expected}")]
    Size {
        /// As announced.
        expected: u64,
        /// As far as they were counted.
        actual: u64,
    },
    /// They are others.
    #[error("the artifact's checksum is {actual} instead of {expected}")]
    Checksum {
        /// As announced.
        expected: Checksum,
        /// As computed.
        actual: Checksum,
    },
}

/// Hashes an artifact as it comes, and never takes more of it than was announced.
#[derive(Debug)]
pub(crate) struct Verifier {
    size_bytes: u64,
    checksum: Checksum,
    bytes: Vec<u8>,
    hash: Sha256,
}

impl VerifiedArtifact {
    /// Checks bytes that are all there.
    pub fn check(bytes: Bytes, size_bytes: u64, checksum: Checksum) -> Result<Self, Mismatch> {
        let found = bytes.len() as u64;
        if found != size_bytes {
            return Err(Mismatch::Size { expected: size_bytes, actual: found });
        }
        let actual = Checksum(Sha256::digest(&bytes).into());
        if actual != checksum {
            return Err(Mismatch::Checksum { expected: checksum, actual });
        }
        Ok(Self { bytes, checksum })
    }

    /// The bytes.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Their SHA-256.
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }
}

impl Verifier {
    pub(crate) fn new(size_bytes: u64, checksum: Checksum) -> Self {
        /// What is set aside before the first byte: the announcement may be wrong.
        const AHEAD_BYTES: u64 = 4 << 20;
        let ahead = usize::try_from(size_bytes.min(AHEAD_BYTES)).expect("a few megabytes");
        Self { size_bytes, checksum, bytes: Vec::with_capacity(ahead), hash: Sha256::new() }
    }

    /// Bytes taken so far.
    pub(crate) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Takes the next bytes.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), Mismatch> {
        let actual = self.len() + bytes.len() as u64;
        if actual > self.size_bytes {
            return Err(Mismatch::Size { expected: self.size_bytes, actual });
        }
        self.hash.update(bytes);
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Starts again.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.hash = Sha256::new();
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.len() == self.size_bytes
    }

    /// All bytes are there.
    pub(crate) fn finish(self) -> Result<VerifiedArtifact, Mismatch> {
        if !self.is_complete() {
            return Err(Mismatch::Size { expected: self.size_bytes, actual: self.len() });
        }
        let actual = Checksum(self.hash.finalize().into());
        if actual != self.checksum {
            return Err(Mismatch::Checksum { expected: self.checksum, actual });
        }
        Ok(VerifiedArtifact { bytes: self.bytes.into(), checksum: actual })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_too_many_too_few_or_wrong_is_found_in_one_piece_or_several() {
        let good = Bytes::from_static(b"artifact");
        let sum = Checksum(Sha256::digest(&good).into());
        let verified = VerifiedArtifact::check(good.clone(), 8, sum).unwrap();
        assert_eq!((verified.bytes(), verified.checksum()), (&good, sum));
        let stream = |text: &[u8]| {
            let mut verifier = Verifier::new(8, sum);
            text.chunks(3).try_for_each(|piece| verifier.take(piece))?;
            verifier.finish()
        };
        assert_eq!(stream(&good), Ok(verified));
        for bad in [&b"artifac"[..], b"artifact!", b"artifacT", b""] {
            let whole = VerifiedArtifact::check(Bytes::copy_from_slice(bad), 8, sum).unwrap_err();
            let pieces = stream(bad).unwrap_err();
            assert_eq!(std::mem::discriminant(&whole), std::mem::discriminant(&pieces));
        }
    }
}
