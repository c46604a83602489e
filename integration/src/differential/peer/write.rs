//! Samples in the form of Prometheus' remote write, version 1: a protocol buffer message, then
//! snappy. The message has five fields in all and snappy may store without compressing, so both are
//! written by hand.

use tributary_promql::Labels;

/// The headers that announce such a request.
pub(super) const HEADERS: [(&str, &str); 3] = [
    ("Content-Type", "application/x-protobuf"),
    ("Content-Encoding", "snappy"),
    ("X-Prometheus-Remote-Write-Version", "0.1.0"),
];

/// The body of a request to write samples. Series are created in the order in which they come.
pub(super) fn request(samples: &[(i64, &Labels, f64)]) -> Vec<u8> {
    let mut message = Vec::new();
    for (t, labels, value) in samples {
        let mut series = Vec::new();
        for (name, value) in labels.iter() {
            let mut pair = Vec::new();
            field(&mut pair, 1, name.as_bytes());
            field(&mut pair, 2, value.as_bytes());
            field(&mut series, 1, &pair);
        }
        let mut sample = vec![1 << 3 | 1];
        sample.extend_from_slice(&value.to_bits().to_le_bytes());
        sample.push(2 << 3);
        varint(&mut sample, t.cast_unsigned());
        field(&mut series, 2, &sample);
        field(&mut message, 1, &series);
    }
    stored(&message)
}

/// A field that has a length.
fn field(into: &mut Vec<u8>, number: u8, bytes: &[u8]) {
    into.push(number << 3 | 2);
    varint(into, bytes.len() as u64);
    into.extend_from_slice(bytes);
}

fn varint(into: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = (number & 0x7f).to_le_bytes()[0];
        number >>= 7;
        if number == 0 {
            into.push(low);
            return;
        }
        into.push(low | 0x80);
    }
}

/// Snappy's block format, with everything in pieces that are stored as they are.
fn stored(bytes: &[u8]) -> Vec<u8> {
    let mut block = Vec::with_capacity(bytes.len() + bytes.len() / 1000 + 16);
    varint(&mut block, bytes.len() as u64);
    for piece in bytes.chunks(60_000) {
        let last = u16::try_from(piece.len() - 1).expect("a piece has at most 60,000 bytes");
        // A piece whose length less one follows in two bytes.
        block.push(61 << 2);
        block.extend_from_slice(&last.to_le_bytes());
        block.extend_from_slice(piece);
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_bytes_that_remote_write_wants() {
        let labels = Labels::new([("__name__", "m")]).unwrap();
        let body = request(&[(300, &labels, 1.0)]);
        let message = [
            [0x0a, 29].as_slice(),
            &[0x0a, 13, 0x0a, 8],
            b"__name__",
            &[0x12, 1],
            b"m",
            &[0x12, 12, 0x09],
            &1.0_f64.to_le_bytes(),
            &[0x10, 0xac, 0x02],
        ]
        .concat();
        let block = [&[31, 61 << 2, 30, 0], message.as_slice()].concat();
        assert_eq!(body, block);
    }
}
