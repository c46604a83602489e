//! A bounded memory of compiled patterns: dashboards ask the same thing again and again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tributary_promql::pattern::Pattern as Syntax;

use super::{BadPattern, Matcher, Pattern};

/// Compiled patterns by their text. When it is full, the one not used for longest goes.
///
/// Threads share one; the lock is held for a look-up, never while a pattern is compiled.
#[derive(Debug)]
pub struct PatternCache {
    capacity: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    patterns: HashMap<Arc<str>, (Arc<Pattern>, u64)>,
    uses: u64,
}

impl PatternCache {
    /// A cache for at most `capacity` patterns. Each may take up to a few MiB; most take little.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, state: Mutex::default() }
    }

    /// Makes a matcher, with a pattern that is already compiled where there is one.
    pub fn matcher(&self, matcher: &tributary_promql::Matcher) -> Result<Matcher, BadPattern> {
        Matcher::with(matcher, |pattern| self.pattern(pattern))
    }

    fn pattern(&self, syntax: &Syntax) -> Result<Arc<Pattern>, BadPattern> {
        let text = syntax.as_str();
        if let Some(known) = self.with_state(|state| state.find(text)) {
            return Ok(known);
        }
        let pattern = Arc::new(Pattern::of(syntax)?);
        self.with_state(|state| state.insert(text, &pattern, self.capacity));
        Ok(pattern)
    }

    /// A panic elsewhere leaves at worst a pattern out of the map, so a poisoned lock is taken.
    fn with_state<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    fn find(&mut self, text: &str) -> Option<Arc<Pattern>> {
        self.uses += 1;
        let (pattern, used) = self.patterns.get_mut(text)?;
        *used = self.uses;
        Some(Arc::clone(pattern))
    }

    fn insert(&mut self, text: &str, pattern: &Arc<Pattern>, capacity: usize) {
        if capacity == 0 {
            return;
        }
        while self.patterns.len() >= capacity && !self.patterns.contains_key(text) {
            let oldest = self.patterns.iter().min_by_key(|(_, (_, used))| *used);
            let oldest = oldest.map(|(text, _)| Arc::clone(text)).expect("capacity is not zero");
            self.patterns.remove(&oldest);
        }
        self.patterns.insert(text.into(), (Arc::clone(pattern), self.uses));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn syntax(text: &str) -> Syntax {
        Syntax::parse(text, 10_000_000).unwrap()
    }

    #[test]
    fn the_pattern_not_used_for_longest_goes() {
        let cache = PatternCache::new(2);
        let first = cache.pattern(&syntax("a.*b")).unwrap();
        cache.pattern(&syntax("c.*d")).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.pattern(&syntax("a.*b")).unwrap()));
        cache.pattern(&syntax("e.*f")).unwrap();
        assert!(Arc::ptr_eq(&first, &cache.pattern(&syntax("a.*b")).unwrap()));
        assert_eq!(cache.with_state(|state| state.patterns.len()), 2);
        assert!(cache.with_state(|state| !state.patterns.contains_key("c.*d")));
    }

    #[test]
    fn a_pattern_that_is_too_large_is_not_kept() {
        let cache = PatternCache::new(2);
        assert!(cache.pattern(&syntax(r"\pL{1000}x*")).is_err());
        assert_eq!(cache.with_state(|state| state.patterns.len()), 0);
    }
}
