//! Entry point: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    loadlab::cli::main()
}
