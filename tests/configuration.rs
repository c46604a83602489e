//! The page of all settings, held against what the binary prints. With `TRIBUTARY_WRITE_DOCS` set,
//! the page is written anew instead.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What stands before a block that is a command's output.
const MARK: &str = "<!-- printed by: tributary ";

fn printed(arguments: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tributary"));
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("TRIBUTARY_") {
            command.env_remove(name);
        }
    }
    let output = command.args(arguments.split(' ')).output().expect("the binary starts");
    assert!(output.status.success(), "tributary {arguments} failed");
    String::from_utf8(output.stdout).expect("text")
}

/// The page with every marked block as it should be, and how many there are.
fn renewed(page: &str) -> (String, usize) {
    let mut out = String::new();
    let mut blocks = 0;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(rest) = line.strip_prefix(MARK) else { continue };
        let arguments = rest.strip_suffix(" -->").expect("the mark ends on its line");
        blocks += 1;
        assert_eq!(lines.next(), Some("```toml"), "a block follows {line}");
        lines.by_ref().find(|line| *line == "```").expect("the block ends");
        out.push_str(&format!("```toml\n{}```\n", printed(arguments)));
    }
    (out, blocks)
}

#[test]
fn the_page_of_settings_says_what_the_binary_prints() {
    // Asked for now, not when this was compiled: clones may share a target directory.
    let root = env::var_os("CARGO_MANIFEST_DIR").expect("cargo runs the tests");
    let path = Path::new(&root).join("docs/configuration.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let (renewed, blocks) = renewed(&page);
    assert!(blocks > 0, "the page shows no command's settings");
    if env::var_os("TRIBUTARY_WRITE_DOCS").is_some() {
        fs::write(&path, renewed).expect("the page can be written");
        return;
    }
    let first = page.lines().zip(renewed.lines()).find(|(page, renewed)| page != renewed);
    assert!(
        page == renewed,
        "docs/configuration.md is not what the binary prints; first difference: {first:?}. Write \
         it anew with TRIBUTARY_WRITE_DOCS=1 cargo test --workspace --test configuration"
    );
}
