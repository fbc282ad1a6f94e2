//! `loadlab clean`: removes what dead runs left.

use clap::Args;

use super::failure::{Exit, Failure};
use super::print;
use crate::environment::clean::clean as sweep;
use crate::environment::doctor::cache_folder;
use crate::environment::external::abandoned_schemas;

/// Arguments of `clean`.
#[derive(Debug, Args)]
pub(super) struct CleanArguments {}

pub(super) async fn clean(_: &CleanArguments) -> Result<Exit, Failure> {
    let cache = cache_folder();
    print(&sweep(&cache).await.to_string());
    for note in abandoned_schemas(&cache) {
        let schema = note.schema;
        print(&format!(
            "schema {schema} is left on an external server: the next run on that server drops it\n"
        ));
    }
    Ok(Exit::Done)
}
