//! What an experiment needs of the machine it runs on.

use serde::{Deserialize, Serialize};

use super::{Backend, VersionRange};

/// Conditions without which a treatment is not run. Everything absent is no condition.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Needs {
    /// CPUs that loadlab and a local server may use.
    pub cores: Option<Bound>,
    /// Physical memory, bytes.
    pub memory: Option<Bound>,
    /// Free bytes where servers keep their data.
    pub disk: Option<Bound>,
    /// Major version of the server.
    pub version: Option<Bound>,
    /// Where the server runs.
    pub backend: Option<Backend>,
    /// Whether loadlab must (or must not) run as root.
    pub root: Option<bool>,
    /// Programs that are found on the search path or beside the server.
    pub tools: Vec<String>,
    /// Block sizes, in bytes, that local servers were built with.
    pub block_sizes: Vec<u32>,
}

impl Needs {
    /// Whether one of these versions is new (or old) enough.
    #[must_use]
    pub fn allow(&self, versions: VersionRange) -> bool {
        let needed = self.version.as_ref();
        needed.is_none_or(|bound| (versions.min..=versions.max).any(|major| bound.holds(major.into())))
    }

    /// Whether a server that cannot be had is a need that is not met, rather than a fault of the machine.
    #[must_use]
    pub fn names_a_server(&self) -> bool {
        self.version.is_some() || self.backend.is_some() || !self.block_sizes.is_empty()
    }
}

/// A bound on a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    /// How the number must stand to the value.
    pub relation: Relation,
    /// The value.
    pub value: u64,
    /// As written: `>= 8GB`.
    pub text: String,
}

/// How a number stands to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Relation {
    /// `>=`
    AtLeast,
    /// `>`
    MoreThan,
    /// `<=`
    AtMost,
    /// `<`
    LessThan,
    /// `=`
    Exactly,
}

impl Relation {
    /// All of them with their signs; a longer sign stands before what it begins with.
    pub const SIGNS: [(&str, Self); 6] = [
        (">=", Self::AtLeast),
        ("<=", Self::AtMost),
        ("==", Self::Exactly),
        (">", Self::MoreThan),
        ("<", Self::LessThan),
        ("=", Self::Exactly),
    ];
}

impl Bound {
    /// Whether a number fulfils it.
    #[must_use]
    pub fn holds(&self, number: u64) -> bool {
        match self.relation {
            Relation::AtLeast => number >= self.value,
            Relation::MoreThan => number > self.value,
            Relation::AtMost => number <= self.value,
            Relation::LessThan => number < self.value,
            Relation::Exactly => number == self.value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_on_the_right_side() {
        let holds = |relation| {
            let bound = Bound { relation, value: 4, text: String::new() };
            [3, 4, 5].map(|number| bound.holds(number))
        };
        assert_eq!(holds(Relation::AtLeast), [false, true, true]);
        assert_eq!(holds(Relation::MoreThan), [false, false, true]);
        assert_eq!(holds(Relation::AtMost), [true, true, false]);
        assert_eq!(holds(Relation::LessThan), [true, false, false]);
        assert_eq!(holds(Relation::Exactly), [false, true, false]);
    }
}
