//! Text in both formats, as a user would have it.
#![allow(clippy::unwrap_used, reason = "a story that can't go on has failed")]
#![allow(clippy::cast_possible_truncation, reason = "small figures, on machines of 64 bits")]

use tributary_segment::{Format, Kind, ReadError, TextParser};

/// All samples of a text as `series ts value`, or the error.
fn read(format: Format, text: &str) -> Result<Vec<String>, String> {
    let mut parser = TextParser::new(format);
    let mut samples = Vec::new();
    let result = parser.read(text.as_bytes(), |parser, sample, _| {
        let labels = parser.labels(sample.series);
        samples.push(format!("{labels} {} {:?}", sample.ts, sample.value));
        Ok::<(), std::convert::Infallible>(())
    });
    match result {
        Ok(()) => Ok(samples),
        Err(ReadError::Text(error)) => Err(error.to_string()),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn openmetrics_has_seconds_and_ends_with_eof() {
    let text = r#"# HELP http_requests Requests \"served\".\nAll of them.
# TYPE http_requests counter
# UNIT x_seconds seconds
http_requests_total{code="200",path="/a b}\"\\\n"} 1027 1395066363.123
http_requests_total{code="500"} 3 1395066363.123 # {trace_id="x"} 0.5 1395066363.1
# TYPE go_threads gauge
go_threads 18 1395066363
{"dotted.name","label.two"="ü"} NaN -1.5
x +Inf 0
x -1e3 1e3
# EOF
"#;
    let expected = [
        r#"http_requests_total{code="200", path="/a b}\"\\\n"} 1395066363123 1027.0"#,
        r#"http_requests_total{code="500"} 1395066363123 3.0"#,
        "go_threads 1395066363000 18.0",
        r#"dotted.name{"label.two"="ü"} -1500 NaN"#,
        "x 0 inf",
        "x 1000000 -1000.0",
    ];
    assert_eq!(read(Format::OpenMetrics, text).unwrap(), expected);
    // A unit may be empty.
    assert!(read(Format::OpenMetrics, "# UNIT http_requests \n# EOF\n").unwrap().is_empty());
    // The last line needs no end.
    assert_eq!(read(Format::OpenMetrics, text.trim_end()).unwrap(), expected);
}

#[test]
fn the_older_format_has_milliseconds_comments_and_any_blanks() {
    let text = "# HELP up Is it?\n# TYPE up untyped\n\n   # just a comment\n#another\n\
        up{a=\"1\"} 1 1395066363000\nup { b = \"2\" ,}\t2\t1395066363001\n  up 3 5  \n";
    let expected = [r#"up{a="1"} 1395066363000 1.0"#, r#"up{b="2"} 1395066363001 2.0"#, "up 5 3.0"];
    assert_eq!(read(Format::Prometheus, text).unwrap(), expected);
}

#[test]
fn the_end_of_a_text_tells_its_format() {
    for (end, format) in [
        ("up 1 1\n# EOF\n", Format::OpenMetrics),
        ("up 1 1\n# EOF", Format::OpenMetrics),
        ("# EOF\n", Format::OpenMetrics),
        ("up 1 1\n", Format::Prometheus),
        ("# EOF\nup 1 1\n", Format::Prometheus),
        ("x # EOF\n", Format::Prometheus),
        ("", Format::Prometheus),
    ] {
        assert_eq!(Format::of_end(end.as_bytes()), format, "{end:?}");
    }
}

#[test]
fn a_bad_line_is_named_by_its_number() {
    let om = |lines: &str| read(Format::OpenMetrics, lines).unwrap_err();
    for (text, line, reason) in [
        ("a 1 1\nb{x=\"1\" 1 1\n# EOF\n", 2, "expected a series"),
        ("a 1 1\na x 1\n# EOF\n", 2, "expected a value"),
        ("a 1 1\na  1 1\n# EOF\n", 2, "expected a value"),
        ("a 1 1\n\n# EOF\n", 2, "expected a series"),
        ("a 1\n# EOF\n", 1, "expected timestamp for series {__name__=\"a\"}, got none"),
        ("a 1 # {x=\"1\"} 1\n# EOF\n", 1, "expected timestamp"),
        ("a 1 x\n# EOF\n", 1, "expected a timestamp"),
        ("a 1 NaN\n# EOF\n", 1, "invalid timestamp"),
        ("a 1 1e300\n# EOF\n", 1, "invalid timestamp"),
        ("a 1 1 1\n# EOF\n", 1, "expected an exemplar"),
        ("a 1 1\n", 1, "data does not end with # EOF"),
        ("", 0, "data does not end with # EOF"),
        ("# EOF\na 1 1\n", 2, "unexpected data after # EOF"),
        ("# TYPE a thermometer\n# EOF\n", 1, "invalid metric type \"thermometer\""),
        ("# TYPE a\n# EOF\n", 1, "expected text in TYPE"),
        ("# TYPE 1a gauge\n# EOF\n", 1, "expected metric name after TYPE"),
        ("# UNIT a_bytes seconds\n# EOF\n", 1, "unit \"seconds\" not a suffix of metric"),
        ("# hello\n# EOF\n", 1, "expected"),
        ("a{b=\"1\",b=\"2\"} 1 1\n# EOF\n", 1, "label name \"b\" is not unique"),
        ("{b=\"1\"} 1 1\n# EOF\n", 1, "metric name not set"),
        ("a 1 1\r\n# EOF\n", 1, "expected"),
    ] {
        let error = om(text);
        assert!(error.starts_with(&format!("line {line}: ")), "{text:?}: {error}");
        assert!(error.contains(reason), "{text:?}: {error}");
    }
    let classic = |lines: &str| read(Format::Prometheus, lines).unwrap_err();
    assert!(classic("a 1\n").contains("got none"));
    assert!(classic("a 1 1.5\n").contains("end of the line"));
    assert!(classic("a 1 -1\n").contains("expected a timestamp"));
    assert!(classic("# TYPE a info\n").contains("invalid metric type"));
}

#[test]
fn a_line_that_is_not_utf8_is_an_error() {
    for bad in [&b"a{b=\"\xff\"} 1 1\n"[..], b"a\xff 1 1\n", b"# HELP a \xff\n"] {
        let mut parser = TextParser::new(Format::OpenMetrics);
        let result = parser.read(bad, |_, _, _| Ok::<(), ()>(()));
        assert!(matches!(result, Err(ReadError::Text(_))), "{bad:?}");
    }
}

#[test]
fn families_say_what_their_metrics_are() {
    let mut parser = TextParser::new(Format::OpenMetrics);
    let text = "# TYPE lat_seconds histogram\n# UNIT lat_seconds seconds\n# HELP lat_seconds Slow.\n\
        lat_seconds_bucket{le=\"1\"} 1 1\nlat_seconds_sum 1 1\n# EOF\n";
    parser.read(text.as_bytes(), |_, _, _| Ok::<(), ()>(())).unwrap();
    assert_eq!(parser.labels(0).get("le"), Some("1.0"));
    let family = parser.family("lat_seconds_bucket");
    assert_eq!((family.kind, family.unit.as_str()), (Kind::Histogram, "seconds"));
    assert_eq!(family.name, "lat_seconds");
    assert_eq!(parser.family("lat_seconds_sum"), family);
}

#[test]
fn any_bytes_are_a_text_or_an_error() {
    // Mutations of good lines and plain noise, the same in every run.
    let good: &[&[u8]] = &[
        b"a{b=\"1\",c=\"\\\"\"} 1 1.5 # {x=\"y\"} 1 2",
        b"# TYPE a counter",
        b"# HELP a \\n help",
        b"{\"a b\",c=\"d\"} -1e5 1",
        b"# EOF",
    ];
    let cases = std::env::var("TRIBUTARY_FUZZ_CASES").ok().and_then(|c| c.parse().ok());
    let mut state = 7_u64;
    let mut next = |limit: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((state >> 33) % limit as u64).unwrap()
    };
    for _ in 0..cases.unwrap_or(20_000_u64) {
        let mut line = good[next(good.len())].to_vec();
        for _ in 0..next(4) {
            let at = next(line.len() + 1);
            match next(3) {
                0 if at < line.len() => line[at] = u8::try_from(next(256)).unwrap(),
                1 => line.insert(at, b"{}\",= #\\\t\n"[next(10)]),
                _ => line.truncate(at.max(1)),
            }
        }
        for format in [Format::OpenMetrics, Format::Prometheus] {
            let _ = TextParser::new(format).parse_line(&line);
        }
    }
}
