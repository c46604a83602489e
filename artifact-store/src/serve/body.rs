//! The bytes of a file as the body of an answer: read a piece at a time, off the threads that must
//! not block, and only when the peer has taken the piece before. The file stays until the end.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use bytes::Bytes;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_stream::Stream;

use crate::spool::OpenArtifact;

/// Bytes read at once. An artifact of this size or less is read in one go.
const PIECE_BYTES: u64 = 256 << 10;

/// A body with these bytes of the file, at least the first of which have been read.
pub(super) async fn of_file(open: Arc<OpenArtifact>, wanted: Range<u64>) -> io::Result<Body> {
    let start = wanted.start;
    let first = PIECE_BYTES.min(wanted.end - start);
    let opened = Arc::clone(&open);
    let read = spawn_blocking(move || {
        let mut file = opened.file().map_err(io::Error::other)?;
        if start > 0 {
            file.seek(SeekFrom::Start(start))?;
        }
        Ok::<_, io::Error>(Piece { bytes: read(&mut file, first)?, file })
    });
    let piece = read.await.map_err(io::Error::other)??;
    let rest = wanted.end - start - first;
    if rest == 0 {
        return Ok(Body::from(piece.bytes));
    }
    let next = Next::Ready(piece);
    Ok(Body::from_stream(Pieces { next, rest, _open: open }))
}

struct Piece {
    bytes: Bytes,
    file: File,
}

enum Next {
    /// Read, and not yet handed on.
    Ready(Piece),
    /// The place to go on reading.
    Wanted(File),
    Reading(JoinHandle<io::Result<Piece>>),
    Over,
}

struct Pieces {
    next: Next,
    /// Bytes that are not read yet.
    rest: u64,
    _open: Arc<OpenArtifact>,
}

impl Stream for Pieces {
    type Item = io::Result<Bytes>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let this = self.get_mut();
        loop {
            match std::mem::replace(&mut this.next, Next::Over) {
                Next::Ready(Piece { bytes, file }) => {
                    if this.rest > 0 {
                        this.next = Next::Wanted(file);
                    }
                    return Poll::Ready(Some(Ok(bytes)));
                }
                Next::Wanted(mut file) => {
                    let length = PIECE_BYTES.min(this.rest);
                    this.rest -= length;
                    this.next = Next::Reading(spawn_blocking(move || {
                        Ok(Piece { bytes: read(&mut file, length)?, file })
                    }));
                }
                Next::Reading(mut reading) => match Pin::new(&mut reading).poll(cx) {
                    Poll::Pending => {
                        this.next = Next::Reading(reading);
                        return Poll::Pending;
                    }
                    Poll::Ready(Ok(Ok(piece))) => this.next = Next::Ready(piece),
                    Poll::Ready(Ok(Err(error))) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Err(error)) => {
                        return Poll::Ready(Some(Err(io::Error::other(error))));
                    }
                },
                Next::Over => return Poll::Ready(None),
            }
        }
    }
}

/// Exactly so many bytes: a file that is shorter than it was is an error, not a short answer.
fn read(file: &mut File, length: u64) -> io::Result<Bytes> {
    let mut bytes = Vec::with_capacity(usize::try_from(length).map_err(io::Error::other)?);
    file.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(bytes.into())
}
