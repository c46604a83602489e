//! The house rules held against this repository, and against small houses with one thing wrong
//! each, to show that every rule can fail. The rules are in `tributary_integration::tidy`.

use std::env;
use std::path::Path;

use tributary_integration::tidy::{Finding, Tree, check};

#[test]
fn this_house_is_tidy() {
    // Asked for now, not when this was compiled: clones may share a target directory, and with it
    // this very program.
    let here = env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let root = Path::new(&here).parent().expect("the crate is in a folder");
    let tree = Tree::read(root).expect("the repository can be read");
    for path in ["Cargo.lock", "README.md", "integration/tests/tidy.rs", ".ci/run"] {
        assert!(tree.text(path).is_some(), "{path} was not read, so it was not checked either");
    }
    let findings: Vec<String> = check(&tree).iter().map(Finding::to_string).collect();
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

/// A house where every rule is kept. Words that would be found in code stand in comments and text.
const TIDY_HOUSE: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        r#"
[workspace.dependencies]
core-workcoord = { path = "core-workcoord" }

[package]
name = "tributary"

[dependencies]
tributary-api.workspace = true
"#,
    ),
    (
        "Cargo.lock",
        r#"
[[package]]
name = "bytes"

[[package]]
name = "syn"

[[package]]
name = "syn"
"#,
    ),
    ("README.md", "| `core-workcoord/` | `proto/` | `api/` | `worker/` | `bench/` |\n"),
    (
        "docs/decisions/0001-maps.md",
        r#"# Maps

## Context

## Choice

## Consequence
"#,
    ),
    (
        "core-workcoord/Cargo.toml",
        r#"
[package]
name = "core-workcoord"

[features]
sabotage = []
"#,
    ),
    (
        "core-workcoord/src/lib.rs",
        r#"//! No tokio, no HashMap here.

/// Not `todo!()` either.
pub const SAYS: &str = "async println!";
"#,
    ),
    (
        "proto/Cargo.toml",
        r#"
[package]
name = "tributary-proto"

[dependencies]
core-workcoord.workspace = true
"#,
    ),
    (
        "proto/src/lib.rs",
        r#"//! Wire.
mod wire {
    tonic::include_proto!("x");
}
"#,
    ),
    (
        "api/Cargo.toml",
        r#"
[package]
name = "tributary-api"

[dependencies]
tributary-proto = { path = "../proto" }
tokio = "1"
"#,
    ),
    ("worker/Cargo.toml", "[package]\nname = \"tributary-worker\"\n"),
    (
        "bench/Cargo.toml",
        r#"
[package]
name = "tributary-bench"

[dev-dependencies]
core-workcoord = { path = "../core-workcoord", features = ["sabotage"] }
"#,
    ),
];

fn tidy_house() -> Tree {
    TIDY_HOUSE.iter().fold(Tree::default(), |tree, (path, text)| tree.with(path, text))
}

/// The findings of the tidy house with one file replaced, as text.
fn spoiled(path: &str, text: &str) -> Vec<String> {
    check(&tidy_house().with(path, text)).iter().map(Finding::to_string).collect()
}

#[track_caller]
fn bites(path: &str, text: &str, finding: &str) {
    let findings = spoiled(path, text);
    let hit = matches!(findings.as_slice(), [only] if only.starts_with(finding));
    assert!(hit, "expected only {finding:?}, found {findings:#?}");
}

#[test]
fn a_tidy_house_gives_no_finding() {
    assert_eq!(check(&tidy_house()), []);
}

#[test]
fn a_file_without_a_promise_is_found() {
    bites("api/src/lib.rs", "pub fn f() {}\n", "api/src/lib.rs:1: the file does not begin");
    bites("api/src/lib.rs", "\n//! Late.\n", "api/src/lib.rs:1: the file does not begin");
    bites("api/build.rs", "// No promise.\n", "api/build.rs:1: the file does not begin");
}

#[test]
fn a_file_of_501_lines_is_found_and_one_of_500_is_not() {
    let file = |lines: usize| format!("//! Long.\n{}", "\n".repeat(lines - 1));
    assert_eq!(spoiled("api/src/lib.rs", &file(500)), Vec::<String>::new());
    bites("api/src/lib.rs", &file(501), "api/src/lib.rs:501: 501 lines, 500 are allowed");
}

