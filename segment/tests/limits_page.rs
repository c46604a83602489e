//! What `docs/limits.md` says of segments is what the code says.

use std::fs;
use std::path::PathBuf;

use tributary_segment::{MAX_LINE_BYTES, MAX_SAMPLES, MAX_SERIES, WriteError};

#[test]
fn the_page_has_the_limits_of_segments() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/limits.md");
    let page = fs::read_to_string(path).expect("the page is part of the repository");
    let full = |what, limit| WriteError::Full { what, limit }.to_string();
    for said in [
        full("series", u64::from(MAX_SERIES)),
        full("samples", MAX_SAMPLES),
        format!("it has more than {MAX_LINE_BYTES} bytes"),
    ] {
        assert!(page.contains(&format!(" {said} |")), "docs/limits.md does not say: {said}");
    }
}
