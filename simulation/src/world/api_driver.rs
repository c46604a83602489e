//! What an API process does for its coordinator: hands it what happened, carries out what it
//! decides, keeps its timer, and stands between it and the clients.

use core_workcoord::coordinator::{Action, Coordinator, Input, Submission, WorkItem};
use core_workcoord::id::{AffinityKey, ApiId, LeafId, SessionId};
use core_workcoord::journal::Header;

use super::World;
use crate::SimBug;
use crate::agenda::Event;
use crate::checker::CloseFacts;
use crate::content;
use crate::journal::Node;
use crate::rng::{Lane, Purpose, draw, within};
use crate::story::{MS, SECOND};
use crate::violation::{About, Check};
use crate::{brief, describe};

impl World<'_> {
    /// A new life of an API node, unless it lives already.
    pub(super) fn start_api(&mut self, api: u32) {
        let life = self.apis[api as usize].process.life + 1;
        let node = &mut self.apis[api as usize];
        if node.machine.is_some() {
            return;
        }
        node.lose_everything(self.now);
        node.vanished = false;
        let name = ApiId::new(&format!("api-{api}.{life}")).expect("it is short and plain");
        let luck = draw(self.story.seed, Lane::new(Purpose::Machine, api as usize), life.into());
        let config = self.story.shape.coordinator.clone();
        if self.options.journal {
            let header =
                Header::Coordinator { config: config.clone(), api_id: name.clone(), seed: luck };
            self.journals.begin(Node::Api(api), life, &header);
        }
        let mut machine =
            Coordinator::new(config, name, luck).expect("stories are configured well");
        if let Some(prepare) = self.options.prepare_coordinator {
            prepare(&mut machine);
        }
        self.apis[api as usize].machine = Some(machine);
        self.trace.say(self.now, About::api(api), || format!("api-{api} begins life {life}"));
        self.checker.api_begins(api);
        self.unstick_api(api);
        for endpoint in 0..self.endpoints.len() {
            if self.endpoints.listed[endpoint as usize] {
                self.note_discovery(api, endpoint);
            }
        }
    }

    /// An API process is gone, with everything it knew.
    pub(super) fn kill_api(&mut self, api: u32, told: bool) {
        if self.apis[api as usize].machine.is_none() {
            return;
        }
        self.trace.say(self.now, About::api(api), || format!("api-{api} dies"));
        self.checker.api_dies(api);
        let streams: Vec<u32> =
            self.apis[api as usize].sessions.iter().map(|(_, stream)| *stream).collect();
        let node = &mut self.apis[api as usize];
        for event in node.process.take_parcels() {
            self.agenda.note(self.now, event);
        }
        node.lose_everything(self.now);
        node.vanished = !told;
        for stream in streams {
            self.close_api_end(stream, told);
        }
    }

    /// Hands an input to a coordinator and does what it decides.
    pub(super) fn step_api(&mut self, api: u32, input: Input) {
        let at = api as usize;
        let node = &mut self.apis[at];
        let Some(machine) = node.machine.as_mut() else { return };
        if self.checker.violation().is_some() {
            return;
        }
        let clock = node.process.read_clock(self.story.seed, at, self.now);
        self.trace.say(self.now, describe::about_api_input(api, &input), || {
            format!("api-{api} ← {}", brief::api_input(&input))
        });
        self.checker.api_told(api, clock, &input);
        let told = (!self.options.from_outside_only || self.options.journal).then(|| input.clone());
        machine.handle(clock, input);
        if let Some(told) = told.as_ref().filter(|_| !self.options.from_outside_only) {
            let audit = machine.audit_input(told);
            self.note_broken(Check::Coordinator, audit, describe::about_api_input(api, told));
        }
        let mut decided = Vec::new();
        while let Some(action) = self.apis[at].machine.as_mut().and_then(Coordinator::poll_action) {
            self.tally.actions += 1;
            self.stamp(describe::word_of_api_action(&action));
            self.trace.say(self.now, describe::about_api_action(api, &action), || {
                format!("api-{api}   → {}", brief::api_action(&action))
            });
            if self.options.journal {
                decided.push(action.clone());
            }
            self.carry_out_for_api(api, action);
        }
        if let Some(told) = told.filter(|_| self.options.journal) {
            self.journals.api_step(api, clock, &told, &decided);
        }
        let disturbed = self.apis[at].process.was_disturbed(self.now.saturating_sub(10 * MS));
        self.checker.api_stepped(api, disturbed);
        self.arm_api(api);
    }

    fn carry_out_for_api(&mut self, api: u32, action: Action) {
        match action {
            Action::Dial { session, endpoint } => {
                let place = self.endpoints.find(&endpoint);
                let known = place.is_some_and(|at| self.apis[api as usize].knows[at as usize]);
                self.checker.api_dials(api, session, place, known);
                if let Some(place) = place {
                    self.dial(api, session, place);
                }
            }
            Action::Send { session, message } => {
                self.checker.api_says(api, session, &message);
                self.send_from_api(api, session, message);
            }
            Action::Close { session, reason } => {
                let facts = self.facts_of_api_close(api, session);
                self.checker.api_closes(api, session, reason, facts);
                self.api_closes(api, session);
            }
            Action::Fetch { work, session, artifact } => {
                self.checker.api_fetches(api, work, session, &artifact);
                self.begin_fetch(api, work, session, &artifact);
            }
            Action::AbandonFetch { work, session } => {
                self.checker.api_abandons(api, work, session);
                self.abandon_fetch(api, work, session);
            }
            Action::Deliver { work, attempt, .. } => {
                if let Some(query) = self.checker.api_delivers(api, work, attempt) {
                    self.delivered(query);
                }
            }
            Action::End { query, outcome } => self.checker.api_ends(api, query, &outcome),
            Action::AwaitScaleUp { query } => self.checker.api_awaits_scale_up(api, query),
        }
    }

    /// What a judge of a closed stream needs to know of the world.
    fn facts_of_api_close(&self, api: u32, session: SessionId) -> CloseFacts {
        let node = &self.apis[api as usize];
        match node.sessions.get(session) {
            Some(stream) => self.close_facts(*stream),
            None => CloseFacts::default(),
        }
    }

    fn api_closes(&mut self, api: u32, session: SessionId) {
        let node = &mut self.apis[api as usize];
        let Some(stream) = node.sessions.remove(session) else { return };
        let life = node.process.life;
        self.close_api_end(stream, true);
        // A driver may notice the end of a stream that it was about to close itself.
        let luck = draw(self.story.seed, Lane::new(Purpose::Late, api as usize), session.0);
        if luck & 7 == 0 {
            let at = self.now + within(luck, 0, MS);
            self.agenda.note(at, Event::ApiStreamEnded { api, life, session: session.0 });
        }
    }

    /// The driver says that a stream is over.
    pub(super) fn api_stream_ended(&mut self, api: u32, life: u32, session: u64) {
        let node = &mut self.apis[api as usize];
        if node.process.life != life || node.machine.is_none() {
            return;
        }
        if node.process.is_hung() {
            node.process.deferred.push(Event::ApiStreamEnded { api, life, session });
            return;
        }
        node.sessions.remove(SessionId(session));
        self.step_api(api, Input::StreamClosed { session: SessionId(session) });
    }

    /// Notes when the coordinator wants to be woken. Timers are a little late, as timers are.
    pub(super) fn arm_api(&mut self, api: u32) {
        let at = api as usize;
        let node = &mut self.apis[at];
        let Some(due) = node.machine.as_ref().and_then(Coordinator::poll_timeout) else { return };
        let due = node.process.time_of(due).max(self.now);
        if node.process.tick_at.is_some_and(|noted| noted <= due) {
            return;
        }
        let luck = draw(self.story.seed, Lane::new(Purpose::Timer, at), due);
        let late = match self.options.sim_bug {
            Some(SimBug::TimerLate) => 2 * SECOND,
            _ => within(luck, 0, MS / 2),
        };
        node.process.tick_at = Some(due + late);
        self.agenda.note(due + late, Event::ApiTick { api });
    }

    pub(super) fn api_tick(&mut self, api: u32) {
        let node = &mut self.apis[api as usize];
        let Some(machine) = &node.machine else { return };
        if node.process.tick_at != Some(self.now) {
            return;
        }
        if node.process.is_hung() {
            node.process.deferred.push(Event::ApiTick { api });
            return;
        }
        node.process.tick_at = None;
        let clock = node.process.clock(self.now);
        if machine.poll_timeout().is_some_and(|due| due <= clock) {
            let ticks = node.process.ticks(self.now);
            self.checker.timer_helps(ticks, About::api(api));
            self.step_api(api, Input::Tick);
        }
        self.arm_api(api);
    }

    /// A client asks, if its API is there to hear it.
    pub(super) fn submit(&mut self, query: u32) {
        let story = &self.story.queries[query as usize];
        let node = &mut self.apis[story.api as usize];
        if node.machine.is_none() {
            return;
        }
        if node.process.is_hung() {
            node.process.deferred.push(Event::Submit { query });
            return;
        }
        self.clients[query as usize].life = node.process.life;
        let deadline = node.process.clock(self.now) + story.deadline;
        let items = (0..)
            .zip(&story.items)
            .map(|(item, it)| WorkItem {
                leaf: LeafId(item % 3),
                affinity_key: AffinityKey(it.affinity),
                spec: content::spec(story.number, item),
            })
            .collect();
        let submission = Submission {
            query: content::query_id(self.story.seed, story.number),
            tenant: self.tenants[story.tenant as usize].clone(),
            deadline,
            window: story.window,
            traceparent: String::new(),
            items,
        };
        self.tally.queries += 1;
        self.checker.submitted(story.api, query, deadline);
        self.step_api(story.api, Input::Submit(submission));
    }

    /// A client goes away. It may do so after its query has ended: nobody can know.
    pub(super) fn leave(&mut self, query: u32) {
        let story = &self.story.queries[query as usize];
        let node = &mut self.apis[story.api as usize];
        if node.process.is_hung() {
            node.process.deferred.push(Event::Leave { query });
            return;
        }
        let asked = self.clients[query as usize].life;
        if asked == 0 || asked != node.process.life || node.machine.is_none() {
            return;
        }
        let id = content::query_id(self.story.seed, story.number);
        self.step_api(story.api, Input::CancelQuery { query: id });
    }

    fn delivered(&mut self, query: u32) {
        let client = &mut self.clients[query as usize];
        client.delivered += 1;
        if !client.reading {
            client.reading = true;
            let at = self.now + self.story.queries[query as usize].reader_lag;
            self.agenda.note(at, Event::Consume { query, life: client.life });
        }
    }

    /// A reader is done: a slow one with one item, a fast one with all there are.
    pub(super) fn consume(&mut self, query: u32, life: u32) {
        let story = &self.story.queries[query as usize];
        let node = &mut self.apis[story.api as usize];
        if node.process.life != life || node.machine.is_none() {
            return;
        }
        if node.process.is_hung() {
            node.process.deferred.push(Event::Consume { query, life });
            return;
        }
        let client = &mut self.clients[query as usize];
        let slow = story.reader_lag > 10 * MS;
        client.consumed = if slow { client.consumed + 1 } else { client.delivered };
        client.reading = client.consumed < client.delivered;
        let through = client.consumed;
        if client.reading {
            self.agenda.note(self.now + story.reader_lag, Event::Consume { query, life });
        }
        let id = content::query_id(self.story.seed, story.number);
        self.step_api(story.api, Input::Consumed { query: id, through });
    }
}
