//! A worker under load, killed with SIGKILL at random moments and started again over the same folder:
//! the books are exact from the start, nothing of an earlier life is served, and nothing that is half
//! made is ever to be seen. Its segments come from a bucket, so that downloads are cut short too.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use core_workcoord::message::WorkerMessage;
use tributary_artifact_store::FetchError;
use tributary_integration::differential::dice::Dice;
use tributary_integration::worker_suite::api::Api;
use tributary_integration::worker_suite::bucket::Bucket;
use tributary_integration::worker_suite::field::{Field, Job};
use tributary_integration::worker_suite::http::get;
use tributary_integration::worker_suite::process::WorkerProcess;

use super::{BINARY, count_of};

/// The longest that a life lasts under load.
const LIFE_MAX_MS: i64 = 400;

/// Copies of each segment to choose from.
const COPIES: usize = 300;

/// Addresses below the worker's and the tokens that opened them.
type Opened = RefCell<Vec<(String, String)>>;

/// Files of a folder with their lengths; none where there is no folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, u64> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let entries = entries.map(|entry| entry.expect("the folder can be read"));
    entries.map(|entry| (entry.path(), entry.metadata().expect("it is there").len())).collect()
}

/// What a kill left is whole wherever its name says so.
fn left_behind(cache: &Path, originals: &[Vec<u8>]) -> (usize, usize) {
    let named = |folder: &str, end: &str| {
        let found = files(&cache.join(folder)).into_keys();
        found.filter(|path| path.to_string_lossy().ends_with(end)).collect::<Vec<_>>()
    };
    let artifacts = named("spool", ".artifact");
    for path in &artifacts {
        let bytes = fs::read(path).expect("it is there");
        let whole = bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1");
        assert!(whole, "{} is visible and not whole", path.display());
    }
    let segments = named("segments", ".segment");
    for path in &segments {
        let bytes = fs::read(path).expect("it is there");
        assert!(originals.contains(&bytes), "{} is visible and not whole", path.display());
    }
    let halves = named("spool", ".tmp").len() + named("segments", ".tmp").len();
    (artifacts.len(), halves)
}

/// The worker that has just started believes what is on disk, and serves nothing of before.
async fn begins_clean(worker: &WorkerProcess, cache: &Path, opened: &Opened) {
    let spooled = files(&cache.join("spool"));
    assert!(spooled.is_empty(), "{spooled:?}\n{}", worker.log());
    let kept = files(&cache.join("segments"));
    worker.until("cached_segment_files", kept.len() as u64).await;
    worker.until("cache_bytes", kept.values().sum()).await;
    worker.until("spool_bytes", 0).await;
    worker.until("artifacts", 0).await;
    for (path, token) in opened.take() {
        let answer = get(worker.http, &path, &[&format!("Authorization: Bearer {token}")]).await;
        assert_eq!(answer.status, 404, "{path} is of an earlier life");
    }
}

/// Gives work, cancels some of it, fetches and acknowledges the rest, until it is dropped.
async fn load(worker: &WorkerProcess, mut api: Api, jobs: &[Job], mut dice: Dice, opened: &Opened) {
    for item in 0.. {
        let copy = u32::try_from(dice.below(COPIES)).expect("there are not so many");
        let number = u32::try_from(dice.below(20)).expect("there are not so many");
        let job = dice.pick(jobs).over_copy(copy);
        api.start(item, job.spec(number)).await;
        let take_back = dice.percent(20);
        if take_back {
            api.cancel(item).await;
        }
        loop {
            match api.answer().await {
                WorkerMessage::Ready(ready) => {
                    let artifact = ready.artifact;
                    let (_, name) = artifact.url.split_once("/artifacts/").expect("it is one");
                    let path = format!("/artifacts/{name}");
                    opened.borrow_mut().push((path, api.token().to_owned()));
                    // What was taken back too late is answered by a second message.
                    if !take_back {
                        match api.fetch(&artifact).await {
                            Ok(_) => api.acknowledge(item, &artifact).await,
                            // A machine that is too busy to connect in time has broken no promise.
                            Err(FetchError::Unreachable(_)) => {}
                            Err(error) => panic!("it is there, and whole: {error}"),
                        }
                        break;
                    }
                }
                WorkerMessage::Cancelled(_) => break,
                // Nor has one that is too busy to download in time.
                WorkerMessage::Failed(failed) if failed.failure.retryable => {
                    if !take_back {
                        break;
                    }
                }
                other => panic!("{other:?}\n{}", worker.log()),
            }
        }
    }
}

#[tokio::test]
async fn whenever_it_is_killed_the_next_life_starts_with_exact_books_and_serves_nothing_old() {
    let kills = count_of("TRIBUTARY_TEST_KILLS", 20);
    let field = Field::sown();
    let bucket = Bucket::of(field.store()).await;
    let cache = field.cache("cache");
    let originals = all_files(&field.store());
    let jobs = [field.tiny(), field.tiny(), field.tiny(), field.large(), field.long()];
    let opened = Opened::default();
    let mut dice = Dice::new(4, 9);
    let (mut artifacts, mut halves, mut served) = (0, 0, 0);
    let mut kept = 0;
    for life in 0..=kills {
        let mut command = bucket.worker(BINARY);
        command.arg("--cache-dir").arg(&cache);
        let worker = WorkerProcess::start_command(command, &["artifacts.ttl_after_ack=500ms"]);
        served += opened.borrow().len();
        begins_clean(&worker, &cache, &opened).await;
        kept = files(&cache.join("segments")).len();
        if life == kills {
            break;
        }
        let after = Duration::from_millis(dice.between(1, LIFE_MAX_MS).unsigned_abs());
        let throws = [dice.throw(), dice.throw(), dice.throw()].map(|seed| Dice::new(seed, 1));
        let [one, two, three] = throws;
        // Introduced before the clock starts, so that every kill finds work in the making.
        let greeted = async |name| Api::greeted(worker.grpc, name, 1).await;
        let apis = [greeted("api-1").await, greeted("api-2").await, greeted("api-3").await];
        let [api_1, api_2, api_3] = apis;
        let loads = async {
            tokio::join!(
                load(&worker, api_1, &jobs, one, &opened),
                load(&worker, api_2, &jobs, two, &opened),
                load(&worker, api_3, &jobs, three, &opened),
            )
        };
        // Nobody speaks with the worker once it is dead: the load is not looked at again.
        tokio::select! {
            biased;
            () = tokio::time::sleep(after) => {}
            _ = loads => unreachable!("they never end"),
        }
        worker.kill();
        let left = left_behind(&cache, &originals);
        artifacts += left.0;
        halves += left.1;
    }
    println!(
        "{kills} kills: {served} artifacts were announced, {artifacts} lay whole in the spool, \
         {halves} files were half written, {kept} segment files are cached in the end"
    );
    assert!(artifacts + halves > 0 && kept > 0, "the kills came at no interesting moment");
}

/// The bytes of all files below a folder.
fn all_files(folder: &Path) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for path in files(folder).into_keys() {
        if path.is_dir() {
            found.extend(all_files(&path));
        } else {
            found.push(fs::read(&path).expect("it is there"));
        }
    }
    found
}
