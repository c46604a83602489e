//! A state machine's inputs and the actions they led to, written compactly, and read back to see
//! that the same inputs still lead to the same actions. Bytes in, bytes out: files are the caller's.
//!
//! Format: eight bytes of magic, then frames. A frame is its length (varint), its content
//! (postcard) and the low 32 bits of the content's xxh3, little-endian. The first frame is the
//! [`Header`], every other one a step. Secrets and specs are left out: no decision rests on them.

use std::fmt;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::config::{BadConfig, CoordinatorConfig, IntakeConfig};
use crate::coordinator::{self, Coordinator};
use crate::id::ApiId;
use crate::intake::{self, Identity, Intake};
use crate::message::{ApiMessage, WorkerMessage};
use crate::moment::Moment;

/// How every journal begins; the last byte is the version of the format.
pub const MAGIC: [u8; 8] = *b"TRIBJRN\x01";

/// The largest frame that is read. A submission of the most items allowed fits many times.
const FRAME_MAX_BYTES: usize = 64 << 20;

/// Which machine was recorded, and how it was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Header {
    /// An API node's coordinator.
    Coordinator {
        /// Its knobs.
        config: CoordinatorConfig,
        /// Its name.
        api_id: ApiId,
        /// Its seed.
        seed: u64,
    },
    /// A worker's intake.
    Intake {
        /// Its knobs.
        config: IntakeConfig,
        /// Who it is.
        identity: Identity,
    },
}

/// A state machine that can be recorded and replayed.
pub trait Machine {
    /// What it is told.
    type Input: Clone + fmt::Debug + Serialize + DeserializeOwned;
    /// What it decides.
    type Action: Clone + fmt::Debug + PartialEq + Serialize + DeserializeOwned;

    /// Takes in what happened.
    fn handle(&mut self, now: Moment, input: Self::Input);
    /// The next thing to do.
    fn poll_action(&mut self) -> Option<Self::Action>;
    /// Takes out of an input what no decision rests on.
    fn elide_input(input: &mut Self::Input);
    /// Takes out of an action what must not be written down.
    fn elide_action(action: &mut Self::Action);
}

impl Machine for Coordinator {
    type Input = coordinator::Input;
    type Action = coordinator::Action;

    fn handle(&mut self, now: Moment, input: Self::Input) {
        Self::handle(self, now, input);
    }

    fn poll_action(&mut self) -> Option<Self::Action> {
        Self::poll_action(self)
    }

    fn elide_input(input: &mut Self::Input) {
        match input {
            coordinator::Input::Submit(submission) => {
                submission.items.iter_mut().for_each(|item| item.spec = Bytes::new());
            }
            coordinator::Input::Message { message: WorkerMessage::Welcome(welcome), .. } => {
                welcome.artifact_token.clear();
            }
            _ => {}
        }
    }

    fn elide_action(action: &mut Self::Action) {
        if let coordinator::Action::Send { message: ApiMessage::AssignWork(work), .. } = action {
            work.spec = Bytes::new();
        }
    }
}

impl Machine for Intake {
    type Input = intake::Input;
    type Action = intake::Action;

    fn handle(&mut self, now: Moment, input: Self::Input) {
        Self::handle(self, now, input);
    }

    fn poll_action(&mut self) -> Option<Self::Action> {
        Self::poll_action(self)
    }

    fn elide_input(input: &mut Self::Input) {
        match input {
            intake::Input::StreamOpened { token, .. } => token.clear(),
            intake::Input::Message { message: ApiMessage::AssignWork(work), .. } => {
                work.spec = Bytes::new();
            }
            _ => {}
        }
    }

    fn elide_action(action: &mut Self::Action) {
        match action {
            intake::Action::Send { message: WorkerMessage::Welcome(welcome), .. } => {
                welcome.artifact_token.clear();
            }
            intake::Action::Start { work, .. } => work.spec = Bytes::new(),
            _ => {}
        }
    }
}

/// One input and what it led to.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Step<I, A> {
    now: Moment,
    input: I,
    actions: Vec<A>,
}

/// Writes a journal into memory; the caller takes the bytes as often as it likes.
#[derive(Clone, Debug)]
pub struct Recorder {
    bytes: Vec<u8>,
}

impl Recorder {
    /// Begins a journal.
    pub fn new(header: &Header) -> Self {
        let mut recorder = Self { bytes: MAGIC.to_vec() };
        recorder.frame(header);
        recorder
    }

    /// Adds an input and the actions it led to.
    pub fn record<M: Machine>(&mut self, now: Moment, input: &M::Input, actions: &[M::Action]) {
        let mut step = Step { now, input: input.clone(), actions: actions.to_vec() };
        M::elide_input(&mut step.input);
        step.actions.iter_mut().for_each(M::elide_action);
        self.frame(&step);
    }

