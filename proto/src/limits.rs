//! How large things on the control stream may be. `decode` refuses what is larger; `encode` says
//! what it does about each of them.

/// The longest `spec` of a work item: 4 MiB. A planner checks against it before it submits a query,
/// for a worker ends the stream over a longer one. Larger would also mean that a heartbeat waits
/// longer for the message before it to get through.
pub const SPEC_MAX_BYTES: usize = 4 << 20;

/// The longest URL: 2 KiB.
pub const URL_MAX_BYTES: usize = 2 << 10;

/// The longest artifact token.
pub const TOKEN_MAX_BYTES: usize = 512;

/// The longest W3C trace context. Today's have 55 bytes; later versions may have more.
pub const TRACEPARENT_MAX_BYTES: usize = 256;

/// The longest name of a worker's build. What is longer is cut when it is sent.
pub const VERSION_MAX_BYTES: usize = 128;

/// The longest sentence about a failure: 4 KiB. What is longer is cut when it is sent.
pub const FAILURE_MESSAGE_MAX_BYTES: usize = 4 << 10;

/// The most slots of one worker.
pub const SLOTS_MAX: u32 = 65_536;

/// The longest deadline in seconds: ten thousand years, the most that `google.protobuf.Duration`
/// holds. A longer one is sent as this.
pub const DEADLINE_MAX_SECONDS: u64 = 315_576_000_000;

/// The longest message to a worker: a spec with what is around it.
pub const API_MESSAGE_MAX_BYTES: usize = SPEC_MAX_BYTES + (16 << 10);

/// The longest message to an API node: 64 KiB.
pub const WORKER_MESSAGE_MAX_BYTES: usize = 64 << 10;
