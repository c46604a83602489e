//! Carries bytes one way over a link, as its weather has it.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::watch;
use tokio::time::sleep;

use super::{Lane, Weather};

/// Bytes taken at once. With little bandwidth fewer, so that they trickle.
const PIECE: usize = 16 << 10;

/// A trickle comes in so many pieces a second.
const TRICKLES: u64 = 20;

/// Carries bytes until either end is closed, and then closes the other.
pub(super) async fn carry(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut weather: watch::Receiver<Weather>,
    lane: fn(&Weather) -> Lane,
) {
    let mut buffer = vec![0; PIECE];
    let mut carried: u64 = 0;
    loop {
        let now = lane(&weather.borrow());
        let room = now.bytes_per_second.map_or(PIECE, |rate| {
            usize::try_from(rate / TRICKLES).unwrap_or(PIECE).clamp(1, PIECE)
        });
        let Ok(read @ 1..) = from.read(&mut buffer[..room]).await else { break };
        let now = lane(&weather.borrow());
        if !now.delay.is_zero() {
            sleep(now.delay).await;
        }
        if let Some(rate) = now.bytes_per_second {
            sleep(Duration::from_secs_f64(read as f64 / rate.max(1) as f64)).await;
        }
        // The link may be cut while bytes are on their way, and again while they wait.
        if weather.wait_for(|weather| !lane(weather).is_cut).await.is_err() {
            break;
        }
        let piece = &mut buffer[..read];
        if let Some(flip_in) = lane(&weather.borrow()).flip_in {
            flip(piece, carried, flip_in);
        }
        carried += read as u64;
        if to.write_all(piece).await.is_err() {
            break;
        }
    }
    // The other end may be gone already.
    drop(to.shutdown().await);
}

/// Flips one bit in every `flip_in` bytes of all that is carried.
fn flip(piece: &mut [u8], carried: u64, flip_in: u64) {
    let flip_in = flip_in.max(1);
    let first = (carried / flip_in + 1) * flip_in - 1;
    let mut at = first - carried;
    while let Some(byte) = usize::try_from(at).ok().and_then(|at| piece.get_mut(at)) {
        *byte ^= 1 << (at % 8);
        at += flip_in;
    }
}

#[cfg(test)]
mod tests {
    use super::flip;

    #[test]
    fn one_bit_is_flipped_in_so_many_bytes_however_they_are_cut() {
        let flipped = |cuts: &[usize]| {
            let mut carried = 0;
            let mut whole = Vec::new();
            for cut in cuts {
                let mut piece = vec![0_u8; *cut];
                flip(&mut piece, carried, 10);
                carried += *cut as u64;
                whole.extend(piece);
            }
            whole.iter().filter(|byte| byte.count_ones() == 1).count()
        };
        assert_eq!(flipped(&[100]), 10);
        assert_eq!(flipped(&[7, 3, 1, 29, 60]), 10);
        assert_eq!(flipped(&[9]), 0);
    }
}
