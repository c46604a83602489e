//! Descriptions of series, as test scripts load them.

use tributary_promql::expr::Sign;
use tributary_promql::{STALE_BITS, SeriesValue, parse_selector, parse_series};

use super::support::none;

/// The values as one line.
fn values(text: &str) -> String {
    let description = parse_series(text, &none()).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let print = |value: SeriesValue<'_>| match value {
        SeriesValue::Missing => "_".to_owned(),
        SeriesValue::Float(value) if value.to_bits() == STALE_BITS => "stale".to_owned(),
        SeriesValue::Float(value) => value.to_string(),
        SeriesValue::Histogram { first, change: None, .. } => format!("{{{first}}}"),
        SeriesValue::Histogram { first, change: Some((sign, change)), times } => {
            format!("{{{first}}}{}{times}*{{{change}}}", if sign == Sign::Plus { "+" } else { "-" })
        }
    };
    description.values().map(print).collect::<Vec<_>>().join(" ")
}

#[test]
fn values_repeat_and_change() {
    for (text, expected) in [
        ("foo 1 2 3", "1 2 3"),
        ("foo", ""),
        ("{} ", ""),
        ("{a=\"b\"} 0+10x3 5", "0 10 20 30 5"),
        ("foo -3-3x2", "-3 -6 -9"),
        ("foo 1x3", "1 1 1 1"),
        ("foo _ _x2 1 _", "_ _ _ 1 _"),
        ("foo _x0 1x0", "1"),
        ("foo stale 1 stale", "stale 1 stale"),
        ("foo NaN Inf -Inf +5 .5 1e3", "NaN inf -inf 5 0.5 1000"),
        ("foo 0.1+0.2x2", "0.1 0.30000000000000004 0.5"),
        ("foo\t1\n 2", "1 2"),
        ("foo {{sum:1 count:2}} {{}}x1", "{sum:1 count:2} {} {}"),
        ("foo {{a:1}}+{{a:2}}x2", "{a:1}+0*{a:2} {a:1}+1*{a:2} {a:1}+2*{a:2}"),
        ("foo {{ buckets:[1 2] }}-{{a:2}}x0 _", "{buckets:[1 2]}-0*{a:2} _"),
    ] {
        assert_eq!(values(text), expected, "{text}");
    }
}

#[test]
fn labels_are_what_stands_before_the_values() {
    let labels = |text: &str| {
        let labels = parse_series(text, &none()).unwrap().labels;
        let pairs: Vec<_> = labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join(",")
    };
    assert_eq!(labels("foo 1"), "__name__=foo");
    assert_eq!(labels("sum{by='x', \"a b\"=`c`,} 1"), "__name__=sum,a b=c,by=x");
    assert_eq!(labels("{\"foo bar\", a=\"b\"} 1"), "__name__=foo bar,a=b");
    assert_eq!(labels("a:b{} 1"), "__name__=a:b");
    assert_eq!(labels(""), "");
}

#[test]
fn a_large_repetition_costs_nothing_until_it_is_walked() {
    let description = parse_series("foo 1x18446744073709551615 _x99999999999", &none()).unwrap();
    assert_eq!(description.items.len(), 2);
    assert_eq!(description.values().take(3).count(), 3);
}

#[test]
fn what_is_no_series_is_refused_in_prometheus_words() {
    for (text, error) in [
        ("foo{a=}", "1:7: parse error: unexpected \"}\" in label set, expected string"),
        ("foo{a!=\"b\"}", "1:6: parse error: unexpected <op:!=> in label set, expected \"=\""),
        ("foo{=}", "1:5: parse error: unexpected \"=\" in label set, expected identifier or \"}\""),
        (
            "foo{a=\"b\" c=\"d\"}",
            "1:11: parse error: unexpected identifier \"c\" in label set, expected \",\" or \"}\"",
        ),
        ("foo{} 1+ 2", "1:9: parse error: unexpected \" \" in series values"),
        ("foo{}1", "1:6: parse error: unexpected number \"1\" in series values"),
        ("foo _1", "1:6: parse error: unexpected number \"1\""),
        (
            "foo gone",
            "1:5: parse error: unexpected identifier \"gone\" in series values, \
             expected number or \"stale\"",
        ),
        ("foo 1x", "1:7: parse error: unexpected end of input in series values"),
        (
            "foo 1x1.5",
            "1:7: parse error: invalid repetition in series values: strconv.ParseUint: \
             parsing \"1.5\": invalid syntax",
        ),
        ("foo 5m", "1:5: parse error: bad number syntax: \"5\""),
        ("foo 1 ?", "1:7: parse error: unexpected character in series sequence: '?'"),
        ("foo {{sum:1", "1:5: parse error: unterminated histogram description"),
        ("foo {{a:1}}+{{b:2}}", "1:20: parse error: unexpected end of input in series values"),
    ] {
        assert_eq!(parse_series(text, &none()).unwrap_err().to_string(), error, "{text}");
    }
}

#[test]
fn a_selector_alone_gives_its_matchers() {
    let matchers = |text: &str| {
        let matchers = parse_selector(text, &none()).map_err(|error| error.to_string())?;
        Ok::<_, String>(matchers.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    };
    assert_eq!(matchers("foo").as_deref(), Ok("__name__=\"foo\""));
    assert_eq!(matchers("foo{b!~'c',a=\"b\"}").as_deref(), Ok("__name__=\"foo\",a=\"b\",b!~\"c\""));
    assert_eq!(matchers("{}").as_deref(), Ok(""));
    assert_eq!(matchers("foo{__name__='bar'}").as_deref(), Ok("__name__=\"bar\",__name__=\"foo\""));
    let refused = |text| matchers(text).unwrap_err();
    assert_eq!(refused("foo[5m]"), "1:4: parse error: unexpected \"[\"");
    assert_eq!(refused("foo offset 5m"), "1:5: parse error: unexpected <offset>");
    assert_eq!(refused("sum(foo)"), "1:4: parse error: unexpected \"(\"");
    assert_eq!(refused("1"), "1:1: parse error: unexpected number \"1\"");
    assert_eq!(refused(""), "unknown position: parse error: unexpected end of input");
}