#[test]
fn whitespace_at_the_end_of_a_line_is_found() {
    bites("api/src/lib.rs", "//! A.\n\n/// B. \n", "api/src/lib.rs:3: whitespace at the end");
    bites("docs/use.md", "One\r\n", "docs/use.md:1: whitespace at the end");
    bites(".ci/run", "echo\t\n", ".ci/run:1: whitespace at the end");
    bites("docs/use.md", "One\nTwo", "docs/use.md:2: the last line is not ended");
}

#[test]
fn unfinished_code_is_found() {
    for word in ["todo!", "unimplemented!", "dbg!"] {
        let text = format!("//! A.\nfn f() {{ /* why */ {word}(); }}\n");
        bites("api/src/a.rs", &text, &format!("api/src/a.rs:2: `{word}` is left behind"));
    }
}

#[test]
fn generated_types_outside_proto_are_found() {
    let text = "//! A.\nmod wire {\n    tonic::include_proto!(\"x\");\n}\n";
    bites("api/src/wire.rs", text, "api/src/wire.rs:3: `include_proto!` outside `proto`");
}

#[test]
fn clocks_dice_and_unordered_maps_in_a_pure_crate_are_found() {
    for (code, word) in [
        ("fn f() { let t = Instant::now(); }", "Instant::now"),
        ("use std::time::{Duration, Instant};", "time::Instant"),
        ("fn f(t: std::time::Instant) {}", "time::Instant"),
        ("use std::time::SystemTime;", "SystemTime"),
        ("fn f() { rand::random(); }", "rand::"),
        ("fn f() { thread_rng(); }", "thread_rng"),
        ("use std::collections::{BTreeMap, HashMap};", "HashMap"),
        ("type Names = HashSet<u8>;", "HashSet"),
    ] {
        for path in ["core-workcoord/src/a.rs", "promql/src/eval/a.rs"] {
            bites(
                path,
                &format!("//! A.\n{code}\n"),
                &format!("{path}:2: `{word}` in a pure crate"),
            );
        }
        assert_eq!(spoiled("worker/src/a.rs", &format!("//! A.\n{code}\n")), Vec::<String>::new());
    }
}

#[test]
fn waiting_files_sockets_and_printing_in_a_pure_crate_are_found() {
    for (code, word) in [
        ("use tokio::sync::mpsc;", "tokio"),
        ("pub async fn f() {}", "async"),
        ("use std::{fmt, fs};", "std::fs"),
        ("use std::net::TcpStream;", "std::net"),
        ("use std::io::{self, Read};", "io::Read"),
        ("fn f(w: impl io::Write) {}", "io::Write"),
        ("fn f() { std::thread::yield_now(); }", "std::thread"),
        ("fn f() { println!(); }", "println!"),
        ("fn f() { eprintln!(); }", "eprintln!"),
    ] {
        let path = "core-workcoord/src/a.rs";
        bites(path, &format!("//! A.\n{code}\n"), &format!("{path}:2: `{word}` in a pure crate"));
    }
}

#[test]
fn the_suites_parts_are_for_the_tests_of_the_top_alone() {
    let house = tidy_house()
        .with(
            "README.md",
            "| `core-workcoord/` | `proto/` | `api/` | `worker/` | `bench/` | `integration/` |\n",
        )
        .with("integration/Cargo.toml", "[package]\nname = \"tributary-integration\"\n");
    let bench = |heading: &str| {
        format!(
            "[package]\nname = \"tributary-bench\"\n[{heading}]\ntributary-integration = \"1\"\n"
        )
    };
    let findings = |path: &str, manifest: &str| check(&house.clone().with(path, manifest));
    assert_eq!(findings("bench/Cargo.toml", &bench("dev-dependencies")), []);
    assert_eq!(findings("bench/Cargo.toml", &bench("dependencies")).len(), 1);
    let worker = bench("dev-dependencies").replace("tributary-bench", "tributary-worker");
    assert_eq!(findings("worker/Cargo.toml", &worker).len(), 1);
}

