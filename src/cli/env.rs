//! `loadlab env list | doctor | install`.

use clap::Subcommand;
use jiff::Timestamp;

use super::failure::{Exit, Failure};
use super::print;
use crate::environment::discover::{Found, discover};
use crate::environment::doctor::{cache_folder, doctor};
use crate::environment::install::install;
use crate::environment::ledger::Ledger;
use crate::store::new_run_id;

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

fn list(found: &Found) {
    for binaries in &found.usable {
        print(&format!("{binaries}\n"));
    }
    for refused in &found.refused {
        let folder = refused.folder.display();
        print(&format!("not usable: {folder} ({}): {}\n", refused.source, refused.why));
    }
    if found.usable.is_empty() {
        print("no PostgreSQL server was found; `loadlab env install 18` fetches one\n");
    }
}

pub(super) async fn env(command: EnvCommand) -> Result<Exit, Failure> {
    let cache = cache_folder();
    match command {
        EnvCommand::List => list(&discover(None, &cache).await?),
        EnvCommand::Doctor => {
            let report = doctor(&cache).await;
            print(&format!("{report}\n"));
            if !report.container() && !report.local() {
                return Ok(Exit::Environment);
            }
        }
        EnvCommand::Install { major, offline } => {
            let ledger = Ledger::open(&cache, &new_run_id(Timestamp::now()))?;
            print(&format!("{}\n", install(major, &cache, offline, &ledger).await?));
        }
    }
    Ok(Exit::Done)
}
