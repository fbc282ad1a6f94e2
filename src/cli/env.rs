//! `loadlab env list | doctor | install`.

use clap::Subcommand;

use super::failure::{Exit, Failure};
use super::print;
use crate::environment::discover::discover;
use crate::environment::doctor::{cache_folder, doctor};
use crate::environment::install::install;

/// What is asked about servers.
#[derive(Debug, Subcommand)]
pub(super) enum EnvCommand {
    /// List the servers found on this machine
    List,
    /// Say what this machine can run, and for what it cannot, why and what to do
    Doctor,
    /// Fetch a PostgreSQL server into loadlab's cache
    Install {
        /// Major version, such as 18
        major: u32,
        /// Fetch nothing: only say whether it is there
        #[arg(long)]
        offline: bool,
    },
}

pub(super) async fn env(command: EnvCommand) -> Result<Exit, Failure> {
    let cache = cache_folder();
    match command {
        EnvCommand::List => print(&format!("{}\n", discover(None, &cache).await?)),
        EnvCommand::Doctor => {
            let report = doctor(&cache).await;
            print(&format!("{report}\n"));
            if !report.container() && !report.local() {
                return Ok(Exit::Environment);
            }
        }
        EnvCommand::Install { major, offline } => {
            print(&format!("{}\n", install(major, &cache, offline).await?));
        }
    }
    Ok(Exit::Done)
}
