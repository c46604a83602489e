//! A map in a sorted vector: the tables of one simulated node hold a handful of entries, whose keys
//! mostly grow, and are walked in one fixed order.

/// A sorted vector of keys and values.
#[derive(Clone, Debug)]
pub(crate) struct SmallMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Default for SmallMap<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<K: Ord + Copy, V> SmallMap<K, V> {
    fn find(&self, key: K) -> Result<usize, usize> {
        match self.entries.last() {
            Some((last, _)) if *last < key => Err(self.entries.len()),
            _ => self.entries.binary_search_by(|(found, _)| found.cmp(&key)),
        }
    }

    /// Puts a value in; gives back the one that was there.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(key) {
            Ok(at) => Some(std::mem::replace(&mut self.entries[at].1, value)),
            Err(at) => {
                self.entries.insert(at, (key, value));
                None
            }
        }
    }

    pub(crate) fn remove(&mut self, key: K) -> Option<V> {
        self.find(key).ok().map(|at| self.entries.remove(at).1)
    }

    pub(crate) fn get(&self, key: K) -> Option<&V> {
        self.find(key).ok().map(|at| &self.entries[at].1)
    }

    pub(crate) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.find(key).ok().map(|at| &mut self.entries[at].1)
    }

    pub(crate) fn contains(&self, key: K) -> bool {
        self.find(key).is_ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> {
        self.entries.iter().map(|(key, value)| (*key, value))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        self.entries.iter_mut().map(|(key, value)| (*key, value))
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.entries.iter_mut().map(|(_, value)| value)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_order_however_they_went_in() {
        let mut map = SmallMap::default();
        for key in [5, 1, 9, 3] {
            assert_eq!(map.insert(key, key * 10), None);
        }
        assert_eq!(map.insert(3, 31), Some(30));
        assert_eq!(
            map.iter().map(|(key, value)| (key, *value)).collect::<Vec<_>>(),
            [(1, 10), (3, 31), (5, 50), (9, 90)]
        );
        assert_eq!((map.remove(1), map.remove(1), map.len()), (Some(10), None, 3));
        *map.get_mut(9).unwrap() = 7;
        assert!(map.contains(9) && map.get(9) == Some(&7) && !map.is_empty());
    }
}
