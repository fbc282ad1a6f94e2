//! All integration tests in one binary.

mod python_results;
mod results;
mod server_clean;
mod server_container;
mod server_external;
mod server_faults;
mod server_image;
mod server_install;
mod server_local;
