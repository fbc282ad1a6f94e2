//! All integration tests in one binary.

mod python_results;
mod results;
mod server_container;
mod server_encode;
mod server_external;
mod server_faults;
mod server_local;
