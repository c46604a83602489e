//! A watch over tests that must come to an end: says what does not, and gives up.
#![expect(clippy::disallowed_methods, reason = "only a clock and a thread can tell a hang")]

use std::sync::{LazyLock, Mutex, MutexGuard};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

/// What no input may take, on a slow machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is tried now, and since when, by every test that runs.
type InHand = Vec<(ThreadId, Instant, String)>;

static IN_HAND: LazyLock<Mutex<InHand>> = LazyLock::new(|| {
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_secs(1));
            let in_hand = in_hand();
            let late = in_hand.iter().find(|(_, since, _)| since.elapsed() > PATIENCE);
            if let Some((_, _, input)) = late {
                eprintln!("no end in sight after {PATIENCE:?}: {input}");
                std::process::abort();
            }
        }
    });
    Mutex::default()
});

fn in_hand() -> MutexGuard<'static, InHand> {
    IN_HAND.lock().expect("nobody panics while it is locked")
}

/// Runs something that must come to an end.
pub fn watched<T>(input: &str, run: impl FnOnce() -> T) -> T {
    let me = thread::current().id();
    in_hand().push((me, Instant::now(), input.to_owned()));
    let _forget = Forget(me);
    run()
}

/// Takes an input from the list, even if a panic ends its test.
struct Forget(ThreadId);

impl Drop for Forget {
    fn drop(&mut self) {
        in_hand().retain(|(thread, ..)| *thread != self.0);
    }
}
