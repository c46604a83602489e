//! Journals of the simulated nodes: one for each life of each node, to be replayed with
//! `core_workcoord::journal`.

use core_workcoord::coordinator::{self, Coordinator};
use core_workcoord::intake::{self, Intake};
use core_workcoord::journal::{Header, Recorder};
use core_workcoord::moment::Moment;

/// The journal of one life of one node.
#[derive(Clone, Debug)]
pub struct Journal {
    /// Which node and which life: `api-0.1`, `worker-3.2`.
    pub name: String,
    /// What `core_workcoord::journal::replay` reads.
    pub bytes: Vec<u8>,
}

/// The journals so far, if they are kept.
#[derive(Debug, Default)]
pub(crate) struct Journals {
    open: Vec<Open>,
    closed: Vec<Journal>,
}

#[derive(Debug)]
struct Open {
    node: Node,
    name: String,
    recorder: Recorder,
}

/// A place in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Api(u32),
    Worker(u32),
}

impl Journals {
    /// A new life begins.
    pub(crate) fn begin(&mut self, node: Node, life: u32, header: &Header) {
        self.end(node);
        let name = match node {
            Node::Api(api) => format!("api-{api}.{life}"),
            Node::Worker(worker) => format!("worker-{worker}.{life}"),
        };
        self.open.push(Open { node, name, recorder: Recorder::new(header) });
    }

    fn end(&mut self, node: Node) {
        if let Some(at) = self.open.iter().position(|it| it.node == node) {
            let mut it = self.open.swap_remove(at);
            self.closed.push(Journal { name: it.name, bytes: it.recorder.take() });
        }
    }

    fn recorder(&mut self, node: Node) -> Option<&mut Recorder> {
        self.open.iter_mut().find(|it| it.node == node).map(|it| &mut it.recorder)
    }

    pub(crate) fn api_step(
        &mut self,
        api: u32,
        now: Moment,
        input: &coordinator::Input,
        actions: &[coordinator::Action],
    ) {
        if let Some(recorder) = self.recorder(Node::Api(api)) {
            recorder.record::<Coordinator>(now, input, actions);
        }
    }

    pub(crate) fn worker_step(
        &mut self,
        worker: u32,
        now: Moment,
        input: &intake::Input,
        actions: &[intake::Action],
    ) {
        if let Some(recorder) = self.recorder(Node::Worker(worker)) {
            recorder.record::<Intake>(now, input, actions);
        }
    }

    /// All of them, in the order of their names.
    pub(crate) fn into_all(mut self) -> Vec<Journal> {
        while let Some(it) = self.open.last() {
            self.end(it.node);
        }
        self.closed.sort_by(|one, other| one.name.cmp(&other.name));
        self.closed
    }
}
