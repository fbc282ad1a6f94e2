//! One binary for all integration tests.

#![expect(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod python_results;
mod results;
