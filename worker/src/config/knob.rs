//! What a knob is: its name, its meaning, its default, said once. The macro makes the struct that
//! holds a section's values and the list that flags, environment and printed files are read by.

/// One thing that can be configured.
#[derive(Clone, Copy, Debug)]
pub struct Knob {
    /// The section it stands in; empty at the top of the file.
    pub section: &'static str,
    /// Its name in the section.
    pub name: &'static str,
    /// How its value is written.
    pub kind: Kind,
    /// Meaning, default, and what raising it costs: one text for readers of code, file and help.
    pub about: &'static [&'static str],
}

/// How a value is written in TOML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In quotes.
    Text,
    /// A whole number.
    Number,
    /// `true` or `false`.
    Flag,
}

impl Knob {
    /// The name with its section, as flags use it: `control.heartbeat_interval`.
    pub fn key(&self) -> String {
        match self.section {
            "" => self.name.into(),
            section => format!("{section}.{}", self.name),
        }
    }

    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("{}{}", super::VARIABLE_PREFIX, self.key().replace('.', "_").to_uppercase())
    }
}

/// A type that a knob can have.
pub trait Typed {
    /// How it is written.
    const KIND: Kind;
}

macro_rules! typed {
    ($kind:ident: $($type:ty),*) => {
        $(impl Typed for $type { const KIND: Kind = Kind::$kind; })*
    };
}

typed!(Text: String, std::path::PathBuf, std::net::SocketAddr, super::Span, super::LogFormat);
typed!(Number: u8, u32, u64);
typed!(Flag: bool);

impl<T: Typed> Typed for Option<T> {
    const KIND: Kind = T::KIND;
}

macro_rules! knobs {
    (
        $(#[doc = $top:literal])*
        $struct:ident in $section:literal {
            $($(#[doc = $doc:literal])* $field:ident: $type:ty = $default:expr,)*
        }
        $(sections { $($(#[doc = $part_doc:literal])* $part:ident: $part_type:ty,)* })?
    ) => {
        $(#[doc = $top])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $struct {
            $($(#[doc = $doc])* pub $field: $type,)*
            $($($(#[doc = $part_doc])* pub $part: $part_type,)*)?
        }

        impl $struct {
            /// Its own knobs, in the order they are printed.
            pub const KNOBS: &[Knob] = &[$(Knob {
                section: $section,
                name: stringify!($field),
                kind: <$type as Typed>::KIND,
                about: &[$($doc),*],
            }),*];
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
pub(super) use knobs;
