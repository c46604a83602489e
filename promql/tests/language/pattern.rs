//! Regular expressions of matchers: Go's syntax in, the `regex` crate's syntax out.

use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use regex::{Regex, RegexBuilder};
use tributary_promql::Limits;
use tributary_promql::pattern::{CapturingPattern, Pattern, PatternError};

fn parse(pattern: &str) -> Result<Pattern, PatternError> {
    Pattern::parse(pattern, Limits::default().max_pattern_size)
}

/// Compiles the translation, which must always be possible.
fn compiled(pattern: &Pattern) -> Regex {
    let compiled = RegexBuilder::new(pattern.translated()).size_limit(256 << 20).build();
    compiled.unwrap_or_else(|error| panic!("{} → {error}", pattern.as_str()))
}

fn matches(pattern: &str, value: &str) -> bool {
    compiled(&parse(pattern).unwrap_or_else(|error| panic!("{error}"))).is_match(value)
}

#[test]
fn patterns_match_whole_values() {
    for (pattern, value) in [
        ("foo", "foo"),
        ("foo|bar", "bar"),
        ("a.c", "a\nc"),
        ("(?-s)a.c", "abc"),
        ("a*", ""),
        ("", ""),
        ("()", ""),
        ("|a", ""),
        ("a{2,3}", "aaa"),
        ("a{0}", ""),
        ("(ab){2}", "abab"),
        ("(?P<name>a)(?<other>b)", "ab"),
        ("(?i)FOO", "foo"),
        ("(?i:F)oo", "foo"),
        ("a(?i)b", "aB"),
        ("(a(?i)b)c", "aBc"),
        ("(?i)straße", "STRAßE"),
        ("^foo$", "foo"),
        (r"\Afoo\z", "foo"),
        ("(?m)a$\n^b", "a\nb"),
        (r"\bfoo\b", "foo"),
        (r"é\B", "é"),
        ("a*?", "aaa"),
        ("(?U)a*", "aaa"),
        ("a*(?i)*", "aaa"),
        ("a{2}(?i)?", ""),
    ] {
        assert!(matches(pattern, value), "{pattern} should match {value:?}");
    }
    for (pattern, value) in [
        ("foo", "foobar"),
        ("foo", "xfoo"),
        ("foo|bar", "foobar"),
        ("(?-s)a.c", "a\nc"),
        ("a(?i)b", "AB"),
        ("(a(?i)b)c", "abC"),
        (r"\bfoo\b", ""),
        ("a{2,3}", "aaaa"),
        ("foo$", "foo\n"),
    ] {
        assert!(!matches(pattern, value), "{pattern} should not match {value:?}");
    }
}

#[test]
fn what_the_two_syntaxes_take_differently_has_gos_meaning() {
    for (pattern, value) in [
        // Digits, space and words are ASCII.
        (r"\d+", "123"),
        (r"\D", "٣"),
        (r"\s", "\t"),
        (r"\S", "\u{b}"),
        (r"\W", "é"),
        (r"[\d\W]+", "1é"),
        // Brackets and operators in a class are plain characters.
        ("[[]", "["),
        ("[]a]+", "]a"),
        ("[^]a]", "b"),
        ("[a&&b]+", "&ab"),
        ("[*--a]+", "*-"),
        ("[a~~b]+", "~a"),
        ("[a-]+", "a-"),
        ("[-a]+", "-a"),
        ("[a-c-e]+", "b-e"),
        (r"[\]\[\^\-]+", "]^-["),
        ("[[:alpha:]_]+", "ab_"),
        ("[[:^alpha:]]", "1"),
        ("[[:word:]]", "_"),
        // Braces that count nothing are plain characters.
        ("{", "{"),
        ("a{,5}", "a{,5}"),
        ("a{1", "a{1"),
        ("a{01}", "a{01}"),
        ("{a}", "{a}"),
        ("}", "}"),
        // Escapes of punctuation, octal and hexadecimal escapes, quotations.
        (r"\<\>\-\_\#\ ", "<>-_# "),
        (r"\101\0\x41\x{1F600}", "A\0A😀"),
        (r"\Qa.b\E+", "a.bbb"),
        (r"\Q(", "("),
        // No mode in which space and comments are skipped.
        ("a b # c", "a b # c"),
        // Classes by name.
        (r"\pL\p{Greek}\PL\P{^Lu}", "aα1A"),
        (r"[\p{Lu}\d]+", "A1"),
        (r"\P{Cs}", "a"),
        (r"[^\x{D800}-\x{DFFF}]", "a"),
        // Case is folded as Unicode does, in classes too.
        ("(?i)k", "\u{212a}"),
        ("(?i)[a-z]", "\u{17f}"),
        (r"(?i)\p{Lu}", "a"),
    ] {
        assert!(matches(pattern, value), "{pattern} should match {value:?}");
    }
    for (pattern, value) in [
        (r"\d", "٣"),
        (r"\w", "é"),
        (r"\s", "\u{b}"),
        ("[a&&b]", "c"),
        (r"\<", "a"),
        (r"\p{Cs}", "a"),
        (r"[\x{D800}-\x{DFFF}]", "a"),
        (r"(?i)\W", "\u{17f}"),
    ] {
        assert!(!matches(pattern, value), "{pattern} should not match {value:?}");
    }
}

