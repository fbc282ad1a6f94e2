//! All integration tests in one binary.

mod server_local;
