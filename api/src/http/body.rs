//! Answers that are written while they are sent, piece by piece, so that a large one is never in
//! memory as text. What is written is for others to say.

use std::convert::Infallible;
use std::{iter, mem};

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;

/// About so many bytes are written before they are sent.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// Something that writes itself bit by bit.
pub(crate) trait Script: Send + 'static {
    /// Writes a little more, of the order of some kilobytes. False when that was all.
    fn write(&mut self, out: &mut Vec<u8>) -> bool;
}

/// A script that is played piece by piece.
struct Pieces<S> {
    script: S,
    buffer: Vec<u8>,
    more: bool,
}

impl<S: Script> Iterator for Pieces<S> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        while self.more && self.buffer.len() < PIECE_BYTES {
            self.more = self.script.write(&mut self.buffer);
        }
        if self.buffer.is_empty() {
            return None;
        }
        let room = if self.more { PIECE_BYTES + PIECE_BYTES / 4 } else { 0 };
        Some(mem::replace(&mut self.buffer, Vec::with_capacity(room)).into())
    }
}

/// A JSON answer. What fits into one piece has its length told.
pub(crate) fn json(script: impl Script) -> Response {
    let mut pieces = Pieces { script, buffer: Vec::new(), more: true };
    let first = pieces.next().unwrap_or_default();
    let body = if pieces.more {
        let all = iter::once(first).chain(pieces);
        Body::from_stream(stream::iter(all.map(Ok::<_, Infallible>)))
    } else {
        Body::from(first)
    };
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

/// A JSON answer that is short.
pub(crate) fn short_json(text: Vec<u8>) -> Response {
    ([(CONTENT_TYPE, "application/json")], text).into_response()
}

/// A list that is written item by item, between a head and a tail.
pub(crate) struct List<T, W> {
    head: Option<Vec<u8>>,
    items: iter::Peekable<std::vec::IntoIter<T>>,
    write_item: W,
    tail: Vec<u8>,
}

impl<T, W> List<T, W> {
    pub(crate) fn new(head: Vec<u8>, items: Vec<T>, write_item: W, tail: Vec<u8>) -> Self {
        Self { head: Some(head), items: items.into_iter().peekable(), write_item, tail }
    }
}

impl<T, W> Script for List<T, W>
where
    T: Send + 'static,
    W: FnMut(&mut Vec<u8>, &T) + Send + 'static,
{
    fn write(&mut self, out: &mut Vec<u8>) -> bool {
        if let Some(head) = self.head.take() {
            out.extend_from_slice(&head);
        }
        if let Some(item) = self.items.next() {
            (self.write_item)(out, &item);
            if self.items.peek().is_some() {
                out.push(b',');
                return true;
            }
        }
        out.append(&mut self.tail);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_comes_in_pieces_and_all_of_it() {
        let items: Vec<u32> = (0..100_000).collect();
        let write = |out: &mut Vec<u8>, item: &u32| out.extend(item.to_string().bytes());
        let list = List::new(b"[".to_vec(), items.clone(), write, b"]".to_vec());
        let pieces: Vec<Bytes> = Pieces { script: list, buffer: Vec::new(), more: true }.collect();
        assert!(pieces.len() > 5 && pieces.iter().all(|piece| piece.len() < PIECE_BYTES + 100));
        let read: Vec<u32> = serde_json::from_slice(&pieces.concat()).unwrap();
        assert_eq!(read, items);
        let empty = List::new(b"[".to_vec(), vec![], write, b"]".to_vec());
        let pieces: Vec<Bytes> = Pieces { script: empty, buffer: Vec::new(), more: true }.collect();
        assert_eq!(pieces, ["[]"]);
    }
}
