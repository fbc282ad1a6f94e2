//! What shaped a run and can change behind its back: its files and its servers.

use serde::{Deserialize, Serialize};

use super::block_size_words;
use super::{Backend, Builder, Checksums, DEFAULT_BLOCK_SIZE, EnvironmentSpec, InitOptions, LocaleProvider};

/// What is written where a fact exists and cannot be had.
pub const UNKNOWN: &str = "unknown";

/// A file that shaped a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Where it lies in a run's `inputs/`: `experiments/x.yaml`, `experiments/sql/x.sql`, `environments/x.yaml`.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 in hexadecimal; of a folder without files nothing.
    pub sha256: String,
    /// Whether it may be started as a program; a copy may as well.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
    /// Why the run's folder holds no copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// A server as it really was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerPin {
    /// Where it ran.
    pub backend: Backend,
    /// Version of PostgreSQL: `15.18`, or the major where an image says no more.
    pub version: String,
    /// Name of the image; containers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Id of the image, `sha256:...`; containers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Digest under which a registry gave the image; containers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_digest: Option<String>,
    /// Who built the programs; local servers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builder: Option<String>,
    /// Bytes of a block, as the programs say; local servers only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_size: Option<String>,
    /// `sha256:...` of the program `postgres`; not of containers, whose image says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
}

impl ServerPin {
    /// Major version.
    #[must_use]
    pub fn major(&self) -> Option<u32> {
        self.version.split('.').next()?.parse().ok()
    }

    /// Facts with their names, for comparing.
    #[must_use]
    pub fn facts(&self) -> [(&'static str, Option<&str>); 8] {
        [
            ("backend", Some(self.backend.word())),
            ("PostgreSQL", Some(&self.version)),
            ("image", self.image.as_deref()),
            ("image id", self.image_id.as_deref()),
            ("image digest", self.image_digest.as_deref()),
            ("builder", self.builder.as_deref()),
            ("block size", self.block_size.as_deref()),
            ("server binary", self.binary.as_deref()),
        ]
    }
}

/// What an environment asked for, and the server that it got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedServer {
    /// Name of the environment.
    pub environment: String,
    /// What was asked for ([`EnvironmentSpec::asks`]): one environment gives several servers when treatments
    /// ask for different ones.
    pub asks: String,
    /// What was got.
    pub is: ServerPin,
}

impl EnvironmentSpec {
    /// What decides which server it is, in words: versions, block size, builder, options of initdb. Settings and
    /// limits are given to a server and are no part of what it is.
    #[must_use]
    pub fn asks(&self) -> String {
        let mut words = vec![format!("PostgreSQL {}", self.versions)];
        if let Some(size) = self.block_size.filter(|size| *size != DEFAULT_BLOCK_SIZE) {
            words.push(format!("blocks of {}", block_size_words(size)));
        }
        words.extend(self.builder.map(Builder::word).map(|builder| format!("builder {builder}")));
        words.push(self.init.words());
        words.join(", ")
    }
}

impl InitOptions {
    /// All options in words.
    #[must_use]
    pub fn words(&self) -> String {
        let checksums = if self.checksums == Checksums::On { "on" } else { "off" };
        let mut words = vec![
            format!("locale {}", self.locale),
            format!("encoding {}", self.encoding),
            format!("checksums {checksums}"),
        ];
        match &self.locale_provider {
            LocaleProvider::Libc => {}
            LocaleProvider::Icu(locale) => words.push(format!("ICU {locale}")),
            LocaleProvider::Builtin(locale) => words.push(format!("builtin {locale}")),
        }
        words.extend(self.wal_segment_mib.map(|size| format!("WAL segments of {size}MB")));
        words.join(", ")
    }
}
