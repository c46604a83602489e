//! Whether the suite bites: with each of several deliberate bugs in the product it must report a
//! violation, and without any it must not. Needs a binary built with the feature `sabotage`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::error::ChaosError;
use crate::fault::Kind;
use crate::run::{Terms, run};

/// The variable by which a binary with deliberate bugs is told which to have.
pub const VARIABLE: &str = "TRIBUTARY_SABOTAGE";

/// A deliberate bug, and the faults that bring it to light.
#[derive(Clone, Copy, Debug)]
pub struct Bait {
    /// Its name in the product.
    pub bug: &'static str,
    /// What it does.
    pub what: &'static str,
    /// Faults that bring it to light; where there are none, clients alone do.
    pub kinds: &'static [Kind],
}

/// All of them.
pub const BAITS: [Bait; 14] = [
    bait("TrustBytes", "the API does not compare checksums", &[Kind::DiskFlips, Kind::WireFlips]),
    bait("SkipChecksum", "the API takes a wrong artifact for a right one", &[Kind::DiskFlips]),
    bait("StaleArtifact", "a worker serves an artifact of other work", &[Kind::FreezeShort]),
    bait("LoseLostWork", "the API does not requeue work of a lost worker", &[Kind::KillWorker]),
    bait("TrustSilence", "the API never takes silence for loss", &[Kind::HalfOpen]),
    bait("ForgetRedial", "the API does not redial a lost worker", &[Kind::RestartWorker]),
    bait("ForgetClientGone", "the API does not cancel when a client leaves", &[Kind::FreezeShort]),
    bait("ForgetAck", "the API does not acknowledge what it fetched", &[Kind::FreezeShort]),
    bait("DoubleDeliver", "the API delivers an item a second time", &[Kind::FreezeShort]),
    bait("LeakQuery", "the API keeps a finished query in its table", &[Kind::FreezeShort]),
    bait("LeakCancellation", "the API keeps a confirmed cancellation", &[Kind::FreezeShort]),
    bait("LeakSlot", "a worker does not free the slot of a cancelled run", &[Kind::FreezeShort]),
    bait("IgnoreTtl", "a worker keeps artifacts for ever", &[Kind::FreezeShort]),
    bait("UnconfirmedCancel", "a worker does not confirm cancellations", &[Kind::FreezeShort]),
];

const fn bait(bug: &'static str, what: &'static str, kinds: &'static [Kind]) -> Bait {
    Bait { bug, what, kinds }
}

/// What came of one of them.
#[derive(Clone, Debug)]
pub struct Bitten {
    /// The bug; none for the product as it is.
    pub bait: Option<Bait>,
    /// What was reported, the first of each promise.
    pub reported: Vec<String>,
}

impl Bitten {
    /// Whether the suite said what it should.
    pub fn is_good(&self) -> bool {
        self.bait.is_some() != self.reported.is_empty()
    }
}

/// Runs with each bug, and once without, for so long each.
pub async fn bite(
    binary: &Path,
    s3: Option<&str>,
    seed: u64,
    time: Duration,
    tell: &mut dyn FnMut(&str),
) -> Result<Vec<Bitten>, ChaosError> {
    if !has_bugs(binary) {
        return Err(ChaosError::NotSabotaged);
    }
    let mut all = Vec::new();
    for bait in BAITS.into_iter().map(Some).chain([None]) {
        let kinds =
            bait.map_or_else(|| vec![Kind::KillWorker, Kind::WireFlips], |it| it.kinds.to_vec());
        let terms = Terms {
            s3: s3.map(str::to_owned),
            bug: bait.map(|bait| bait.bug.to_owned()),
            kinds,
            rest_every: usize::MAX,
            ..Terms::of(binary.to_owned(), time, seed)
        };
        let mut reported = match run(&terms, &mut |_| ()).await {
            Ok(report) => {
                let texts = report.violations.iter();
                texts.map(|it| format!("{}: {}", it.promise.words(), it.what)).collect()
            }
            // With some bugs it never comes to a fault-free answer: that is a report too.
            Err(error @ ChaosError::NoReference { .. }) => vec![error.to_string()],
            Err(error) => return Err(error),
        };
        reported.truncate(3);
        let bitten = Bitten { bait, reported };
        let (name, what) = bait.map_or(("no bug", "the product as it is"), |it| (it.bug, it.what));
        let word = if bitten.is_good() { "as it should be" } else { "NOT AS IT SHOULD BE" };
        let first = bitten.reported.first().map_or("nothing reported", String::as_str);
        let first: String = first.chars().take(160).collect();
        tell(&format!("{name} ({what}): {word}: {first}"));
        all.push(bitten);
    }
    Ok(all)
}

/// Whether a binary has bugs to switch on: its worker says so when it starts, before it finds that it
/// can't.
fn has_bugs(binary: &Path) -> bool {
    let folder = std::env::temp_dir();
    let mut command = Command::new(binary);
    command.args(["worker", "--worker-id", "none", "--rehearse", "--grpc", "127.0.0.1:0"]);
    command.args(["--http", "127.0.0.1:0", "--set", "drain.timeout=1s"]).current_dir(folder);
    command.env(VARIABLE, "none").stdin(std::process::Stdio::null());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let Ok(mut child) = command.spawn() else { return false };
    std::thread::sleep(Duration::from_millis(500));
    // It may be gone already.
    drop(child.kill());
    child.wait_with_output().is_ok_and(|said| {
        String::from_utf8_lossy(&said.stderr).contains("built with deliberate bugs")
    })
}
