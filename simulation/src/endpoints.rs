//! The addresses of the world and which of them discovery lists. Each worker has a few, of which it
//! listens at one.

use core_workcoord::id::Endpoint;

/// Addresses of one worker, taken in turn when it moves.
pub(crate) const PER_WORKER: u32 = 3;

/// Every address, in the order of its text.
#[derive(Debug)]
pub(crate) struct Endpoints {
    names: Vec<Endpoint>,
    /// Discovery would name it now.
    pub(crate) listed: Vec<bool>,
}

impl Endpoints {
    pub(crate) fn new(workers: usize) -> Self {
        let count = workers * PER_WORKER as usize;
        let names = (0..count)
            .map(|at| {
                let text =
                    format!("w{:03}-{}:9000", at / PER_WORKER as usize, at % PER_WORKER as usize);
                Endpoint::new(&text).expect("it is short and plain")
            })
            .collect();
        Self { names, listed: vec![false; count] }
    }

    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.names.len()).expect("there are a few per worker")
    }

    pub(crate) fn name(&self, endpoint: u32) -> &Endpoint {
        &self.names[endpoint as usize]
    }

    /// The place of an address. The texts are made in their own order, so it can be searched.
    pub(crate) fn find(&self, name: &Endpoint) -> Option<u32> {
        self.names.binary_search(name).ok().and_then(|at| u32::try_from(at).ok())
    }

    /// The worker an address belongs to.
    pub(crate) fn worker_of(endpoint: u32) -> u32 {
        endpoint / PER_WORKER
    }

    /// A worker's first address.
    pub(crate) fn first_of(worker: u32) -> u32 {
        worker * PER_WORKER
    }

    /// The address a worker moves to.
    pub(crate) fn next(endpoint: u32) -> u32 {
        let worker = Self::worker_of(endpoint);
        Self::first_of(worker) + (endpoint + 1) % PER_WORKER
    }

    /// Where the worker at an address serves its artifacts.
    pub(crate) fn base_url(&self, endpoint: u32) -> String {
        format!("http://{}/artifacts/", self.names[endpoint as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_by_name_and_stay_with_their_worker() {
        let all = Endpoints::new(20);
        for at in 0..all.len() {
            assert_eq!(all.find(all.name(at)), Some(at));
            assert_eq!(Endpoints::worker_of(Endpoints::next(at)), Endpoints::worker_of(at));
            assert_ne!(Endpoints::next(at), at);
        }
        assert_eq!(all.find(&Endpoint::new("elsewhere:1").unwrap()), None);
    }
}
