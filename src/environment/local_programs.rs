//! Client programs for a local server: from its own folder, or from another installation that may be used with it.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::child::run_in_group;
use super::discover::{Binaries, discover};
use super::files::failed;
use super::program::{DUMP_PROGRAMS, Pipeline, PipelineEnd, connection_variables, ended, is_legal, script};
use super::{Boxed, EnvironmentError};
use crate::engine::postgres::Endpoint;

/// Where client programs are and how they reach the server.
#[derive(Debug, Clone)]
pub(crate) struct LocalPrograms {
    folder: PathBuf,
    library_path: Option<PathBuf>,
    variables: Vec<(String, String)>,
    /// Working folder: inside the trial's, by which a stray program is known as ours.
    at: PathBuf,
}

impl LocalPrograms {
    pub(crate) fn new(binaries: &Binaries, endpoint: &Endpoint, at: &Path) -> Self {
        let variables = match endpoint {
            Endpoint::Socket { directory, port, password } => {
                connection_variables(&directory.to_string_lossy(), *port, password.as_ref())
            }
            Endpoint::Tcp { host, port, password } => connection_variables(host, *port, Some(password)),
            Endpoint::External { .. } => Vec::new(),
        };
        Self {
            folder: binaries.folder.clone(),
            library_path: binaries.library_path.clone(),
            variables,
            at: at.to_owned(),
        }
    }

    /// As this process' own user, who made the dumps and can read what the user named.
    pub(crate) fn run(&self, pipeline: Pipeline) -> Boxed<'static, Result<PipelineEnd, EnvironmentError>> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script(&pipeline, &format!("{}/", self.folder.display())));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()));
        command.env("LC_ALL", "C").env("TZ", "UTC").current_dir(&self.at);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if let Some(path) = &self.library_path {
            command.env("LD_LIBRARY_PATH", path);
        }
        Box::pin(async move {
            let done = run_in_group(command).await.map_err(failed("running client programs"))?;
            ended(&pipeline, &done.stdout, &done.stderr, false)
        })
    }
}

/// Binaries whose client programs can be used with a server: its own, else others of its major, else newer ones.
///
/// # Errors
/// Says what is missing and what to do.
pub(crate) async fn with_programs(server: &Binaries, cache: &Path) -> Result<Binaries, EnvironmentError> {
    let complete = |binaries: &&Binaries| {
        DUMP_PROGRAMS.iter().all(|name| binaries.tools.iter().any(|tool| tool == name))
    };
    if complete(&server) {
        return Ok(server.clone());
    }
    let found = discover(None, cache).await?;
    let usable = found.usable.iter().filter(complete).filter(|other| is_legal(other.major, server.major));
    usable.min_by_key(|other| other.major).cloned().ok_or_else(|| {
        let missing: Vec<&str> =
            DUMP_PROGRAMS.into_iter().filter(|name| !server.tools.iter().any(|tool| tool == name)).collect();
        EnvironmentError::Unavailable {
            reason: format!(
                "PostgreSQL {} ({}) comes without {}, which a dump or restore needs, and no other installation here \
                 has those of a version that may be used with it",
                server.version,
                server.source,
                missing.join(", ")
            ),
            remedy: format!("install the client programs of PostgreSQL {}, or use --on container", server.major),
        }
    })
}
