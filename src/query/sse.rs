//! Reads a stream of server-sent events: bytes in, however they are cut, whole events out. What the
//! events say is `frame`'s business.

/// The longest event, in bytes. A longer one is no answer of ours.
const EVENT_MAX_BYTES: usize = 16 << 20;

/// An event is longer than any of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event has more than {EVENT_MAX_BYTES} bytes")]
pub(super) struct EventTooLong;

/// The state between two pieces of a stream.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    /// The line at hand, as far as it has come.
    line: Vec<u8>,
    /// The data of the event at hand; none where it has had no data line.
    data: Option<Vec<u8>>,
    /// The last line ended with a carriage return: a line feed that follows belongs to it.
    after_return: bool,
    /// Some line has ended already, so a byte order mark is none any more.
    is_begun: bool,
}

impl EventReader {
    /// Takes the next bytes and gives the data of every event that is complete with them. Of an event
    /// that the stream breaks off in, nothing is given.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Result<Vec<String>, EventTooLong> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            if std::mem::take(&mut self.after_return) && bytes[0] == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &bytes[..end.unwrap_or(bytes.len())];
            let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
            if held + part.len() > EVENT_MAX_BYTES {
                return Err(EventTooLong);
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { break };
            self.after_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            events.extend(self.end_line());
        }
        Ok(events)
    }

    /// Takes the line at hand. Gives the event that it ends.
    fn end_line(&mut self) -> Option<String> {
        let whole = std::mem::take(&mut self.line);
        let mut line = whole.as_slice();
        if !std::mem::replace(&mut self.is_begun, true) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            let data = self.data.take()?;
            return Some(String::from_utf8_lossy(&data).into_owned());
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        // Other fields, and comments, whose name is empty, say nothing to us.
        if name == b"data" {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}data: one\n\n: a comment\r\ndata:two\r\ndata: lines\r\n\r\n\
                          event: x\nid: 3\nretry: 10\n\ndata\n\ndata:  spaced\r\rdata: half";
    const EVENTS: [&str; 4] = ["one", "two\nlines", "", " spaced"];

    #[test]
    fn events_are_the_same_however_the_bytes_are_cut() {
        for piece in 1..=STREAM.len() {
            let mut reader = EventReader::default();
            let pieces = STREAM.as_bytes().chunks(piece);
            let events: Vec<String> =
                pieces.flat_map(|piece| reader.read(piece).unwrap()).collect();
            assert_eq!(events, EVENTS, "in pieces of {piece} bytes");
        }
    }

    #[test]
    fn letters_that_are_cut_in_the_middle_come_whole() {
        let mut reader = EventReader::default();
        let bytes = "data: é€\n\n".as_bytes();
        assert!(reader.read(&bytes[..7]).unwrap().is_empty());
        assert_eq!(reader.read(&bytes[7..]).unwrap(), ["é€"]);
        assert_eq!(reader.read(b"data: \xff\n\n").unwrap(), ["\u{fffd}"]);
    }

    #[test]
    fn an_event_without_end_is_given_up() {
        let mut reader = EventReader::default();
        let piece = vec![b'x'; 1 << 20];
        let read = (0..17).try_for_each(|_| reader.read(&piece).map(drop));
        assert_eq!(read, Err(EventTooLong));
        let mut reader = EventReader::default();
        let lines = b"data: 0123456789\n".repeat(1 << 16);
        let read = (0..30).try_for_each(|_| reader.read(&lines).map(drop));
        assert_eq!(read, Err(EventTooLong), "many lines of one event are one long event");
    }
}
