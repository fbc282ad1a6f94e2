//! All integration tests in one binary.

#![expect(clippy::unwrap_used, reason = "a test may end at the first surprise")]

mod bad_input;
mod determinism;
mod invalid;
mod lab;
mod python_results;
mod python_verdicts;
mod results;
mod server_build;
mod server_clean;
mod server_command;
mod server_container;
mod server_controls;
mod server_determinism;
mod server_duration;
mod server_encode;
mod server_experiments;
mod server_external;
mod server_faults;
mod server_found;
mod server_image;
mod server_install;
mod server_interrupt;
mod server_loads;
mod server_local;
mod server_methods;
mod server_needs;
mod server_own_data;
mod server_paths;
mod server_reads;
mod server_rerun;
mod server_restore;
mod server_run;
mod server_sabotage;
mod server_smoke;
mod server_sql;
mod server_truth;
mod server_wide;
mod statistics;
mod tidy;
