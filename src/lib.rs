//! loadlab: declarative, reproducible experiments on how fast a database loads and reads data.
//!
//! Read the tree as the pipeline: describe (`model`, `spec`, `plan`), execute (`data`, `engine`,
//! `environment`, `run`), conclude (`store`, `stats`, `compare`, `report`). `cli` wires them together.

pub mod compare;
pub mod engine;
pub mod environment;
pub mod model;
pub mod report;
pub mod stats;
pub mod store;
