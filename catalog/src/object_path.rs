//! Where an object lies, relative to its store. A path can't lead out of the store, and every kind
//! of store can hold it; `objects` trusts that. Also the place of a segment's two files.

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use core_workcoord::artifact::Checksum;
use core_workcoord::id::TenantId;
use sha2::{Digest, Sha256};

use crate::error::ObjectError;
use crate::segment_row::SegmentId;

/// The longest path in bytes: what S3 takes, less room for a prefix.
const PATH_MAX_BYTES: usize = 800;

/// The longest part of a path in bytes: what file systems take, less room for a temporary suffix.
const PART_MAX_BYTES: usize = 200;

/// How the name of a series index ends.
pub(crate) const SERIES_SUFFIX: &str = ".series.parquet";

/// How the name of a samples file ends.
pub(crate) const SAMPLES_SUFFIX: &str = ".samples.parquet";

/// A relative path of plain parts: letters, digits and `. _ - =`, separated by `/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectPath(Arc<str>);

impl ObjectPath {
    /// Everything of segments lies under this prefix. Cleaning looks nowhere else.
    pub const SEGMENTS: &'static str = "segments";

    /// Checks the text and makes it a path.
    pub fn parse(text: &str) -> Result<Self, ObjectError> {
        let bad = |reason| Err(ObjectError::BadPath { path: text.to_owned(), reason });
        if text.is_empty() || text.len() > PATH_MAX_BYTES {
            return bad("its length is not 1 to 800 bytes");
        }
        if text.starts_with('/') {
            return bad("it is absolute");
        }
        for part in text.split('/') {
            if part.is_empty() || part == "." || part == ".." {
                return bad("a part is empty, . or ..");
            }
            if part.len() > PART_MAX_BYTES {
                return bad("a part is longer than 200 bytes");
            }
            if !part.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-=".contains(&b)) {
                return bad("a character is none of letters, digits, . _ - = and /");
            }
        }
        Ok(Self(text.into()))
    }

    /// The folder of one attempt at writing segments of a tenant.
    pub fn of_upload(tenant: &TenantId, upload: &str) -> Result<Self, ObjectError> {
        Self::parse(&format!("{}/{}/{upload}", Self::SEGMENTS, tenant_part(tenant)))
    }

    /// Where the two files of a segment belong: the series index and the samples.
    ///
    /// `upload` names one attempt at writing and is never used twice. A path is thus written once,
    /// and cleaning up after an attempt that failed can't hurt one that succeeds.
    pub fn of_segment(
        tenant: &TenantId,
        upload: &str,
        segment: &SegmentId,
    ) -> Result<(Self, Self), ObjectError> {
        let folder = Self::of_upload(tenant, upload)?;
        Ok((
            Self::parse(&format!("{folder}/{segment}{SERIES_SUFFIX}"))?,
            Self::parse(&format!("{folder}/{segment}{SAMPLES_SUFFIX}"))?,
        ))
    }

    /// The last part.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().expect("splitting gives one part at least")
    }

    /// The segment this file would belong to, going by its name.
    pub(crate) fn segment(&self) -> Option<SegmentId> {
        let name = self.file_name();
        let id = name.strip_suffix(SERIES_SUFFIX).or_else(|| name.strip_suffix(SAMPLES_SUFFIX))?;
        SegmentId::new(id).ok()
    }

    /// The text of the path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The tenant's folder. Two tenants never share one: what is not plain becomes `=` and two hex
/// digits, and no tenant's name has a `=` of its own.
fn tenant_part(tenant: &TenantId) -> String {
    let mut part = String::new();
    for (place, byte) in tenant.as_str().bytes().enumerate() {
        if byte.is_ascii_alphanumeric() || b"_-".contains(&byte) || (byte == b'.' && place > 0) {
            part.push(char::from(byte));
        } else {
            write!(part, "={byte:02x}").expect("writing to a string can't fail");
        }
    }
    if part.len() > PART_MAX_BYTES {
        let sum = Checksum(Sha256::digest(tenant.as_str()).into());
        part = format!("=sha256-{sum}");
    }
    part
}

impl fmt::Display for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ObjectPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_path_leads_out_of_the_store() {
        for good in ["a", "segments/t/0/x.series.parquet", "a/..b", "=2e/_-"] {
            assert_eq!(ObjectPath::parse(good).unwrap().as_str(), good);
        }
        let long = "x/".repeat(400) + "x";
        for bad in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "../x",
            "a/../b",
            "a/..",
            ".",
            "a/./b",
            "a//b",
            "a/",
            "a\\b",
            "C:\\x",
            "a%2e",
            "%2E%2E/x",
            "a#1",
            "a b",
            "a\nb",
            "a\0b",
            "é",
            "s3://b/x",
            &long,
            &"x".repeat(201),
        ] {
            assert!(matches!(ObjectPath::parse(bad), Err(ObjectError::BadPath { .. })), "{bad:?}");
        }
    }

    #[test]
    fn two_tenants_never_share_a_folder() {
        let long = ":".repeat(253);
        let names =
            ["a", "A", "a.b", "a:b", "a-b", "..", ".", "[::1]", "3a", ":", "_", &long, &long[1..]];
        let segment = SegmentId::new("s").unwrap();
        let paths: BTreeSet<ObjectPath> = names
            .iter()
            .flat_map(|name| {
                let tenant = TenantId::new(name).unwrap();
                let (series, samples) = ObjectPath::of_segment(&tenant, "u1", &segment).unwrap();
                [series, samples]
            })
            .collect();
        assert_eq!(paths.len(), 2 * names.len());
        let (series, samples) =
            ObjectPath::of_segment(&TenantId::new("a:b").unwrap(), "u1", &segment).unwrap();
        assert_eq!(series.as_str(), "segments/a=3ab/u1/s.series.parquet");
        assert_eq!(samples.as_str(), "segments/a=3ab/u1/s.samples.parquet");
        assert_eq!(
            (series.segment(), samples.segment()),
            (Some(segment.clone()), Some(segment.clone()))
        );
        assert_eq!(ObjectPath::parse("segments/notes.txt").unwrap().segment(), None);
        assert!(ObjectPath::of_segment(&TenantId::new("a").unwrap(), "../u", &segment).is_err());
    }
}
