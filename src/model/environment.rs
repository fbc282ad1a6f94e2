//! Where a server runs and what it is.

use std::path::PathBuf;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::Scalar;

/// How a server is provided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// A container through testcontainers.
    Container,
    /// A fresh local cluster from binaries.
    Local,
    /// A server that already runs; opt-in.
    External,
}

/// An environment file, resolved for one treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnvironmentSpec {
    /// Name of the file without its extension.
    pub name: String,
    /// Majors that may be used.
    pub versions: VersionRange,
    /// Container image; `{major}` is already replaced by the major that `versions` prefers.
    pub image: String,
    /// Folder of local binaries, when one is named.
    pub binaries: Option<PathBuf>,
    /// initdb options, the same on both backends.
    pub init: InitOptions,
    /// Server settings asked for: environment first, then the experiment's `server.settings`.
    pub settings: IndexMap<String, Scalar>,
    /// Limits and placement of the server.
    pub limits: Limits,
    /// Where a container keeps the data directory.
    pub storage: Storage,
    /// How a local data directory is made fresh.
    pub fresh: FreshMethod,
    /// How the client reaches the server.
    pub connection: ConnectionPath,
    /// CPUs of the client (this process), as a list such as `0-1`; `None`: not pinned.
    pub client_cpuset: Option<String>,
    /// Environment variable with the URL of an external server.
    pub url_variable: String,
}

/// Majors from `min` to `max`, both allowed. A pinned environment has `min == max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VersionRange {
    /// Lowest major.
    pub min: u32,
    /// Highest major.
    pub max: u32,
}

impl VersionRange {
    /// Whether a major lies in the range.
    #[must_use]
    pub fn contains(&self, major: u32) -> bool {
        (self.min..=self.max).contains(&major)
    }
}

impl std::fmt::Display for VersionRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.min == self.max {
            write!(f, "{}", self.min)
        } else {
            write!(f, "{} to {}", self.min, self.max)
        }
    }
}

/// initdb options. Explicit, so that both backends and all versions make the same cluster.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct InitOptions {
    /// `--locale`.
    pub locale: String,
    /// `--encoding`.
    pub encoding: String,
    /// Data checksums.
    pub checksums: Checksums,
    /// `--wal-segsize` in MiB; `None` for the default of 16.
    pub wal_segment_mib: Option<u32>,
}

/// Data checksums of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Checksums {
    /// `--data-checksums`.
    On,
    /// No checksums (`--no-data-checksums` where the default is on, from 18).
    Off,
}

/// CPU, memory and shared memory of the server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// CPU quota in CPUs (1.5), container only.
    pub cpus: Option<f64>,
    /// CPUs the server may use, as a list such as `0` or `2-3`.
    pub cpuset: Option<String>,
    /// Memory limit in bytes, container only.
    pub memory_bytes: Option<u64>,
    /// Size of /dev/shm in bytes, container only.
    pub shared_memory_bytes: Option<u64>,
}

/// Where a container keeps the data directory.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Storage {
    /// The container's own layer over the baked image (the default; cheapest).
    Layer,
    /// A labelled volume, removed with the container.
    Volume,
    /// Memory; never durable.
    Tmpfs,
    /// A folder of the host (a private sub-folder of it is used and removed).
    Bind(PathBuf),
}

/// How a local data directory is made fresh for a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FreshMethod {
    /// Overlay where it works, else copy.
    Auto,
    /// overlayfs over the template, inside namespaces.
    Overlay,
    /// A copy of the template.
    Copy,
    /// initdb every time (the slow reference of the benchmark).
    Initdb,
}

/// How the client reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionPath {
    /// A unix socket in a private folder (bind-mounted for containers).
    Socket,
    /// TCP to the server's own address: loopback (local) or the container's address.
    Address,
    /// TCP through the port the engine publishes on loopback; container only.
    Published,
}
