//! loadlab: declarative, reproducible experiments on how fast a database loads and reads data.
//!
//! Read the tree as the pipeline: describe (`model`, `spec`, `plan`), execute (`data`, `engine`,
//! `environment`, `run`), conclude (`store`, `stats`, `compare`, `report`). `cli` wires them together.

pub mod cli;
pub mod compare;
pub mod data;
pub mod engine;
pub mod environment;
pub mod model;
pub mod plan;
pub mod report;
pub mod run;
pub mod spec;
pub mod stats;
pub mod store;