#[test]
fn what_go_refuses_is_refused_in_its_words() {
    for (pattern, error) in [
        ("*", "missing argument to repetition operator: `*`"),
        ("a|*", "missing argument to repetition operator: `*`"),
        ("(+?)", "missing argument to repetition operator: `+?`"),
        ("(?i)*", "missing argument to repetition operator: `*`"),
        ("{2}", "missing argument to repetition operator: `{2}`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a+?{2}", "invalid nested repetition operator: `+?{2}`"),
        ("a???", "invalid nested repetition operator: `???`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{99999999999999999999}", "invalid repeat count: `{99999999999999999999}`"),
        ("(a{100}){11}", "invalid repeat count: `{11}`"),
        ("((a{10}b){10}c){11}", "invalid repeat count: `{11}`"),
        ("(", "missing closing ): `(`"),
        ("a(b|(c)", "missing closing ): `a(b|(c)`"),
        (")", "unexpected ): `)`"),
        ("a)(b", "unexpected ): `a)(b`"),
        ("[", "missing closing ]: `[`"),
        ("x[a", "missing closing ]: `[a`"),
        ("[]", "missing closing ]: `[]`"),
        ("[a-", "missing closing ]: `[a-`"),
        ("[a--b]", "invalid character class range: `a--`"),
        ("[b-a]", "invalid character class range: `b-a`"),
        ("[[:nope:]]", "invalid character class range: `[:nope:]`"),
        (r"\p{Nope}", r"invalid character class range: `\p{Nope}`"),
        (r"\p{greek}", r"invalid character class range: `\p{greek}`"),
        (r"\p{L", r"invalid character class range: `\p{L`"),
        (r"\p", r"invalid character class range: `\p`"),
        (r"\pX", r"invalid character class range: `\pX`"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        (r"\", "trailing backslash at end of expression: ``"),
        (r"\8", r"invalid escape sequence: `\8`"),
        (r"\1", r"invalid escape sequence: `\1`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\e", r"invalid escape sequence: `\e`"),
        (r"\é", r"invalid escape sequence: `\é`"),
        (r"\x", r"invalid escape sequence: `\x`"),
        (r"\xg1", r"invalid escape sequence: `\xg1`"),
        (r"\x{}", r"invalid escape sequence: `\x{}`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
        ("(?x)", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?i-)", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?i-s-m)", "invalid or unsupported Perl syntax: `(?i-s-`"),
        ("(?i", "invalid or unsupported Perl syntax: `(?i`"),
        ("(?P=a)", "invalid or unsupported Perl syntax: `(?P`"),
        ("(?<=a)", "invalid named capture: `(?<=a)`"),
        ("(?P<a", "invalid named capture: `(?P<a`"),
        ("(?P<>a)", "invalid named capture: `(?P<>`"),
        ("(?<a b>c)", "invalid named capture: `(?<a b>`"),
    ] {
        let refused = parse(pattern).expect_err(pattern).to_string();
        assert_eq!(refused, format!("error parsing regexp: {error}"), "{pattern}");
    }
}

#[test]
fn the_largest_patterns_allowed_compile_with_the_usual_limits() {
    let deep = format!("{}a|b{}", "(x".repeat(50), "y)*".repeat(50));
    for pattern in [
        ".{1000}".repeat(5),
        "[^a]{1000}".repeat(5),
        r"\W{1000}".repeat(5),
        "(?i)[a-z]{1000}".repeat(5),
        "(?i)k{1000}".repeat(5),
        "[α-ω]{1000}".repeat(5),
        r"\p{L}{50}".to_owned(),
        r"[^\p{Greek}]{50}".to_owned(),
        "a".repeat(50_000),
        "é|".repeat(25_000),
        deep,
    ] {
        let parsed = parse(&pattern).unwrap_or_else(|error| panic!("{error}"));
        let compiled = Regex::new(parsed.translated());
        assert!(compiled.is_ok(), "{}: {:?}", &pattern[..10], compiled.err());
    }
}

#[test]
fn an_empty_value_is_matched_or_not_without_running_anything() {
    for pattern in [
        "", "a", "a*", "a+", "a?", "a{0,2}", "a{0}", "a{2}", "(a|)", "a|b", "a*b*", "a*b", "(a*)+",
        "^", "$", "^$", "(?m)^$", r"\b", r"\B", r"\b|a", ".", ".*", "[^a]", "(?:)", "()()",
        "(a*){3}",
    ] {
        let pattern = parse(pattern).unwrap();
        assert_eq!(pattern.matches_empty(), compiled(&pattern).is_match(""), "{pattern:?}");
    }
}

/// Pieces that patterns are made of, valid and not.
const PIECES: [&str; 44] = [
    "a",
    "b",
    "é",
    ".",
    "*",
    "+",
    "?",
    "|",
    "(",
    ")",
    "(?:",
    "(?i)",
    "(?i:",
    "(?-s)",
    "(?m:",
    "[",
    "]",
    "[^",
    "a-z",
    "-",
    "^",
    "$",
    "{",
    "}",
    "{2}",
    "{0,3}",
    "{1,}",
    ",",
    r"\d",
    r"\W",
    r"\b",
    r"\B",
    r"\pL",
    r"\P{Greek}",
    "[:alpha:]",
    r"\Q",
    r"\E",
    r"\x41",
    r"\x{D800}",
    r"\012",
    r"\.",
    r"\",
    "(?P<n>",
    "&&",
];

fn patterns() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(PIECES.as_slice()), 0..12)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn whatever_is_accepted_compiles_and_agrees_on_the_empty_value(source in patterns()) {
        if let Ok(pattern) = parse(&source) {
            prop_assert_eq!(pattern.as_str(), &source);
            prop_assert_eq!(pattern.matches_empty(), compiled(&pattern).is_match(""));
        }
    }

    #[test]
    fn groups_change_nothing_about_what_matches(source in patterns(), value in "[ab\\n]{0,4}") {
        let most = Limits::default().max_pattern_size;
        match (parse(&source), CapturingPattern::parse(&source, most)) {
            (Ok(plain), Ok(capturing)) => {
                let regex = RegexBuilder::new(capturing.translated()).size_limit(256 << 20).build();
                let regex = regex.unwrap();
                prop_assert_eq!(regex.is_match(&value), compiled(&plain).is_match(&value));
                prop_assert_eq!(regex.captures_len(), capturing.group_names().len() + 1);
            }
            (plain, capturing) => prop_assert_eq!(plain.err(), capturing.err()),
        }
    }

    #[test]
    fn any_text_is_a_pattern_or_refused(source in any::<String>()) {
        if let Ok(pattern) = parse(&source) {
            prop_assert!(Regex::new(pattern.translated()).is_ok());
        }
    }

    #[test]
    fn a_text_without_signs_matches_itself_alone(source in "[a-zé0-9_ ]{0,12}", other in ".{0,3}") {
        let regex = compiled(&parse(&source).unwrap());
        prop_assert!(regex.is_match(&source));
        prop_assert_eq!(regex.is_match(&other), other == source);
    }
}
