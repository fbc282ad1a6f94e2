//! `loadlab clean`: removes what dead runs left.

use clap::Args;

use super::failure::{Exit, Failure};
use super::print;
use crate::environment::{cache_folder, clean as sweep};

/// Arguments of `clean`.
#[derive(Debug, Args)]
pub(super) struct CleanArguments {}

pub(super) async fn clean(_: &CleanArguments) -> Result<Exit, Failure> {
    print(&format!("{}\n", sweep(&cache_folder()).await));
    Ok(Exit::Done)
}
