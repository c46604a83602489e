//! What a link does to the connections over it.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};

use super::*;

const SOON: Duration = Duration::from_secs(5);
const SILENCE: Duration = Duration::from_millis(150);

/// Both ends of a connection over a link.
async fn connected() -> (Link, TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let link = Link::new().await.unwrap();
    link.lead_to(Some(listener.local_addr().unwrap()));
    let here = TcpStream::connect(link.address()).await.unwrap();
    let (there, _) = listener.accept().await.unwrap();
    (link, here, there)
}

async fn says(from: &mut TcpStream, to: &mut TcpStream, what: &[u8]) -> Option<Vec<u8>> {
    from.write_all(what).await.unwrap();
    let mut heard = vec![0; what.len()];
    let reading = timeout(SILENCE, to.read_exact(&mut heard)).await;
    reading.ok().map(|read| read.map(|_| heard).unwrap())
}

#[tokio::test]
async fn bytes_pass_both_ways_and_a_cut_lane_holds_them_until_it_heals() {
    let (link, mut here, mut there) = connected().await;
    assert_eq!(says(&mut here, &mut there, b"there").await.unwrap(), b"there");
    assert_eq!(says(&mut there, &mut here, b"back").await.unwrap(), b"back");
    link.change(|weather| weather.back.is_cut = true);
    assert_eq!(says(&mut there, &mut here, b"held").await, None);
    assert_eq!(says(&mut here, &mut there, b"passes").await.unwrap(), b"passes");
    link.heal();
    let mut held = [0; 4];
    timeout(SOON, here.read_exact(&mut held)).await.unwrap().unwrap();
    assert_eq!(&held, b"held");
}

#[tokio::test]
async fn a_reset_is_seen_at_both_ends_and_a_half_open_connection_at_one() {
    let (link, mut here, mut there) = connected().await;
    link.leave_half_open();
    let mut byte = [0];
    assert!(!matches!(timeout(SOON, there.read(&mut byte)).await.unwrap(), Ok(1..)));
    assert!(timeout(SILENCE, here.read(&mut byte)).await.is_err(), "the dialler knows");
    let (link, mut here, mut there) = connected().await;
    link.reset();
    assert!(timeout(SOON, here.read(&mut byte)).await.unwrap().is_err());
    assert!(timeout(SOON, there.read(&mut byte)).await.unwrap().is_err());
    link.change(|weather| weather.refuses = true);
    let mut refused = TcpStream::connect(link.address()).await.unwrap();
    assert!(!matches!(timeout(SOON, refused.read(&mut byte)).await.unwrap(), Ok(1..)));
}

#[tokio::test]
async fn delay_bandwidth_and_flipped_bits_are_as_asked() {
    let (link, mut here, mut there) = connected().await;
    link.change(|weather| weather.there.delay = Duration::from_millis(60));
    let begun = Instant::now();
    assert_eq!(says(&mut here, &mut there, b"late").await.unwrap(), b"late");
    assert!(begun.elapsed() >= Duration::from_millis(60));
    link.heal();
    link.change(|weather| weather.there.flip_in = Some(4));
    let heard = says(&mut here, &mut there, &[0; 8]).await.unwrap();
    assert_eq!(heard.iter().map(|byte| byte.count_ones()).sum::<u32>(), 2);
    link.heal();
    link.change(|weather| weather.there.bytes_per_second = Some(1_000));
    let begun = Instant::now();
    here.write_all(&[0; 200]).await.unwrap();
    let mut heard = [0; 200];
    timeout(SOON, there.read_exact(&mut heard)).await.unwrap().unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(150), "{:?}", begun.elapsed());
}
