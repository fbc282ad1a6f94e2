//! The file formats as plain types: what a person may write, before it means anything.
//!
//! Doc comments here are the reference: they become the descriptions of the JSON Schema. Alternatives
//! are single-key maps or words, never untagged, so that every error has a place. Values that templates
//! may stand for have their final type here, because binding happens after rendering.

pub mod claim;
pub mod design;
pub mod environment;
pub mod experiment;
pub mod needs;
pub mod rows;
pub mod scalar;
pub mod step;
pub mod table;
pub mod values;

/// A wire enum of plain words that stands for a model enum of the same words.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident => $model:ty { $($(#[$doc:meta])* $variant:ident => $target:expr),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name {
            $($(#[$doc])* $variant,)+
        }

        impl From<$name> for $model {
            fn from(word: $name) -> Self {
                match word { $($name::$variant => $target,)+ }
            }
        }
    };
}
pub(crate) use words;
