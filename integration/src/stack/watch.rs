//! Hears what the product says while a story is told: an error in its log and a panic anywhere are
//! violations, and everything together, down to each message on the network, is one number that must
//! be the same when the story is told again.

use std::cell::RefCell;
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, Once, PoisonError};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

thread_local! {
    /// Panics of this thread, which are those of its story.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// From here on panics of this process are kept instead of printed.
pub(super) fn keep_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let kept = PANICS.try_with(|panics| panics.borrow_mut().push(info.to_string()));
            if kept.is_err() || std::env::var_os("TRIBUTARY_STACK_PANICS").is_some() {
                before(info);
            }
        }));
    });
    PANICS.with_borrow_mut(Vec::clear);
}

/// Panics of this thread so far.
pub(super) fn panics() -> Vec<String> {
    PANICS.take()
}

/// What was heard.
#[derive(Default)]
pub(super) struct Heard {
    pub(super) errors: Vec<String>,
    hash: DefaultHasher,
}

impl Heard {
    pub(super) fn hash(&self) -> u64 {
        self.hash.finish()
    }
}

/// Hears.
pub(super) struct Watch {
    pub(super) heard: Arc<Mutex<Heard>>,
    /// What is heard, beside errors.
    pub(super) level: LevelFilter,
    /// It is printed, too, to the last message on the network where that is listened to.
    pub(super) print: bool,
}

impl Subscriber for Watch {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // Stories follow each other, and each has its own wishes.
        Interest::sometimes()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.level
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut words = Words(String::new());
        event.record(&mut words);
        let at = turmoil::sim_elapsed();
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        (at, metadata.target(), &words.0).hash(&mut heard.hash);
        if *metadata.level() == Level::ERROR && metadata.target().starts_with("tributary") {
            heard.errors.push(words.0.clone());
        }
        if self.print {
            let at = at.unwrap_or_default().as_secs_f64();
            eprintln!("{at:>9.3} {} {}:{}", metadata.level(), metadata.target(), words.0);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// An event's fields as text.
struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string can't fail.
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