#[test]
fn a_dependency_against_the_stream_is_found() {
    let manifest = |name: &str, rest: &str| format!("[package]\nname = \"{name}\"\n{rest}\n");
    let core = manifest("core-workcoord", "[dependencies]\ntributary-proto.workspace = true");
    bites(
        "core-workcoord/Cargo.toml",
        &core,
        "core-workcoord/Cargo.toml:4: core-workcoord may not",
    );
    let proto = manifest("tributary-proto", "[dev-dependencies]\ntributary-api = \"1\"");
    bites("proto/Cargo.toml", &proto, "proto/Cargo.toml:4: proto may not depend on tributary-api");
    let api = manifest("tributary-api", "[dependencies]\ntributary-worker = { path = \"x\" }");
    bites("api/Cargo.toml", &api, "api/Cargo.toml:4: api may not depend on tributary-worker");
    let worker = manifest("tributary-worker", "[dependencies.tributary-api]");
    bites("worker/Cargo.toml", &worker, "worker/Cargo.toml:3: worker may not depend on tributary");
    let worker =
        manifest("tributary-worker", "[dependencies]\na = { package = \"tributary-api\" }");
    bites("worker/Cargo.toml", &worker, "worker/Cargo.toml:4: worker may not depend on tributary");
    let unix = manifest("tributary-worker", "[target.'cfg(unix)'.dependencies]\ntributary = \"1\"");
    bites("worker/Cargo.toml", &unix, "worker/Cargo.toml:4: worker may not depend on tributary");
    let bench = manifest("tributary-bench", "[dependencies]\ntributary = { path = \"..\" }");
    bites("bench/Cargo.toml", &bench, "bench/Cargo.toml:4: bench may not depend on tributary");
}

#[test]
fn a_crate_without_a_place_is_found() {
    let manifest = "[package]\nname = \"tributary-helpers\"\n";
    let findings = spoiled("helpers/Cargo.toml", manifest);
    assert_eq!(findings.len(), 2, "{findings:#?}");
    assert!(findings[0].starts_with("README.md:1: the code map does not name"), "{findings:#?}");
    assert!(findings[1].starts_with("helpers/Cargo.toml:1: a crate the tidy test does not know"));
}

#[test]
fn a_missing_readme_is_found() {
    let findings = check(&tidy_house().without("README.md"));
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0].to_string(), "README.md:1: there is no README");
}

#[test]
fn bugs_switched_on_outside_tests_are_found() {
    let root = "[workspace.dependencies]\nx = { path = \"x\", features = [\"sabotage\"] }\n";
    bites("Cargo.toml", root, "Cargo.toml:2: `sabotage` is switched on");
    let bench = r#"[package]
name = "tributary-bench"

[dependencies.core-workcoord]
features = [
  "sabotage",
]
"#;
    bites("bench/Cargo.toml", bench, "bench/Cargo.toml:6: `sabotage` is switched on");
    let core = "[package]\nname = \"core-workcoord\"\n[features]\ndefault = [\"sabotage\"]\n";
    bites("core-workcoord/Cargo.toml", core, "core-workcoord/Cargo.toml:4: `sabotage` is switched");
}

#[test]
fn a_second_version_of_a_shared_library_is_found() {
    for name in ["tonic", "prost", "hyper", "http", "tower", "bytes", "tokio"] {
        let package = format!("[[package]]\nname = \"{name}\"\n\n");
        let lock = format!("{package}{package}");
        bites("Cargo.lock", &lock, &format!("Cargo.lock:5: a second version of {name}"));
    }
}

#[test]
fn a_note_without_its_parts_is_found() {
    let path = "docs/decisions/0002-queues.md";
    let note = "# Queues\n\n## Context\n\n## Choice\n\n## Consequence\n";
    assert_eq!(spoiled(path, note), Vec::<String>::new());
    for part in ["## Context", "## Choice", "## Consequence"] {
        let lacking = note.replace(part, "## Other");
        bites(path, &lacking, &format!("{path}:7: the note has no `{part}`"));
    }
    bites(path, &note.replace("# Queues", "Queues"), &format!("{path}:1: the note does not begin"));
    let twice = "docs/decisions/0001-other.md";
    let findings = spoiled(twice, note);
    assert!(findings.len() == 1 && findings[0].contains("the number is taken"), "{findings:#?}");
    bites("docs/decisions/queues.md", note, "docs/decisions/queues.md:1: a note is named");
}
