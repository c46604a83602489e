//! One at a time for each key: whoever comes while another is at it waits, and goes next when that
//! one is done or gave up. What is done in a turn, and whether it is still to be done, is the
//! caller's business.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use tokio::sync::{Mutex as Gate, OwnedMutexGuard};

type Gates<K> = Arc<Mutex<HashMap<K, Weak<Gate<()>>>>>;

/// The turns of all keys. Handles share them.
#[derive(Debug)]
pub(crate) struct Turns<K: Eq + Hash>(Gates<K>);

/// The turn of one key, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<K: Eq + Hash> {
    // Dropped in this order: the gate opens, then the place is given up.
    _open: OwnedMutexGuard<()>,
    _place: Place<K>,
}

/// A place at a key's gate, held or waited for.
#[derive(Debug)]
struct Place<K: Eq + Hash> {
    key: K,
    gate: Option<Arc<Gate<()>>>,
    gates: Gates<K>,
}

impl<K: Clone + Eq + Hash> Turns<K> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// Waits for this key's turn. Whoever stops waiting gives up the place.
    pub(crate) async fn turn(&self, key: &K) -> Turn<K> {
        let gate = {
            let mut gates = lock(&self.0);
            let known = gates.get(key).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                let gate = Arc::new(Gate::new(()));
                gates.insert(key.clone(), Arc::downgrade(&gate));
                gate
            })
        };
        let place =
            Place { key: key.clone(), gate: Some(gate.clone()), gates: Arc::clone(&self.0) };
        let open = gate.lock_owned().await;
        Turn { _open: open, _place: place }
    }

    /// Keys that somebody has or waits for.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).len()
    }
}

impl<K: Eq + Hash> Clone for Turns<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut gates = lock(&self.gates);
        self.gate = None;
        if gates.get(&self.key).is_some_and(|gate| gate.strong_count() == 0) {
            gates.remove(&self.key);
        }
    }
}

fn lock<K>(
    gates: &Mutex<HashMap<K, Weak<Gate<()>>>>,
) -> MutexGuard<'_, HashMap<K, Weak<Gate<()>>>> {
    gates.lock().expect("nobody panics while looking up a key")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn of_many_who_want_one_key_each_has_it_alone_and_other_keys_do_not_wait() {
        let turns = Turns::new();
        let inside = Arc::new(AtomicU32::new(0));
        let mut all = tokio::task::JoinSet::new();
        for i in 0..40_u32 {
            let (turns, inside) = (turns.clone(), Arc::clone(&inside));
            all.spawn(async move {
                let turn = turns.turn(&(i % 2)).await;
                assert!(inside.fetch_add(1, Ordering::SeqCst) < 2, "one for each of two keys");
                tokio::time::sleep(Duration::from_millis(1)).await;
                inside.fetch_sub(1, Ordering::SeqCst);
                drop(turn);
            });
        }
        while let Some(done) = all.join_next().await {
            done.unwrap();
        }
        assert_eq!(turns.len(), 0);
    }

    #[tokio::test]
    async fn who_stops_waiting_leaves_nothing_behind() {
        let turns = Turns::new();
        let turn = turns.turn(&1).await;
        let impatient = tokio::time::timeout(Duration::from_millis(1), turns.turn(&1)).await;
        assert!(impatient.is_err());
        assert_eq!(turns.len(), 1);
        drop(turn);
        assert_eq!(turns.len(), 0);
        drop(turns.turn(&1).await);
        assert_eq!(turns.len(), 0);
    }
}
