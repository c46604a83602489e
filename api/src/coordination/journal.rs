//! Everything the coordinator was told and decided, in a file, for `tributary replay`. Written by a
//! thread of its own; a disk that is too slow or full ends the journal, never a query.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use core_workcoord::config::CoordinatorConfig;
use core_workcoord::coordinator::{Action, Coordinator, Input};
use core_workcoord::id::ApiId;
use core_workcoord::journal::{Header, Recorder};
use core_workcoord::moment::Moment;
use tracing::{error, info};

/// Steps on their way to the disk. A disk that is further behind ends the journal.
const STEPS_AHEAD: usize = 65_536;

/// Why there is no journal.
#[derive(Debug, thiserror::Error)]
#[error("a journal can't be written to {}", path.display())]
pub struct JournalFailure {
    path: PathBuf,
    source: io::Error,
}

/// A journal in the making.
#[derive(Debug)]
pub struct Journal {
    recorder: Recorder,
    /// Gone once the disk could not keep up.
    steps: Option<SyncSender<Vec<u8>>>,
    writer: JoinHandle<()>,
}

impl Journal {
    /// Begins a journal of a coordinator in a folder, under the name of this life of the node.
    pub fn begin(
        folder: &Path,
        config: &CoordinatorConfig,
        api_id: &ApiId,
        seed: u64,
    ) -> Result<Self, JournalFailure> {
        let path =
            folder.join(format!("{}.journal", api_id.as_str().replace([':', '[', ']'], "_")));
        let failed = |source| JournalFailure { path: path.clone(), source };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let file = File::create_new(&path).map_err(failed)?;
        let header = Header::Coordinator { config: config.clone(), api_id: api_id.clone(), seed };
        let (steps, taken) = sync_channel(STEPS_AHEAD);
        let writer = thread::Builder::new().name("journal".into());
        let writer = writer.spawn(move || write(file, &taken)).map_err(failed)?;
        info!(path = %path.display(), "journal begins");
        Ok(Self { recorder: Recorder::new(&header), steps: Some(steps), writer })
    }

    /// Adds an input and what it led to.
    pub fn record(&mut self, now: Moment, input: &Input, actions: &[Action]) {
        let Some(steps) = &self.steps else { return };
        self.recorder.record::<Coordinator>(now, input, actions);
        match steps.try_send(self.recorder.take()) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => {
                error!("the disk is too slow for the journal, which ends here");
                self.steps = None;
            }
            // The writer has said why.
            Err(TrySendError::Disconnected(_)) => self.steps = None,
        }
    }

    /// Writes what is left.
    pub async fn finish(mut self) {
        self.steps = None;
        let writer = self.writer;
        let ended = tokio::task::spawn_blocking(move || writer.join()).await;
        if !matches!(ended, Ok(Ok(()))) {
            error!("the journal's writer broke off");
        }
    }
}

fn write(file: File, steps: &Receiver<Vec<u8>>) {
    let mut file = io::BufWriter::new(file);
    let mut written = Ok(());
    while let Ok(bytes) = steps.recv() {
        written = file.write_all(&bytes);
        if written.is_err() {
            break;
        }
    }
    if let Err(error) = written.and_then(|()| file.flush()) {
        error!(%error, "the journal can't be written and ends here");
    }
}
