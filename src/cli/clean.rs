//! `loadlab clean`: removes what dead runs left.

use clap::Args;

use super::failure::{Exit, Failure};
use super::print;
use crate::environment::clean::clean as sweep;
use crate::environment::doctor::cache_folder;

/// Arguments of `clean`.
#[derive(Debug, Args)]
pub(super) struct CleanArguments {}

pub(super) async fn clean(_: &CleanArguments) -> Result<Exit, Failure> {
    print(&format!("{}\n", sweep(&cache_folder()).await));
    Ok(Exit::Done)
}
