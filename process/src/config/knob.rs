//! What a knob is: its name, its meaning, its default, said once. The macro makes the struct that
//! holds a section's values and the list that flags, environment and printed files are read by.

/// One thing that can be configured.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// Its name in its section.
    pub name: &'static str,
    /// How its value is written.
    pub kind: Kind,
    /// Meaning, default, and what raising it costs: one text for readers of code, file and help.
    pub about: &'static [&'static str],
}

/// How a value is written in TOML, and how it is read from text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In quotes.
    Text,
    /// A whole number.
    Number,
    /// A number that may have a fraction.
    Decimal,
    /// `true` or `false`.
    Flag,
    /// Texts in brackets; on the command line and in the environment with commas between them.
    List,
}

/// Values that belong together, as [`knobs!`](crate::knobs) declares them.
pub trait Section {
    /// Its own knobs, in the order they are printed.
    const KNOBS: &'static [Knob];
    /// Its own knobs under the empty name, then those of the sections in it under theirs.
    const PARTS: &'static [Part];

    /// Every knob with the section it stands in, in the order they are printed.
    fn settings() -> impl Iterator<Item = Setting> {
        let setting = |part: &'static Part, knob| Setting { section: part.name, knob };
        Self::PARTS
            .iter()
            .flat_map(move |part| part.knobs.iter().map(move |knob| setting(part, knob)))
    }
}

/// The knobs of one section.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Its name; empty at the top of the file.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static [&'static str],
    /// Its knobs.
    pub knobs: &'static [Knob],
}

/// A knob where it stands.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The section; empty at the top of the file.
    pub section: &'static str,
    /// The knob.
    pub knob: &'static Knob,
}

impl Setting {
    /// The name with its section, as flags use it: `control.heartbeat_interval`.
    pub fn key(&self) -> String {
        match self.section {
            "" => self.knob.name.into(),
            section => format!("{section}.{}", self.knob.name),
        }
    }

    /// The environment variable that sets it.
    pub fn variable(&self, prefix: &str) -> String {
        format!("{prefix}{}", self.key().replace('.', "_").to_uppercase())
    }
}

/// A type that a knob can have. An enum that is read from a text has the kind `Text`.
pub trait Typed {
    /// How it is written.
    const KIND: Kind;
}

macro_rules! typed {
    ($kind:ident: $($type:ty),*) => {
        $(impl Typed for $type { const KIND: Kind = Kind::$kind; })*
    };
}

typed!(Text: String, std::path::PathBuf, std::net::SocketAddr, super::Span);
typed!(Number: u8, u16, u32, u64, usize, i64);
typed!(Decimal: f64);
typed!(Flag: bool);
typed!(List: Vec<String>);

impl<T: Typed> Typed for Option<T> {
    const KIND: Kind = T::KIND;
}

/// Declares a struct of knobs: fields with their defaults, whose comments are what is printed beside
/// them, and sections, which are such structs themselves. The crate that uses it needs `serde`.
///
/// ```
/// tributary_process::knobs! {
///     /// Everything that can be configured of a kettle.
///     KettleConfig {
///         /// How much it holds, in millilitres (default 1700). More: it takes longer.
///         volume: u32 = 1_700,
///     }
///     sections {
///         /// Log lines.
///         log: tributary_process::logs::LogConfig,
///     }
/// }
/// assert_eq!(KettleConfig::default().volume, 1_700);
/// ```
#[macro_export]
macro_rules! knobs {
    (
        $(#[doc = $top:literal])*
        $struct:ident {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty = $default:expr,)*
        }
        $(sections { $($(#[doc = $part_doc:literal])* $part:ident: $part_type:ty,)* })?
    ) => {
        $(#[doc = $top])*
        #[derive(Clone, Debug, PartialEq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $struct {
            $($(#[doc = $doc])* pub $field: $type,)*
            $($($(#[doc = $part_doc])* pub $part: $part_type,)*)?
        }

        impl $crate::config::Section for $struct {
            const KNOBS: &'static [$crate::config::Knob] = &[$($crate::config::Knob {
                name: stringify!($field),
                kind: <$type as $crate::config::Typed>::KIND,
                about: &[$($doc),*],
            }),*];
            const PARTS: &'static [$crate::config::Part] = &[
                $crate::config::Part {
                    name: "",
                    about: &[$($top),*],
                    knobs: <Self as $crate::config::Section>::KNOBS,
                },
                $($($crate::config::Part {
                    name: stringify!($part),
                    about: &[$($part_doc),*],
                    knobs: <$part_type as $crate::config::Section>::KNOBS,
                },)*)?
            ];
        }

        impl Default for $struct {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    $($($part: <$part_type>::default(),)*)?
                }
            }
        }
    };
}
