//! The results folder: manifest, journal, lock and Parquet. The only place that knows polars and the layout of a run folder.
//!
//! The journal is the truth: one synced line per event, so a finished trial is on disk before the next begins. Parquet files are
//! made from it, under a temporary name, and can be made again at any time. `results/README.md` describes it for users.

mod document;
mod error;
mod files;
mod folder;
mod frame;
mod host;
mod inputs;
mod journal;
mod kept;
mod lock_file;
mod manifest;
mod parquet;
mod redact;
mod schema;

pub use document::results_document;
pub use error::StoreError;
pub use files::can_write;
pub use folder::{RunFolder, StoredRun, newest_run, read_run};
pub use host::{DeviceFacts, HostFacts, StateAtStart};
pub use inputs::{OUTSIDE, Workspace, secret, too_large};
pub use journal::{Event, Journal};
pub use kept::{Kept, is_kept, keep, kept_runs, rewrite};
pub use lock_file::{Drift, ExperimentLock, LOCK_FILE, LockFile};
pub use manifest::{EnvironmentChoice, OptionsUsed, RunManifest, SpecRecord, ToolVersion, new_run_id};
pub use redact::redact;
pub use schema::{Column, FileSchema, Kind, SCHEMA_VERSION, files as file_schemas};
