//! All integration tests in one binary.

mod server_clean;
mod server_install;
mod server_local;
