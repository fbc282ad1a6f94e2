//! One binary for all integration tests.

mod python_results;
mod results;
