//! A connection whose peer must take what it asked for: one that takes next to nothing for a while
//! is closed. Counts bytes and time; what they mean is for HTTP.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// A stream that fails when its peer stalls.
#[derive(Debug)]
pub(super) struct StallGuard<S> {
    inner: S,
    patience: Duration,
    least_bytes: usize,
    /// While something waits to be written: until when the peer has to take `least_bytes`.
    waiting: Option<Pin<Box<Sleep>>>,
    /// Bytes taken since then.
    taken: usize,
}

impl<S> StallGuard<S> {
    /// Within each stretch of `patience` in which it is waited for, the peer must take so many
    /// bytes or all there are.
    pub(super) fn new(inner: S, patience: Duration, least_bytes: usize) -> Self {
        Self { inner, patience, least_bytes, waiting: None, taken: 0 }
    }

    /// The peer did not take anything just now.
    fn blocked<T>(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| {
            self.taken = 0;
            Box::pin(sleep(patience))
        });
        ready!(waiting.as_mut().poll(cx));
        if self.taken < self.least_bytes {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.taken = 0;
        waiting.as_mut().reset(Instant::now() + patience);
        // The new time must be waited for as well.
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn written(&mut self, bytes: usize) {
        self.taken = self.taken.saturating_add(bytes);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.inner).poll_write(cx, bytes) {
            Poll::Ready(result) => {
                self.written(*result.as_ref().unwrap_or(&0));
                Poll::Ready(result)
            }
            Poll::Pending => self.blocked(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.inner).poll_write_vectored(cx, bytes) {
            Poll::Ready(result) => {
                self.written(*result.as_ref().unwrap_or(&0));
                Poll::Ready(result)
            }
            Poll::Pending => self.blocked(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    /// Everything there was is taken: nobody is waited for.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.inner).poll_flush(cx) {
            Poll::Ready(result) => {
                self.waiting = None;
                Poll::Ready(result)
            }
            Poll::Pending => self.blocked(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.inner).poll_shutdown(cx) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => self.blocked(cx),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_is_given_up_and_one_that_is_slow_is_not() {
        let (near, mut far) = duplex(100);
        let mut guard = StallGuard::new(near, PATIENCE, 50);
        let begun = Instant::now();
        let failed = guard.write_all(&[0; 1000]).await.unwrap_err();
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
        assert_eq!(begun.elapsed().as_secs(), 10);
        far.read_exact(&mut [0; 100]).await.unwrap();

        let (near, mut far) = duplex(100);
        let mut guard = StallGuard::new(near, PATIENCE, 50);
        let slow = async {
            // Ten bytes a second: slow, and fast enough.
            for _ in 0..100 {
                sleep(Duration::from_secs(1)).await;
                far.read_exact(&mut [0; 10]).await.unwrap();
            }
        };
        let write = async { guard.write_all(&[0; 1000]).await };
        let (written, ()) = tokio::join!(write, slow);
        written.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_a_byte_now_and_then_is_given_up_too() {
        let (near, mut far) = duplex(100);
        let mut guard = StallGuard::new(near, PATIENCE, 50);
        let drip = async {
            loop {
                sleep(Duration::from_secs(9)).await;
                if far.read_exact(&mut [0; 1]).await.is_err() {
                    break;
                }
            }
        };
        let write = async { guard.write_all(&[0; 1000]).await };
        let failed = tokio::select! {
            written = write => written.unwrap_err(),
            () = drip => unreachable!("it drips for ever"),
        };
        assert_eq!(failed.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn time_between_two_answers_is_not_held_against_the_peer() {
        let (near, mut far) = duplex(100);
        let mut guard = StallGuard::new(near, PATIENCE, 50);
        for _ in 0..3 {
            let write = async {
                guard.write_all(&[0; 120]).await.unwrap();
                guard.flush().await.unwrap();
            };
            let read = async {
                sleep(Duration::from_secs(1)).await;
                far.read_exact(&mut [0; 120]).await.unwrap();
            };
            tokio::join!(write, read);
            sleep(Duration::from_secs(60)).await;
        }
    }
}
