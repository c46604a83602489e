//! As much HTTP/1.1 as it takes to talk to a server on loopback over one connection that stays
//! open. What is said over it is left to others.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

/// A query may take as long as Prometheus lets it.
const TIMEOUT: Duration = Duration::from_secs(150);

/// A connection to one server, opened when it is first needed and again after it broke.
#[derive(Debug)]
pub(super) struct Connection {
    address: String,
    stream: Option<BufReader<TcpStream>>,
}

/// Pairs as a form sends them.
#[derive(Debug, Default)]
pub(super) struct Form(pub(super) Vec<u8>);

impl Connection {
    pub(super) fn to(address: String) -> Self {
        Self { address, stream: None }
    }

    /// Status and body of what is at a path.
    pub(super) fn get(&mut self, path: &str) -> io::Result<(u16, Vec<u8>)> {
        self.exchange("GET", path, &[], &[])
    }

    /// Status and body of the answer to what is sent.
    pub(super) fn post(
        &mut self,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<(u16, Vec<u8>)> {
        self.exchange("POST", path, headers, body)
    }

    fn exchange(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<(u16, Vec<u8>)> {
        let mut request = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        let mut request = request.into_bytes();
        request.extend_from_slice(body);

        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(&self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(TIMEOUT))?;
                BufReader::new(stream)
            }
        };
        stream.get_mut().write_all(&request)?;
        let answer = read_answer(&mut stream)?;
        // Only now is it known to be in order for the next exchange.
        self.stream = Some(stream);
        Ok(answer)
    }
}

impl Form {
    /// Adds a pair.
    pub(super) fn add(&mut self, name: &str, value: &str) {
        if !self.0.is_empty() {
            self.0.push(b'&');
        }
        self.0.extend_from_slice(name.as_bytes());
        self.0.push(b'=');
        for byte in value.bytes() {
            if byte.is_ascii_alphanumeric() {
                self.0.push(byte);
            } else {
                self.0.extend_from_slice(format!("%{byte:02X}").as_bytes());
            }
        }
    }
}

fn read_answer(stream: &mut impl BufRead) -> io::Result<(u16, Vec<u8>)> {
    let status = line(stream)?;
    let code = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    let code = code.ok_or_else(|| invalid(&status))?;
    let (mut length, mut chunked) = (0, false);
    loop {
        let header = line(stream)?;
        if header.is_empty() {
            break;
        }
        let Some((name, value)) = header.split_once(':') else { return Err(invalid(&header)) };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().map_err(|_| invalid(&header))?,
            "transfer-encoding" => chunked = value.trim() == "chunked",
            _ => {}
        }
    }
    let mut body = Vec::new();
    if !chunked {
        take(stream, length, &mut body)?;
        return Ok((code, body));
    }
    loop {
        let size = line(stream)?;
        let size = usize::from_str_radix(size.trim(), 16).map_err(|_| invalid(&size))?;
        take(stream, size, &mut body)?;
        line(stream)?;
        if size == 0 {
            return Ok((code, body));
        }
    }
}

/// A line without its end.
fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(line.trim_end().to_owned())
}

fn take(stream: &mut impl BufRead, bytes: usize, into: &mut Vec<u8>) -> io::Result<()> {
    let begin = into.len();
    into.resize(begin + bytes, 0);
    stream.read_exact(&mut into[begin..])
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not understood: {text:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_whole_or_in_chunks() {
        let mut whole = &b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP"[..];
        assert_eq!(read_answer(&mut whole).unwrap(), (200, b"abc".to_vec()));
        assert_eq!(whole, b"HTTP");
        let mut chunks =
            &b"HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"[..];
        assert_eq!(read_answer(&mut chunks).unwrap(), (400, b"abc".to_vec()));
        assert!(read_answer(&mut &b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"[..]).is_err());
        assert!(read_answer(&mut &b"nonsense\r\n\r\n"[..]).is_err());
    }

    #[test]
    fn a_form_escapes_what_is_not_plain() {
        let mut form = Form::default();
        form.add("query", "a{b=\"é\"}");
        form.add("time", "1");
        assert_eq!(form.0, b"query=a%7Bb%3D%22%C3%A9%22%7D&time=1");
    }
}
