//! What was read of segments and is kept in memory: the least recently used goes when there is no
//! more room. Counts bytes as it is told; knows nothing of segments.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Values by key, up to a number of bytes.
#[derive(Debug)]
pub(crate) struct IndexMemory<K, V> {
    limit_bytes: u64,
    bytes: u64,
    next_use: u64,
    kept: HashMap<K, Kept<V>>,
    /// Keys by their last use.
    order: BTreeMap<u64, K>,
}

#[derive(Debug)]
struct Kept<V> {
    value: V,
    bytes: u64,
    used: u64,
}

impl<K: Clone + Eq + Hash, V: Clone> IndexMemory<K, V> {
    pub(crate) fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, bytes: 0, next_use: 0, kept: HashMap::new(), order: BTreeMap::new() }
    }

    /// The value, used just now.
    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        let used = self.tick();
        let kept = self.kept.get_mut(key)?;
        self.order.remove(&kept.used);
        kept.used = used;
        self.order.insert(used, key.clone());
        Some(kept.value.clone())
    }

    /// Keeps a value, unless it alone is more than there may be. Whoever has a value that goes
    /// from here keeps it.
    pub(crate) fn insert(&mut self, key: K, value: V, bytes: u64) {
        self.remove(&key);
        if bytes > self.limit_bytes {
            return;
        }
        while self.bytes + bytes > self.limit_bytes {
            let (_, oldest) = self.order.first_key_value().expect("bytes are of something");
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
        let used = self.tick();
        self.order.insert(used, key.clone());
        self.kept.insert(key, Kept { value, bytes, used });
        self.bytes += bytes;
    }

    /// Bytes of everything kept.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Forgets a value.
    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(kept) = self.kept.remove(key) {
            self.order.remove(&kept.used);
            self.bytes -= kept.bytes;
        }
    }

    fn tick(&mut self) -> u64 {
        self.next_use += 1;
        self.next_use
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_least_recently_used_goes_first_and_a_giant_is_not_kept() {
        let mut memory = IndexMemory::new(10);
        memory.insert("a", 1, 4);
        memory.insert("b", 2, 4);
        assert_eq!(memory.get(&"a"), Some(1));
        memory.insert("c", 3, 4);
        assert_eq!(
            (memory.get(&"a"), memory.get(&"b"), memory.get(&"c")),
            (Some(1), None, Some(3))
        );
        memory.insert("giant", 4, 11);
        assert_eq!((memory.get(&"giant"), memory.bytes()), (None, 8));
    }

    proptest! {
        #[test]
        fn the_limit_holds_and_the_sum_is_exact(
            steps in prop::collection::vec((0_u8..12, prop::option::of(0_u64..60)), 1..200)
        ) {
            let mut memory = IndexMemory::new(100);
            // Latest use last.
            let mut model: Vec<(u8, u64)> = Vec::new();
            for (key, insert) in steps {
                let at = model.iter().position(|(known, _)| *known == key);
                match insert {
                    Some(bytes) => {
                        memory.insert(key, bytes, bytes);
                        at.map(|at| model.remove(at));
                        while model.iter().map(|(_, bytes)| bytes).sum::<u64>() + bytes > 100 {
                            model.remove(0);
                        }
                        model.push((key, bytes));
                    }
                    None => {
                        prop_assert_eq!(memory.get(&key), at.map(|at| model[at].1));
                        if let Some(at) = at {
                            let used = model.remove(at);
                            model.push(used);
                        }
                    }
                }
                prop_assert_eq!(memory.bytes(), model.iter().map(|(_, bytes)| bytes).sum::<u64>());
                prop_assert_eq!(memory.kept.len(), model.len());
                prop_assert_eq!(memory.order.len(), model.len());
            }
        }
    }
}
