//! Numbered promises. Each has a sentence in `docs/invariants.md` and a check beside the state it is
//! about; the checks run after every input in every build with debug assertions, and whenever the
//! simulator asks.

/// A promise that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invariant {number} is broken: {what}")]
pub struct Broken {
    /// Its number in `docs/invariants.md`.
    pub number: u32,
    /// What was found.
    pub what: String,
}

/// Checks one promise; the text is made only when it is broken.
pub fn hold(number: u32, holds: bool, what: impl FnOnce() -> String) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { number, what: what() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_promise_names_its_number() {
        assert_eq!(hold(7, true, || unreachable!("not asked")), Ok(()));
        let broken = hold(7, false, || "two leads".into()).unwrap_err();
        assert_eq!(broken.to_string(), "invariant 7 is broken: two leads");
    }
}
