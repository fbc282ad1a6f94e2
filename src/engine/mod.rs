//! How a database is described, reached, fed and read. One folder per engine.

pub mod postgres;
