//! The rule table: what of a payload may change while events of it are stored, and what may not.

use std::fmt;

/// Whether stored events survive a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They decode, and nothing of them is lost.
    Safe,
    /// Some would not decode, or lose something, unless the version is raised and an upcast leads to it.
    Breaking,
}

macro_rules! rules {
    ($($rule:ident, $verdict:ident, $what:literal, $why:literal;)*) => {
        /// The rules, each with its verdict.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = concat!("**", stringify!($verdict), ".** ", $what, ": ", $why, ".")] $rule,)*
        }

        impl Rule {
            /// Every rule, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$rule),*];

            /// Whether stored events survive this.
            pub fn verdict(self) -> Verdict {
                match self {
                    $(Self::$rule => Verdict::$verdict,)*
                }
            }

            /// What this means for stored events.
            pub fn why(self) -> &'static str {
                match self {
                    $(Self::$rule => $why,)*
                }
            }
        }
    };
}

rules! {
    FieldRemoved, Breaking, "A field is gone, or renamed without `#[serde(alias)]`", "what is stored in it would be dropped unseen";
    FieldRefused, Breaking, "A field is gone, and the struct denies unknown fields", "events that have it would not decode";
    FieldRenamed, Safe, "A field has a new name, and `#[serde(alias)]` reads the old one", "a sample of the old shape shows that it is read";
    FieldAdded, Safe, "A new field that may be missing", "an `Option`, or one with `#[serde(default)]`";
    RequiredFieldAdded, Breaking, "A new field without a default", "events stored before do not have it";
    FieldRequired, Breaking, "A field that could be missing no longer can", "events without it would not decode";
    FieldOptional, Safe, "A field may be missing now", "every stored event has it";
    UnknownFieldsDenied, Safe, "The struct denies unknown fields now, and none was removed", "what is stored has no others";
    EntriesRefused, Breaking, "A map became a struct", "entries that are none of its fields would be dropped or refused";
    TypeChanged, Breaking, "Another type", "what is stored would not decode";
    TypeWidened, Safe, "A type that takes the old one's values and others", "what is stored decodes";
    NullRefused, Breaking, "No longer nullable", "a stored null would not decode";
    NullAccepted, Safe, "Nullable now", "what is stored decodes";
    RangeNarrowed, Breaking, "A smaller range of numbers", "a stored number may lie outside of it";
    RangeWidened, Safe, "A larger range of numbers", "what is stored lies in it";
    PrecisionLost, Breaking, "A number that holds fewer digits", "stored numbers would be rounded unseen";
    FormatNarrowed, Breaking, "A string, or a map's key, of a narrower form", "a stored one may not have it";
    FormatWidened, Safe, "A string, or a map's key, of a wider form", "what is stored decodes";
    LengthNarrowed, Breaking, "Another tuple arity, or fewer lengths of a list or string", "a stored one may have another";
    LengthWidened, Safe, "More lengths of a list or string", "what is stored decodes";
    VariantRemoved, Breaking, "An enum's variant is gone, or the enum is represented in another way", "events that hold it would not decode";
    VariantAdded, Safe, "A new variant of an enum", "what is stored holds others";
    ConstraintChanged, Breaking, "A constraint whose meaning is not known here", "whether what is stored keeps it cannot be told";
    VersionUnread, Breaking, "A stored version from which no upcast leads to the present one", "its events would be dead letters";
    VersionLowered, Breaking, "A version that is lower than the stored one", "events of the newer version would be left alone";
    NameUnread, Breaking, "An event type without a handler", "its events would wait for ever";
}

/// One difference between what is stored and what reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change {
    /// The rule that it falls under.
    pub rule: Rule,
    /// Where in the payload, such as `lines[].cents`; empty for the payload itself.
    pub path: String,
    /// What changed.
    pub what: String,
}

impl Change {
    pub(super) fn is_breaking(&self) -> bool {
        self.rule.verdict() == Verdict::Breaking
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "`{}`: ", self.path)?;
        }
        write!(f, "{}; {}", self.what, self.rule.why())
    }
}
