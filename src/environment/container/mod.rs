//! Containers through testcontainers; bollard for what that lacks.
//!
//! The user's image is initialised once (`bake`): its own entry point makes the cluster outside every
//! declared volume, and the result becomes an image of its own. A trial starts that image in about a
//! third of a second. Nothing is published beyond loopback, every call to the engine has a deadline, and
//! whatever is made carries our labels and stands in the ledger first.

mod bake;
mod engine;
mod folders;
mod image;
mod labels;
mod programs;
mod provider;
mod reach;
mod request;
mod running;
mod stats;

pub use engine::{ContainerEngine, EngineFacts};
pub use image::{ResolvedImage, candidates, resolve, resolve_like};
pub use labels::BAKED_LABEL;
pub use provider::ContainerProvider;
