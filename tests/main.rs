//! All integration tests in one binary.

mod server_container;
mod server_local;
