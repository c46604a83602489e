//! The series in front of a sample: its name and labels as they are written, to sorted labels.

use memchr::{memchr, memchr2};
use tributary_promql::Labels;
use tributary_promql::matcher::METRIC_NAME;

use super::{Format, number, trim_start};
use crate::schema::Kind;

/// What the meaning of a written series depends on besides its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeyRules {
    pub(super) format: Format,
    pub(super) kind: Kind,
}

impl KeyRules {
    /// The label whose value is a bound and has one spelling, if the kind has one.
    pub(super) fn bound_label(self) -> Option<&'static str> {
        match self.kind {
            Kind::Histogram => Some("le"),
            Kind::Summary => Some("quantile"),
            _ => None,
        }
    }
}

/// Length of the series in front of a line, found without understanding it.
pub(super) fn key_len(line: &[u8], format: Format) -> Option<usize> {
    let name = line.iter().position(|b| matches!(b, b'{' | b' ' | b'\t')).unwrap_or(line.len());
    let blanks = match format {
        Format::OpenMetrics => 0,
        Format::Prometheus => line.len() - name - trim_start(&line[name..]).len(),
    };
    if line.get(name + blanks) != Some(&b'{') {
        return (name > 0).then_some(name);
    }
    let mut at = name + blanks + 1;
    loop {
        at += memchr2(b'"', b'}', &line[at..])?;
        if line[at] == b'}' {
            return Some(at + 1);
        }
        at += quoted_len(&line[at..])?;
    }
}

/// Length of the quoted text in front of `text`, quotes included.
fn quoted_len(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// Replaces the three escapes there are; a backslash before anything else is a backslash.
pub(super) fn unescape(text: &str) -> String {
    if memchr(b'\\', text.as_bytes()).is_none() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let escaped = match (c, rest.as_str().as_bytes().first()) {
            ('\\', Some(b'n')) => '\n',
            ('\\', Some(b'\\')) => '\\',
            ('\\', Some(b'"')) => '"',
            _ => {
                out.push(c);
                continue;
            }
        };
        out.push(escaped);
        rest.next();
    }
    out
}

/// The name of a family, perhaps quoted, in front of a metadata line, and what follows it.
pub(super) fn family_name(text: &[u8]) -> Option<(String, &[u8])> {
    if text.first() == Some(&b'"') {
        let len = quoted_len(text)?;
        let name = std::str::from_utf8(&text[1..len - 1]).ok()?;
        return Some((unescape(name), &text[len..]));
    }
    let len = text.iter().position(|b| matches!(b, b' ' | b'\t')).unwrap_or(text.len());
    let name = std::str::from_utf8(&text[..len]).ok()?;
    is_name(name, true).then(|| (name.to_owned(), &text[len..]))
}

fn is_name(name: &str, colons: bool) -> bool {
    let letter = |b: u8| b.is_ascii_alphabetic() || b == b'_' || (colons && b == b':');
    name.bytes().next().is_some_and(letter) && name.bytes().all(|b| letter(b) || b.is_ascii_digit())
}

/// Understands a written series.
pub(super) fn parse(raw: &[u8], rules: KeyRules) -> Result<Labels, String> {
    let text = std::str::from_utf8(raw).map_err(|_| "invalid UTF-8 in a series".to_owned())?;
    let (name, labels) = match text.find('{') {
        Some(brace) => (text[..brace].trim_end_matches([' ', '\t']), &text[brace..]),
        None => (text, ""),
    };
    let mut parser = Parser { rest: labels, format: rules.format, pairs: Vec::new(), metric: None };
    if !name.is_empty() {
        if !is_name(name, true) {
            return Err(format!("invalid metric name {name:?}"));
        }
        parser.metric = Some(name.to_owned());
    }
    if !labels.is_empty() {
        parser.braces()?;
    }
    let metric = parser.metric.ok_or_else(|| format!("metric name not set: {text}"))?;
    let mut pairs = parser.pairs;
    if let Some(bound) = rules.bound_label() {
        for (name, value) in &mut pairs {
            if name == bound
                && let Some(number) = number::parse(value)
            {
                *value = number::format_bound(number);
            }
        }
    }
    pairs.push((METRIC_NAME.to_owned(), metric));
    Labels::new(pairs).map_err(|error| format!("{error} in {text}"))
}

/// Checks what may follow a timestamp: ` # {labels} value` and perhaps a timestamp.
pub(super) fn check_exemplar(text: &[u8]) -> Option<()> {
    let text = text.strip_prefix(b" # ")?;
    let len = key_len(text, Format::OpenMetrics).filter(|_| text.starts_with(b"{"))?;
    let labels = std::str::from_utf8(&text[..len]).ok()?;
    let mut parser =
        Parser { rest: labels, format: Format::OpenMetrics, pairs: Vec::new(), metric: None };
    parser.braces().ok().filter(|()| parser.metric.is_none())?;
    let rest = text[len..].strip_prefix(b" ")?;
    let (_, len) = number::scan(rest)?;
    let rest = &rest[len..];
    if rest.is_empty() {
        return Some(());
    }
    let (seconds, len) = number::scan(rest.strip_prefix(b" ")?)?;
    (seconds.is_finite() && len + 1 == rest.len()).then_some(())
}

/// Walks over the labels in braces.
struct Parser<'a> {
    rest: &'a str,
    format: Format,
    pairs: Vec<(String, String)>,
    metric: Option<String>,
}

