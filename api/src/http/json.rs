//! JSON as Prometheus writes it, straight into a buffer: floats as Go prints them, times as seconds,
//! labels as objects. What an answer is made of is `prometheus`' and `sse`'s business.

pub mod float;

use itoa::Buffer;
use tributary_promql::Labels;

pub use float::{push_float, push_float_in_full};

/// Writes a whole number.
pub fn push_int(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(Buffer::new().format(number).as_bytes());
}

/// Writes a time in milliseconds as seconds: `1435781451.781`.
pub fn push_time(out: &mut Vec<u8>, millis: i64) {
    if millis < 0 {
        out.push(b'-');
    }
    let millis = millis.unsigned_abs();
    out.extend_from_slice(Buffer::new().format(millis / 1000).as_bytes());
    let fraction = millis % 1000;
    if fraction != 0 {
        let digit = |power: u64| b'0' + u8::try_from(fraction / power % 10).unwrap_or_default();
        out.extend_from_slice(&[b'.', digit(100), digit(10), digit(1)]);
    }
}

/// Writes a float between quotes, as samples have it.
pub fn push_quoted_float(out: &mut Vec<u8>, value: f64) {
    out.push(b'"');
    push_float(out, value);
    out.push(b'"');
}

/// Writes a float as a number; those that JSON has no number for as a string: `"NaN"`, `"+Inf"`,
/// `"-Inf"`.
pub fn push_number(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() { push_float(out, value) } else { push_quoted_float(out, value) }
}

/// Writes a string.
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut written = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte >= b' ' && *byte != b'"' && *byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[written..at]);
        written = at + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => {
                let (high, low) = (usize::from(other >> 4), usize::from(other & 15));
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
            }
        }
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

/// Writes pairs of texts as an object.
pub fn push_pairs<'a>(out: &mut Vec<u8>, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
    out.push(b'{');
    for (place, (name, value)) in pairs.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        push_text(out, name);
        out.push(b':');
        push_text(out, value);
    }
    out.push(b'}');
}

/// Writes all labels as an object, the metric's name among them.
pub fn push_labels(out: &mut Vec<u8>, labels: &Labels) {
    push_pairs(out, labels.iter());
}

/// Writes texts as an array.
pub fn push_texts<T: AsRef<str>>(out: &mut Vec<u8>, texts: &[T]) {
    out.push(b'[');
    for (place, text) in texts.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        push_text(out, text.as_ref());
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_are_seconds_with_as_many_digits_as_it_takes() {
        for (millis, text) in [
            (0, "0"),
            (1, "0.001"),
            (-1, "-0.001"),
            (1_435_781_451_781, "1435781451.781"),
            (1_435_781_451_700, "1435781451.700"),
            (-1_500, "-1.500"),
            (60_000, "60"),
            (i64::MIN, "-9223372036854775.808"),
        ] {
            assert_eq!(written(|out| push_time(out, millis)), text);
        }
    }

    #[test]
    fn what_json_has_no_number_for_is_a_string() {
        assert_eq!(written(|out| push_number(out, f64::NAN)), r#""NaN""#);
        assert_eq!(written(|out| push_number(out, f64::INFINITY)), r#""+Inf""#);
        assert_eq!(written(|out| push_number(out, f64::NEG_INFINITY)), r#""-Inf""#);
        assert_eq!(written(|out| push_number(out, 1e21)), "1e+21");
        assert_eq!(written(|out| push_number(out, -0.0)), "-0");
    }

    #[test]
    fn labels_keep_their_order_and_escapes() {
        let labels = Labels::new([("b", "x\"\\\n\u{1}é"), ("__name__", "up")]).unwrap();
        let text = written(|out| push_labels(out, &labels));
        assert_eq!(text, "{\"__name__\":\"up\",\"b\":\"x\\\"\\\\\\n\\u0001é\"}");
        assert_eq!(written(|out| push_labels(out, &Labels::default())), "{}");
    }

    proptest! {
        #[test]
        fn every_text_reads_back(text in ".*") {
            let json = written(|out| push_text(out, &text));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }

        #[test]
        fn every_number_reads_back_as_json(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            let json = written(|out| push_number(out, value));
            let read: serde_json::Value = serde_json::from_str(&json).unwrap();
            if value.is_finite() {
                prop_assert_eq!(json.parse::<f64>().unwrap().to_bits(), bits);
                prop_assert!(read.is_number());
            } else {
                prop_assert!(read.is_string());
            }
        }
    }
}
