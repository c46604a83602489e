//! How a server command leaves: at the first signal in good order, at the second at once.

use tokio::sync::oneshot;
use tributary_process::signals::Signals;

use crate::cli::Verdict;

/// Waits for a signal and then for `leave`, which a second signal cuts short.
pub(crate) async fn at_a_signal(signals: Signals, leave: impl AsyncFnOnce()) -> Verdict {
    let (tell, has_left) = oneshot::channel();
    let left = async || {
        leave().await;
        // Somebody waits for this, or a second signal came first.
        let _ = tell.send(());
    };
    tokio::select! {
        _ = has_left => Verdict::Good,
        code = signals.drain_then_give_up(left) => Verdict::Signalled(code),
    }
}