    /// The bytes since the last call, to be appended to the file.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn frame(&mut self, content: &impl Serialize) {
        let content = postcard::to_stdvec(content).expect("our own types can be written");
        let length = postcard::to_stdvec(&content.len()).expect("a number can be written");
        self.bytes.extend_from_slice(&length);
        self.bytes.extend_from_slice(&content);
        self.bytes.extend_from_slice(&check(&content));
    }
}

fn check(content: &[u8]) -> [u8; 4] {
    let hash = xxh3_64(content).to_le_bytes();
    [hash[0], hash[1], hash[2], hash[3]]
}

/// Why a journal can't be replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JournalError {
    /// It is not a journal, or one of another version.
    #[error("this is not a journal of this version")]
    NotAJournal,
    /// A frame's bytes are wrong.
    #[error("the frame at byte {at} is damaged")]
    Damaged {
        /// Where the frame begins.
        at: usize,
    },
    /// The recorded configuration makes no sense.
    #[error("the recorded configuration makes no sense: {0}")]
    Config(#[from] BadConfig),
}

/// One replayed step, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayedStep {
    /// Its place, counted from one.
    pub number: u64,
    /// When it was.
    pub now: Moment,
    /// What happened.
    pub input: String,
    /// What was decided now.
    pub actions: Vec<String>,
    /// What was decided then, if that differs.
    pub recorded: Option<Vec<String>>,
}

/// What a replay came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// Steps replayed.
    pub steps: u64,
    /// Steps whose decisions differ from the recorded ones.
    pub different: u64,
    /// The last frame was cut short, as by a crash; everything before it was replayed.
    pub truncated: bool,
}

/// Replays a journal from its beginning, and tells every step.
pub fn replay(
    journal: &[u8],
    mut tell: impl FnMut(&ReplayedStep),
) -> Result<(Header, Replayed), JournalError> {
    let mut frames = Frames::open(journal)?;
    let header: Header = frames.next()?.ok_or(JournalError::NotAJournal)?;
    let replayed = match header.clone() {
        Header::Coordinator { config, api_id, seed } => {
            run(Coordinator::new(config, api_id, seed)?, frames, &mut tell)?
        }
        Header::Intake { config, identity } => {
            run(Intake::new(config, identity)?, frames, &mut tell)?
        }
    };
    Ok((header, replayed))
}

fn run<M: Machine>(
    mut machine: M,
    mut frames: Frames<'_>,
    tell: &mut impl FnMut(&ReplayedStep),
) -> Result<Replayed, JournalError> {
    let text = |actions: &[M::Action]| -> Vec<String> {
        actions.iter().map(|action| format!("{action:?}")).collect()
    };
    let mut replayed = Replayed { steps: 0, different: 0, truncated: false };
    while let Some(step) = frames.next::<Step<M::Input, M::Action>>()? {
        replayed.steps += 1;
        let input = format!("{:?}", step.input);
        machine.handle(step.now, step.input);
        let mut actions: Vec<M::Action> = std::iter::from_fn(|| machine.poll_action()).collect();
        actions.iter_mut().for_each(M::elide_action);
        let differs = actions != step.actions;
        replayed.different += u64::from(differs);
        tell(&ReplayedStep {
            number: replayed.steps,
            now: step.now,
            input,
            actions: text(&actions),
            recorded: differs.then(|| text(&step.actions)),
        });
    }
    replayed.truncated = frames.truncated;
    Ok(replayed)
}

/// The frames of a journal, one after the other.
struct Frames<'a> {
    journal: &'a [u8],
    at: usize,
    truncated: bool,
}

impl<'a> Frames<'a> {
    fn open(journal: &'a [u8]) -> Result<Self, JournalError> {
        if !journal.starts_with(&MAGIC) {
            return Err(JournalError::NotAJournal);
        }
        Ok(Self { journal, at: MAGIC.len(), truncated: false })
    }

    /// The next frame; `None` at the end, or where the last frame was cut short.
    fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, JournalError> {
        let damaged = JournalError::Damaged { at: self.at };
        let rest = &self.journal[self.at..];
        if rest.is_empty() {
            return Ok(None);
        }
        let (length, body) = match postcard::take_from_bytes::<usize>(rest) {
            Ok(found) => found,
            Err(postcard::Error::DeserializeUnexpectedEnd) => return Ok(self.cut_short()),
            Err(_) => return Err(damaged),
        };
        if length > FRAME_MAX_BYTES {
            return Err(damaged);
        }
        let Some((content, after)) = body.split_at_checked(length) else {
            return Ok(self.cut_short());
        };
        let Some((sum, after)) = after.split_at_checked(4) else { return Ok(self.cut_short()) };
        if sum != check(content) {
            return Err(damaged);
        }
        self.at = self.journal.len() - after.len();
        match postcard::take_from_bytes(content) {
            Ok((frame, [])) => Ok(Some(frame)),
            Ok(_) | Err(_) => Err(damaged),
        }
    }

    fn cut_short<T>(&mut self) -> Option<T> {
        self.truncated = true;
        None
    }
}
