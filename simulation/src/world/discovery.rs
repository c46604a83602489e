//! Discovery: which addresses are listed, and when each API node hears of it. What an API hears is
//! always the latest, a while after it changed.

use core_workcoord::coordinator::Input;

use super::World;
use crate::agenda::Event;
use crate::rng::{Lane, Purpose, draw, within};
use crate::story::MS;

impl World<'_> {
    /// Lists an address, or takes it off the list.
    pub(super) fn list(&mut self, endpoint: u32, listed: bool) {
        self.endpoints.listed[endpoint as usize] = listed;
        for api in (0_u32..).take(self.apis.len()) {
            self.note_discovery(api, endpoint);
        }
    }

    /// An API node will look at an address after a while.
    pub(super) fn note_discovery(&mut self, api: u32, endpoint: u32) {
        let lane = Lane::new(Purpose::Discovery, (api as usize) << 16 | endpoint as usize);
        let luck = draw(self.story.seed, lane, self.now);
        let lag = if self.healed { 50 * MS } else { within(luck, 5 * MS, 800 * MS) };
        self.agenda.note(self.now + lag, Event::Discover { api, endpoint });
    }

    /// An API node looks at an address. Now and then it is told what it knows already.
    pub(super) fn discover(&mut self, api: u32, endpoint: u32) {
        let node = &mut self.apis[api as usize];
        if node.machine.is_none() || node.discovery_outages > 0 {
            return;
        }
        if node.process.is_hung() {
            node.process.deferred.push(Event::Discover { api, endpoint });
            return;
        }
        let listed = self.endpoints.listed[endpoint as usize];
        let named = listed && !node.hidden.contains(&endpoint);
        let known = std::mem::replace(&mut node.knows[endpoint as usize], named);
        let lane = Lane::new(Purpose::Discovery, (api as usize) << 16 | endpoint as usize);
        let repeats = draw(self.story.seed, lane, self.now ^ 1) & 7 == 0;
        if named == known && !repeats {
            return;
        }
        let name = self.endpoints.name(endpoint).clone();
        self.checker.api_hears_of_address(api, endpoint, named);
        let input = if named {
            Input::WorkerDiscovered { endpoint: name }
        } else {
            Input::WorkerGone { endpoint: name }
        };
        self.step_api(api, input);
    }

    /// An API node looks at every address again.
    pub(super) fn discover_all(&mut self, api: u32) {
        for endpoint in 0..self.endpoints.len() {
            self.note_discovery(api, endpoint);
        }
    }
}
