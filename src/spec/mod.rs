//! Experiment and environment files: YAML and templates into the model, and every mistake with its place.
//!
//! The way of a file: [`yaml`] parses it once into a [`tree`] of values that know their places;
//! [`overrides`] apply profile and `--set`; [`bind`](mod@bind) and [`design`] read what does not depend on a treatment.
//! For each treatment [`render`] fills in the templates, [`bind`](mod@bind) gives the plain types of [`wire`], and
//! [`tables`], [`steps`] and [`server`] turn them into the model, with [`ddl`] reading the SQL. [`check`]
//! then knows the rules of the engine. Mistakes are collected as [`diagnostic`]s, not thrown.

pub mod bind;
mod by_type;
pub mod check;
mod checking;
mod claim_rules;
pub mod claims;
pub mod ddl;
pub mod design;
pub mod diagnostic;
mod document;
mod experiment;
pub mod files;
pub mod fits;
pub mod generator;
mod index;
mod inputs;
pub mod lint;
mod load;
mod needs;
pub mod overrides;
pub mod plausible;
pub mod render;
pub mod row_template;
pub mod rows_from;
mod schema;
pub mod server;
pub mod sql_cache;
pub mod steps;
pub mod suggest;
pub mod tables;
pub mod template;
pub mod tree;
pub mod units;
pub mod wire;
pub mod yaml;

pub use checking::CheckReport;
pub use diagnostic::{Diagnostic, Diagnostics, Severity};
pub use document::format_document;
pub use experiment::Spec;
pub use index::experiments_index;
pub use inputs::{InputContent, InputFile};
pub use load::{LoadOptions, load};
pub use needs::block_size_argument;
pub use schema::{environment_schema, experiment_schema};
