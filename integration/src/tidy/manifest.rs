//! Rules about crates: which may depend on which, that deliberate bugs stay in tests, and that
//! shared libraries come in one version. Reads the few forms of `Cargo.toml` that we write.

use super::code::has_word;
use super::{Finding, Tree};

const LOCK: &str = "Cargo.lock";

/// What a crate may depend on, both by folder. The root package and the crates that measure and
/// test the whole, `bench` and `integration`, may see everything and are seen by none.
const MAY_SEE: &[(&str, &[&str])] = &[
    ("core-workcoord", &[]),
    ("promql", &[]),
    ("promqltest", &["promql"]),
    ("proto", &["core-workcoord"]),
    ("simulation", &["core-workcoord"]),
    ("segment", &["core-workcoord", "promql"]),
    ("catalog", &["core-workcoord", "promql"]),
    ("leafwork", &["promql", "promqltest", "proto", "segment"]),
    ("artifact-store", &["catalog", "core-workcoord", "segment"]),
    ("process", &["core-workcoord"]),
    // It knows the product by its processes alone, and their protocol for the peers that lie.
    ("chaos", &["core-workcoord", "proto"]),
    (
        "worker",
        &[
            "artifact-store",
            "catalog",
            "core-workcoord",
            "leafwork",
            "process",
            "promql",
            "proto",
            "segment",
        ],
    ),
    (
        "api",
        &[
            "artifact-store",
            "catalog",
            "core-workcoord",
            "leafwork",
            "process",
            "promql",
            "promqltest",
            "proto",
            "segment",
        ],
    ),
];

/// Folders of the crates at the top: everything is visible to them.
const TOP: &[&str] = &["", "bench", "integration"];

/// The one at the top that others there may use, for their tests and benches: it has what suites
/// over real processes are made of, and only tests of the root package know where the binary is.
const FOR_TESTS: &str = "integration";

/// Two versions of one of these would not understand each other's types.
const ONE_VERSION: &[&str] = &["bytes", "http", "hyper", "prost", "tokio", "tonic", "tower"];

/// The feature that switches deliberate bugs on.
const SABOTAGE: &str = "sabotage";

pub(super) fn check(tree: &Tree, findings: &mut Vec<Finding>) {
    let manifests: Vec<Manifest<'_>> = manifests(tree).collect();
    for manifest in &manifests {
        dependencies_point_down(manifest, &manifests, findings);
        sabotage_stays_in_tests(manifest, findings);
    }
    one_version_each(tree, findings);
}

/// Folders of the crates, the root's own being the empty one.
pub(super) fn crate_folders(tree: &Tree) -> impl Iterator<Item = &str> {
    manifests(tree).map(|manifest| manifest.folder)
}

struct Manifest<'a> {
    folder: &'a str,
    path: &'a str,
    text: &'a str,
}

/// One line of a manifest under the heading it belongs to, comments taken off.
struct Line<'a> {
    number: usize,
    heading: &'a str,
    text: &'a str,
}

fn manifests(tree: &Tree) -> impl Iterator<Item = Manifest<'_>> {
    tree.files().filter_map(|(path, text)| {
        let folder = path.strip_suffix("Cargo.toml")?;
        Some(Manifest { folder: folder.strip_suffix('/').unwrap_or(folder), path, text })
    })
}

impl<'a> Manifest<'a> {
    fn lines(&self) -> impl Iterator<Item = Line<'a>> {
        let mut heading = "";
        self.text.lines().zip(1..).filter_map(move |(text, number)| {
            let text = text.split('#').next().unwrap_or(text).trim();
            if let Some(inside) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'))
                && !inside.contains(['"', ','])
            {
                heading = inside;
                // A dependency may have a heading of its own, so headings are lines too.
            }
            (!text.is_empty()).then_some(Line { number, heading, text })
        })
    }

    /// The package's name.
    fn name(&self) -> Option<&'a str> {
        self.lines()
            .filter(|line| line.heading == "package")
            .find_map(|line| quoted_value(line.text, "name"))
    }

    /// Names of the packages it depends on, with their lines, and whether for tests alone.
    fn dependencies(&self) -> impl Iterator<Item = (usize, &'a str, bool)> {
        self.lines().filter_map(|line| {
            let (kind, own) = match line.heading.rsplit_once("dependencies.") {
                Some((kind, name)) => (kind, Some(name)),
                None => (line.heading.strip_suffix("dependencies")?, None),
            };
            // The workspace's table names versions; it depends on nothing.
            if kind.starts_with("workspace.") {
                return None;
            }
            let renamed = line.text.split_once("package").and_then(|(_, rest)| {
                rest.trim_start()
                    .strip_prefix('=')?
                    .trim_start()
                    .strip_prefix('"')?
                    .split('"')
                    .next()
            });
            let key = line.text.split(['.', '=', ' ']).next().filter(|key| is_name(key));
            let for_tests = kind == "dev-";
            Some((line.number, renamed.or(own).or(key)?, for_tests))
        })
    }
}

/// The value of `key = "value"`.
fn quoted_value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let value = text.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim();
    value.strip_prefix('"')?.strip_suffix('"')
}

fn is_name(text: &str) -> bool {
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !text.is_empty() && text.chars().all(in_name)
}

fn dependencies_point_down(
    manifest: &Manifest<'_>,
    all: &[Manifest<'_>],
    findings: &mut Vec<Finding>,
) {
    let folder = manifest.folder;
    let allowed = match MAY_SEE.iter().find(|(name, _)| *name == folder) {
        Some((_, allowed)) => Some(*allowed),
        None if TOP.contains(&folder) => None,
        None => {
            let what = "a crate the tidy test does not know: say in MAY_SEE what it may depend on";
            findings.push(Finding::new(manifest.path, 1, what));
            return;
        }
    };
    for (line, name, for_tests) in manifest.dependencies() {
        let Some(target) = all.iter().find(|other| other.name() == Some(name)) else {
            continue;
        };
        let fine = match allowed {
            Some(allowed) => allowed.contains(&target.folder),
            None => !TOP.contains(&target.folder) || (for_tests && target.folder == FOR_TESTS),
        };
        if !fine {
            let here = if folder.is_empty() { "the root package" } else { folder };
            let what = format!("{here} may not depend on {name}: dependencies point one way");
            findings.push(Finding::new(manifest.path, line, what));
        }
    }
}

fn sabotage_stays_in_tests(manifest: &Manifest<'_>, findings: &mut Vec<Finding>) {
    for line in manifest.lines().filter(|line| has_word(line.text, SABOTAGE)) {
        let for_tests = line.heading.contains("dev-dependencies");
        // A crate may offer the feature, and hand it on; switched on by default it may not be.
        let offered = line.heading == "features" && !line.text.starts_with("default");
        if !for_tests && !offered {
            let what = format!("`{SABOTAGE}` is switched on outside [dev-dependencies]");
            findings.push(Finding::new(manifest.path, line.number, what));
        }
    }
}

fn one_version_each(tree: &Tree, findings: &mut Vec<Finding>) {
    let text = tree.text(LOCK).unwrap_or_default();
    for package in ONE_VERSION {
        let named = |(line, _): &(&str, usize)| quoted_value(line, "name") == Some(*package);
        for (_, line) in text.lines().zip(1..).filter(named).skip(1) {
            let what = format!("a second version of {package}: its types meet the first one's");
            findings.push(Finding::new(LOCK, line, what));
        }
    }
}
