//! Bytes that were checked: only here does a [`VerifiedArtifact`] come into being, so that whoever
//! has one need not ask. What the bytes mean is for the decoder.

use std::fs::File;
use std::io;

use bytes::Bytes;
use core_workcoord::artifact::Checksum;
use sha2::{Digest, Sha256};

mod spill;

pub(crate) use spill::Spill;

/// The bytes of an artifact, of the size and with the checksum that were announced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedArtifact {
    bytes: Bytes,
    checksum: Checksum,
}

/// The same in a file without a name, which is gone when this is: for artifacts that are too large to
/// lie in memory whole.
#[derive(Debug)]
pub struct VerifiedFile {
    file: File,
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

/// Whether checksums are not compared: never, but in a build with deliberate bugs.
fn is_careless() -> bool {
    #[cfg(feature = "sabotage")]
    return std::env::var("TRIBUTARY_SABOTAGE").is_ok_and(|bug| bug == "TrustBytes");
    #[cfg(not(feature = "sabotage"))]
    false
}

/// Where the bytes of an artifact go as they come.
pub(crate) trait Sink {
    /// Bytes taken so far.
    fn len(&self) -> u64;
    /// Takes the next ones.
    fn put(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> + Send;
    /// Forgets all of them.
    fn clear(&mut self) -> io::Result<()>;
}

impl Sink for Vec<u8> {
    fn len(&self) -> u64 {
        Self::len(self) as u64
    }

    async fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.extend_from_slice(bytes);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        Self::clear(self);
        Ok(())
    }
}

/// Hashes an artifact as it comes, and never takes more of it than was announced.
#[derive(Debug)]
pub(crate) struct Verifier<S> {
    size_bytes: u64,
    checksum: Checksum,
    sink: S,
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

impl VerifiedFile {
    /// The file, to be read from its beginning.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The SHA-256 of its bytes.
    pub fn checksum(&self) -> Checksum {
        self.checksum
    }
}

impl Verifier<Vec<u8>> {
    /// Into memory.
    pub(crate) fn in_memory(size_bytes: u64, checksum: Checksum) -> Self {
        /// What is set aside before the first byte: the announcement may be wrong.
        const AHEAD_BYTES: u64 = 4 << 20;
        let ahead = usize::try_from(size_bytes.min(AHEAD_BYTES)).expect("a few megabytes");
        Self { size_bytes, checksum, sink: Vec::with_capacity(ahead), hash: Sha256::new() }
    }

    /// All bytes are there.
    pub(crate) fn finish(self) -> Result<VerifiedArtifact, Mismatch> {
        let (bytes, checksum) = self.checked()?;
        Ok(VerifiedArtifact { bytes: bytes.into(), checksum })
    }
}

impl Verifier<Spill> {
    /// Into a file without a name.
    pub(crate) fn in_file(size_bytes: u64, checksum: Checksum) -> io::Result<Self> {
        Ok(Self { size_bytes, checksum, sink: Spill::new()?, hash: Sha256::new() })
    }

    /// All bytes are there.
    pub(crate) async fn finish(self) -> Result<io::Result<VerifiedFile>, Mismatch> {
        let (spill, checksum) = self.checked()?;
        Ok(spill.into_file().await.map(|file| VerifiedFile { file, checksum }))
    }
}

impl<S: Sink> Verifier<S> {
    /// Bytes taken so far.
    pub(crate) fn len(&self) -> u64 {
        self.sink.len()
    }

    /// Counts and hashes the next bytes, which are then to be put.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<(), Mismatch> {
        let actual = self.len() + bytes.len() as u64;
        if actual > self.size_bytes {
            return Err(Mismatch::Size { expected: self.size_bytes, actual });
        }
        self.hash.update(bytes);
        Ok(())
    }

    /// Puts bytes that were taken where they belong.
    pub(crate) async fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.put(bytes).await
    }

    /// Starts again.
    pub(crate) fn clear(&mut self) -> io::Result<()> {
        self.hash = Sha256::new();
        self.sink.clear()
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.len() == self.size_bytes
    }

    fn checked(self) -> Result<(S, Checksum), Mismatch> {
        if !self.is_complete() {
            return Err(Mismatch::Size { expected: self.size_bytes, actual: self.len() });
        }
        let actual = Checksum(self.hash.finalize().into());
        if actual != self.checksum && !is_careless() {
            return Err(Mismatch::Checksum { expected: self.checksum, actual });
        }
        Ok((self.sink, actual))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[tokio::test]
    async fn a_byte_too_many_too_few_or_wrong_is_found_in_one_piece_or_several() {
        let good = Bytes::from_static(b"artifact");
        let sum = Checksum(Sha256::digest(&good).into());
        let verified = VerifiedArtifact::check(good.clone(), 8, sum).unwrap();
        assert_eq!((verified.bytes(), verified.checksum()), (&good, sum));
        let stream = async |text: &[u8]| {
            let mut verifier = Verifier::in_memory(8, sum);
            let mut file = Verifier::in_file(8, sum).unwrap();
            for piece in text.chunks(3) {
                verifier.take(piece)?;
                file.take(piece)?;
                verifier.put(piece).await.unwrap();
                file.put(piece).await.unwrap();
            }
            let file = file.finish().await;
            let verified = verifier.finish()?;
            let mut read = Vec::new();
            file?.unwrap().file().read_to_end(&mut read).unwrap();
            assert_eq!(read, verified.bytes().as_ref());
            Ok(verified)
        };
        assert_eq!(stream(&good).await, Ok(verified));
        for bad in [&b"artifac"[..], b"artifact!", b"artifacT", b""] {
            let whole = VerifiedArtifact::check(Bytes::copy_from_slice(bad), 8, sum).unwrap_err();
            let pieces: Mismatch = stream(bad).await.unwrap_err();
            assert_eq!(std::mem::discriminant(&whole), std::mem::discriminant(&pieces));
        }
    }
}