impl Parser<'_> {
    fn braces(&mut self) -> Result<(), String> {
        self.expect('{')?;
        loop {
            self.blanks();
            if self.take('}') {
                return self.end();
            }
            let quoted = self.rest.starts_with('"');
            let name = if quoted { self.quoted()? } else { self.label_name()? };
            self.blanks();
            if quoted && self.rest.starts_with([',', '}']) {
                if self.metric.replace(name).is_some() {
                    return Err("metric name already set".to_owned());
                }
            } else {
                self.expect('=')?;
                self.blanks();
                let value = self.quoted()?;
                self.pairs.push((name, value));
                self.blanks();
            }
            // A comma may follow the last label. The older format does not even need one between
            // two labels.
            if !self.take(',') && !self.rest.starts_with('}') && self.format == Format::OpenMetrics
            {
                return Err("expected comma or brace close after a label".to_owned());
            }
        }
    }

    fn end(&self) -> Result<(), String> {
        if self.rest.is_empty() { Ok(()) } else { Err("text after the labels".to_owned()) }
    }

    fn blanks(&mut self) {
        if self.format == Format::Prometheus {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        let rest = self.rest.strip_prefix(wanted);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn expect(&mut self, wanted: char) -> Result<(), String> {
        if self.take(wanted) { Ok(()) } else { Err(format!("expected {wanted:?} in the labels")) }
    }

    fn label_name(&mut self) -> Result<String, String> {
        let len = self.rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let (name, rest) = self.rest.split_at(len);
        if !is_name(name, false) {
            return Err("expected label name".to_owned());
        }
        self.rest = rest;
        Ok(name.to_owned())
    }

    fn quoted(&mut self) -> Result<String, String> {
        let missing = || "expected a quoted text in the labels".to_owned();
        let quoted = self.rest.starts_with('"').then(|| quoted_len(self.rest.as_bytes()));
        let len = quoted.flatten().ok_or_else(missing)?;
        let (text, rest) = self.rest.split_at(len);
        self.rest = rest;
        Ok(unescape(&text[1..len - 1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OM: KeyRules = KeyRules { format: Format::OpenMetrics, kind: Kind::Unknown };
    const CLASSIC: KeyRules = KeyRules { format: Format::Prometheus, kind: Kind::Unknown };

    fn shown(raw: &str, rules: KeyRules) -> Result<String, String> {
        assert_eq!(key_len(format!("{raw} 1").as_bytes(), rules.format), Some(raw.len()), "{raw}");
        parse(raw.as_bytes(), rules).map(|labels| labels.to_string())
    }

    #[test]
    fn series_are_understood() {
        for (raw, meant) in [
            ("up", "up"),
            ("a:b_1", "a:b_1"),
            ("up{}", "up"),
            (r#"up{b="2",a="1"}"#, r#"up{a="1", b="2"}"#),
            (r#"up{a="1",}"#, r#"up{a="1"}"#),
            (r#"up{a="x}y,\"z\\\n"}"#, r#"up{a="x}y,\"z\\\n"}"#),
            (r#"up{a="\x"}"#, r#"up{a="\\x"}"#),
            (r#"{"up.total",a="1"}"#, r#"up.total{a="1"}"#),
            (r#"{"up"}"#, "up"),
            (r#"up{"l.1"="é"}"#, r#"up{"l.1"="é"}"#),
            (r#"up{a=""}"#, "up"),
        ] {
            assert_eq!(shown(raw, OM).as_deref(), Ok(meant), "{raw}");
            assert_eq!(shown(raw, CLASSIC).as_deref(), Ok(meant), "{raw}");
        }
        let spaced = r#"up { a = "1" , b = "2" }"#;
        assert_eq!(shown(spaced, CLASSIC).as_deref(), Ok(r#"up{a="1", b="2"}"#));
    }

    #[test]
    fn bad_series_are_refused() {
        for raw in [
            "1up",
            "é",
            r#"{a="1"}"#,
            r#"up{a="1",a="2"}"#,
            r#"up{__name__="x"}"#,
            "up{1a=\"\"}",
            "up{a}",
            "up{a=}",
            r#"{"x","y"}"#,
            r#"up{"x"}"#,
            "up{,}",
            r#"up{a="1"b="2"}"#,
            r#"up{a: "1"}"#,
        ] {
            assert!(parse(raw.as_bytes(), OM).is_err(), "{raw}");
        }
        assert!(parse(b"up{a=\"\xff\"}", OM).is_err());
        for raw in [&b"up{a=\"1\" 3"[..], b"up{a=\"1} 3", b"up{a=\"\\", b"", b" 1"] {
            assert_eq!(key_len(raw, Format::OpenMetrics), None);
        }
    }

    #[test]
    fn bounds_of_buckets_have_one_spelling() {
        let rules = KeyRules { kind: Kind::Histogram, ..OM };
        assert_eq!(shown(r#"h_bucket{le="1"}"#, rules).as_deref(), Ok(r#"h_bucket{le="1.0"}"#));
        assert_eq!(shown(r#"h_bucket{le="x"}"#, rules).as_deref(), Ok(r#"h_bucket{le="x"}"#));
        let rules = KeyRules { kind: Kind::Summary, ..OM };
        assert_eq!(
            shown(r#"s{quantile="1",le="1"}"#, rules).as_deref(),
            Ok(r#"s{le="1", quantile="1.0"}"#)
        );
    }

    #[test]
    fn exemplars_are_checked() {
        for good in [" # {} 1", r#" # {a="b",c="d"} 1.5"#, r#" # {a="b"} 1 1767225600.5"#] {
            assert!(check_exemplar(good.as_bytes()).is_some(), "{good}");
        }
        for bad in [
            " ",
            " #",
            " # ",
            " # {",
            " # {}",
            " # {} x",
            " # {} 1 2 3",
            " # x 1",
            r#" # {"m"} 1"#,
            " # {} 1 NaN",
            "# {} 1",
        ] {
            assert!(check_exemplar(bad.as_bytes()).is_none(), "{bad}");
        }
    }
}
