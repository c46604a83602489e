//! One list of workers made of what several sources say: a worker is there while any of them names
//! it.

use std::collections::{BTreeMap, BTreeSet};

use core_workcoord::id::Endpoint;

use super::Change;

/// The last answer of every source, and what they come to.
#[derive(Debug, Default)]
pub(super) struct Merged {
    answers: BTreeMap<usize, BTreeSet<Endpoint>>,
    known: BTreeSet<Endpoint>,
}

impl Merged {
    /// Takes the newest answer of one source. What appears is told first, so that a worker that
    /// moves is never missed in between.
    pub(super) fn take(&mut self, source: usize, endpoints: BTreeSet<Endpoint>) -> Vec<Change> {
        self.answers.insert(source, endpoints);
        let now: BTreeSet<Endpoint> = self.answers.values().flatten().cloned().collect();
        let before = std::mem::replace(&mut self.known, now);
        let appeared = self.known.difference(&before).cloned().map(Change::Appeared);
        let gone = before.difference(&self.known).cloned().map(Change::Gone);
        appeared.chain(gone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoints(names: &[&str]) -> BTreeSet<Endpoint> {
        names.iter().map(|name| Endpoint::new(name).unwrap()).collect()
    }

    fn told(changes: Vec<Change>) -> String {
        let text = changes.into_iter().map(|change| match change {
            Change::Appeared(endpoint) => format!("+{endpoint}"),
            Change::Gone(endpoint) => format!("-{endpoint}"),
        });
        text.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_worker_is_there_while_any_source_names_it() {
        let mut merged = Merged::default();
        assert_eq!(told(merged.take(0, endpoints(&["a:1", "b:1"]))), "+a:1 +b:1");
        assert_eq!(told(merged.take(1, endpoints(&["b:1", "c:1"]))), "+c:1");
        assert_eq!(told(merged.take(0, endpoints(&["d:1"]))), "+d:1 -a:1");
        assert_eq!(told(merged.take(1, endpoints(&[]))), "-b:1 -c:1");
        assert_eq!(told(merged.take(0, endpoints(&["d:1"]))), "");
    }
}
