//! Plain little-endian bytes of states, for those that travel. What is read is not trusted: it is a
//! value or an error.

/// Bytes that are no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed state of a window or group")]
pub struct BadState;

/// Windows lie well within, so that arithmetic on times of samples can't overflow.
const FARTHEST: i64 = i64::MAX / 4;

/// What is left to read.
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, BadState> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, BadState> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, BadState> {
        self.array().map(i64::from_le_bytes)
    }

    pub(crate) fn f64(&mut self) -> Result<f64, BadState> {
        self.array().map(f64::from_le_bytes)
    }

    /// A sample: its time, which is one that windows can have, and its value.
    pub(crate) fn sample(&mut self) -> Result<(i64, f64), BadState> {
        let (t, value) = (self.i64()?, self.f64()?);
        if (-FARTHEST..=FARTHEST).contains(&t) { Ok((t, value)) } else { Err(BadState) }
    }

    /// Something, or nothing.
    pub(crate) fn option<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, BadState>,
    ) -> Result<Option<T>, BadState> {
        match self.u8()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(BadState),
        }
    }

    /// How many things of a size follow: never more than there are bytes for.
    pub(crate) fn length(&mut self, size: usize) -> Result<usize, BadState> {
        let length = usize::try_from(self.u64()?).map_err(|_| BadState)?;
        if length > self.0.len() / size { Err(BadState) } else { Ok(length) }
    }

    /// Everything must have been read.
    pub(crate) fn end(self) -> Result<(), BadState> {
        if self.0.is_empty() { Ok(()) } else { Err(BadState) }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], BadState> {
        let (head, rest) = self.0.split_first_chunk().ok_or(BadState)?;
        self.0 = rest;
        Ok(*head)
    }
}

pub(crate) fn put_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_f64(out: &mut Vec<u8>, number: f64) {
    out.extend_from_slice(&number.to_le_bytes());
}

pub(crate) fn put_sample(out: &mut Vec<u8>, (t, v): (i64, f64)) {
    out.extend_from_slice(&t.to_le_bytes());
    put_f64(out, v);
}

pub(crate) fn put_option<T>(out: &mut Vec<u8>, what: Option<T>, put: impl FnOnce(&mut Vec<u8>, T)) {
    out.push(u8::from(what.is_some()));
    if let Some(what) = what {
        put(out, what);
    }
}
