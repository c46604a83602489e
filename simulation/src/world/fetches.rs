//! The fetcher of an API node and the artifact server of a worker. The fetcher knows nothing of the
//! truth but what was announced.

use core_workcoord::artifact::Artifact;
use core_workcoord::coordinator::{FetchResult, Input};
use core_workcoord::id::SessionId;
use core_workcoord::message::WorkRef;

use super::World;
use crate::SimBug;
use crate::agenda::Event;
use crate::api_node::Fetch;
use crate::content::{self, Wrong};
use crate::network::Way;
use crate::rng::{Lane, Purpose, draw};
use crate::story::SECOND;

/// How long the fetcher tries to reach a worker.
const GIVES_UP_AFTER: u64 = SECOND;

impl World<'_> {
    pub(super) fn begin_fetch(
        &mut self,
        api: u32,
        work: WorkRef,
        session: SessionId,
        artifact: &Artifact,
    ) {
        let node = &mut self.apis[api as usize];
        let Some(stream) = node.sessions.get(session).copied() else { return };
        let endpoint = self.net.stream(stream).endpoint;
        let worker = self.net.stream(stream).worker;
        let run = content::run_of(&artifact.url, &self.endpoints.base_url(endpoint));
        node.fetches_begun += 1;
        let id = node.fetches_begun;
        let announced = artifact.checksum;
        let result = FetchResult::Failed;
        let (right, abandoned) = (false, false);
        node.fetches
            .insert(id, Fetch { work, session, stream, run, announced, result, right, abandoned });
        self.tally.fetches += 1;
        let at = self.now + self.net.delay(api, worker, Way::ToWorker);
        self.agenda.note(at, Event::FetchArrives { api, fetch: id });
    }

    /// A fetch is not wanted. Now and then its end is told all the same, because it came first.
    pub(super) fn abandon_fetch(&mut self, api: u32, work: WorkRef, session: SessionId) {
        let seed = self.story.seed;
        let node = &mut self.apis[api as usize];
        let found = node
            .fetches
            .iter()
            .find(|(_, it)| it.work == work && it.session == session && !it.abandoned)
            .map(|(id, _)| id);
        let Some(id) = found else { return };
        let luck = draw(seed, Lane::new(Purpose::Fetch, api as usize), id.into());
        if luck & 7 == 0 {
            node.fetches.get_mut(id).expect("just found").abandoned = true;
        } else {
            node.fetches.remove(id);
        }
    }

    pub(super) fn fetch_arrives(&mut self, api: u32, fetch: u32) {
        let Some(it) = self.apis[api as usize].fetches.get(fetch).copied() else { return };
        let (worker, endpoint, worker_life) = {
            let stream = self.net.stream(it.stream);
            (stream.worker, stream.endpoint, stream.worker_life)
        };
        let link = self.net.link(api, worker);
        let node = &self.workers[worker as usize];
        let unreachable = Way::BOTH.iter().any(|way| link.is_cut(*way))
            || node.vanished
            || node.endpoint != endpoint
            || node.process.is_hung();
        let corrupting = link.corrupting > 0;
        let mut transfer = self.net.delay(api, worker, Way::ToApi);
        let (mut result, mut right) = (FetchResult::Failed, false);
        if unreachable {
            transfer = GIVES_UP_AFTER;
        } else if node.trouble.fetch_errors > 0 {
            // The server answers, again and again, that something is wrong with it.
            transfer += GIVES_UP_AFTER / 4;
        } else if node.machine.is_some() && node.process.life == worker_life {
            let file = it.run.and_then(|run| node.files.get(run));
            // The token opens the artifacts of its own session only.
            let session = self.net.stream(it.stream).worker_session;
            match file.filter(|file| file.session == session) {
                None => result = FetchResult::Gone,
                Some(file) => {
                    transfer += file.size_bytes / self.story.shape.bytes_per_micro * 1_000;
                    let bytes = match corrupting {
                        true => content::wrong(file.bytes, Wrong::OnTheWire),
                        false => file.bytes,
                    };
                    let unchecked = self.options.sim_bug == Some(SimBug::FetchUnchecked);
                    let same = bytes == it.announced || unchecked;
                    result = if same { FetchResult::Verified } else { FetchResult::Mismatch };
                    right = content::is_right(it.work.work_id, self.story.seed, bytes);
                }
            }
        }
        if let Some(it) = self.apis[api as usize].fetches.get_mut(fetch) {
            (it.result, it.right) = (result, right);
        }
        self.agenda.note(self.now + transfer, Event::FetchEnds { api, fetch });
    }

    pub(super) fn fetch_ends(&mut self, api: u32, fetch: u32) {
        let node = &mut self.apis[api as usize];
        if node.machine.is_none() {
            return;
        }
        let Some(it) = node.fetches.get(fetch).copied() else { return };
        if node.process.is_hung() {
            node.process.deferred.push(Event::FetchEnds { api, fetch });
            return;
        }
        let stream = self.net.stream(it.stream);
        let (worker, worker_life) = (stream.worker, stream.worker_life);
        let died = self.workers[worker as usize].process.life != worker_life;
        let cut = self.net.link(api, worker).is_cut(Way::ToApi);
        let whole = matches!(it.result, FetchResult::Verified | FetchResult::Mismatch);
        // The connection breaks in the middle of the body.
        let result = if whole && (died || cut) { FetchResult::Failed } else { it.result };
        self.apis[api as usize].fetches.remove(fetch);
        self.checker.fetched_right = it.right;
        self.tally.count_fetch(result);
        let (work, session) = (it.work, it.session);
        self.step_api(api, Input::FetchEnded { work, session, result });
    }
}
