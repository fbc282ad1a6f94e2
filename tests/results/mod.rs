//! The results folder, summaries and reports, on made-up records.

mod claims;
mod claims_document;
mod client_bound;
mod controls;
pub(crate) mod fixture;
mod journal;
mod kept;
mod parquet;
mod report;
mod versus;
