//! Where servers run: containers (testcontainers), fresh local clusters, servers that already run.
//!
//! A [`Provider`] is prepared once (template data directory, baked image) and then starts one fresh
//! server per trial. An [`Instance`] is stopped explicitly; whatever survives a kill is in the
//! [`ledger`] and removed by the reaper process, the next start or `loadlab clean`.

mod account;
pub mod build;
pub mod cgroup;
mod child;
pub mod choose;
pub mod clean;
pub mod container;
pub mod discover;
pub mod doctor;
pub mod engine;
pub mod external;
mod files;
mod fresh;
pub mod install;
pub mod ledger;
pub mod local;
mod local_command;
mod local_programs;
mod local_server;
pub mod needs;
pub mod neighbours;
mod overlay;
pub mod page_cache;
mod place;
pub mod process;
pub mod program;
pub mod reaper;
mod shared_memory;
mod template;
mod wanted;

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use self::program::{Pipeline, PipelineEnd};
use crate::engine::postgres::{Endpoint, Exchange};
use crate::model::{Backend, EnvironmentSpec, ServerPin};

/// A boxed future, so that the two traits here can be used as objects.
pub type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Starts one fresh server per trial of one environment.
pub trait Provider: Send + Sync {
    /// Which backend this is.
    fn backend(&self) -> Backend;

    /// Major version of the servers, as far as it is known before one runs.
    fn major(&self) -> Option<u32>;

    /// Makes whatever is made once: template, baked image. Safe to call again; cheap when nothing is missing.
    fn prepare(&self) -> Boxed<'_, Result<(), EnvironmentError>>;

    /// What its servers really are, for `loadlab.lock`; after [`Provider::prepare`].
    fn pin(&self) -> Boxed<'_, Result<ServerPin, EnvironmentError>>;

    /// Finds the client programs that dumps and restores need; called before the first trial that has such a step.
    fn find_programs(&self) -> Boxed<'_, Result<(), EnvironmentError>>;

    /// A fresh server that has answered two queries by the same postmaster.
    fn start<'a>(&'a self, launch: &'a Launch) -> Boxed<'a, Result<Instance, EnvironmentError>>;
}

/// Programs that are made ready; they start when this is first polled, and dropping it ends them.
pub type Programs<'a> = Boxed<'a, Result<PipelineEnd, EnvironmentError>>;

/// What one trial wants from its server.
#[derive(Debug, Clone)]
pub struct Launch {
    /// Run the trial belongs to; part of labels and folder names.
    pub run_id: String,
    /// Number of the trial.
    pub trial: u64,
    /// The environment with the settings of this treatment.
    pub environment: EnvironmentSpec,
}

/// A running server.
pub struct Instance {
    /// How to reach it.
    pub endpoint: Endpoint,
    /// What it is.
    pub facts: InstanceFacts,
    /// A folder that server and client both see, for COPY from server files.
    pub exchange: Option<Exchange>,
    /// Handle that measures and stops it.
    pub running: Box<dyn Running>,
}

/// What a provider knows about the server it started.
#[derive(Debug, Clone)]
pub struct InstanceFacts {
    /// Backend that was taken.
    pub backend: Backend,
    /// Image id, or `postgres 15.18 sha256:...` of the server binary. Never a path.
    pub identity: String,
    /// `overlay`, `copy`, `initdb`, `baked image`, `already running`.
    pub fresh: String,
    /// File system or volume kind below the data directory: `ext4`, `overlayfs on ext4`, `tmpfs`, `volume`.
    pub storage: String,
    /// `socket`, `address`, `published`.
    pub connection: String,
    /// CPUs of the server, if limited.
    pub cpuset: Option<String>,
}

/// Resources used by all processes of a server since it started.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// User and system time in seconds.
    pub cpu_seconds: Option<f64>,
    /// Bytes read from the block layer.
    pub read_bytes: Option<u64>,
    /// Bytes written to the block layer.
    pub written_bytes: Option<u64>,
    /// Times its cgroup was held back by a CPU quota.
    pub throttled_periods: Option<u64>,
    /// Processes the kernel killed for want of memory.
    pub memory_kills: Option<u64>,
}

/// The provider's side of a running server.
pub trait Running: Send + Sync {
    /// Resources used so far.
    fn usage(&self) -> Boxed<'_, Usage>;

    /// Why the server is in trouble, if the provider can tell: OOM kill, exit code, last log lines.
    fn diagnose(&self) -> Boxed<'_, Option<String>>;

    /// Makes client programs ready, which connect as the owner of the trial's database.
    fn programs(&self, pipeline: Pipeline) -> Boxed<'_, Result<Programs<'_>, EnvironmentError>>;
    /// Its data directory as this process reaches it while the server runs; `None` where it does not.
    fn data_directory(&self) -> Option<PathBuf>;

    /// Stops the server cleanly, which writes out everything it holds, and starts it again on the same data.
    /// Returns where it is reached now, when it answers.
    fn restart(&self) -> Boxed<'_, Result<Endpoint, EnvironmentError>>;

    /// Stops the server (immediately, nothing is kept) and removes everything it left.
    fn stop(self: Box<Self>) -> Boxed<'static, Result<(), EnvironmentError>>;
}

/// Why no server could be had.
#[derive(Debug, thiserror::Error)]
pub enum EnvironmentError {
    /// Nothing on this machine can run the environment; text says why and what to do.
    #[error("{reason}\n  what to do: {remedy}")]
    Unavailable {
        /// Why.
        reason: String,
        /// What to do about it.
        remedy: String,
    },
    /// The server was started but did not become ready, or died.
    #[error("the server did not start: {reason}")]
    NotReady {
        /// Why, with the last lines of its log.
        reason: String,
    },
    /// A client program ended badly.
    #[error("{what}{}{words}", if words.is_empty() { " without a word" } else { ":\n" })]
    Program {
        /// Which, and how.
        what: String,
        /// Last lines of its standard error.
        words: String,
    },
    /// A file or process operation failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried, with the path.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The container engine refused something.
    #[error("{what}: {reason}")]
    ContainerEngine {
        /// What was tried.
        what: String,
        /// Its words, whole cause chain.
        reason: String,
    },
}
