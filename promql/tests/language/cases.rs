//! The case files: what is accepted prints in its canonical form, what is refused is refused in
//! Prometheus' words.

use tributary_promql::{ErrorKind, parse};

use super::support::{cases, placeless};

#[test]
fn every_case_ends_as_it_is_written() {
    let cases = cases();
    assert!(cases.len() > 700, "{} cases", cases.len());
    for case in cases {
        let outcome = parse(&case.query, &case.options);
        let printed = outcome.as_ref().map(ToString::to_string).map_err(ToString::to_string);
        assert_eq!(printed, case.outcome, "{}: {}", case.place, case.query);
        if let Err(error) = outcome {
            assert_eq!(error.kind, ErrorKind::Language, "{}", case.place);
            assert!(error.span.start <= error.span.end, "{}: {:?}", case.place, error.span);
            assert!(error.span.end <= case.query.len(), "{}: {:?}", case.place, error.span);
        }
    }
}

#[test]
fn the_canonical_form_is_its_own_canonical_form() {
    for case in cases() {
        let Ok(canonical) = case.outcome else {
            continue;
        };
        let read = |text: &str| {
            let expr = parse(text, &case.options);
            placeless(expr.unwrap_or_else(|error| panic!("{}: {text}\n{error}", case.place)))
        };
        assert_eq!(read(&canonical), read(&case.query), "{}: {canonical}", case.place);
        assert_eq!(read(&canonical).to_string(), canonical, "{}", case.place);
        assert_eq!(read(&read(&canonical).pretty()), read(&canonical), "{}", case.place);
    }
}
