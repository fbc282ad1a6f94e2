//! Entry point.

use std::path::PathBuf;
use std::process::ExitCode;

use loadlab::environment::reaper;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(command), Some(live)) if command == reaper::COMMAND => reaper::reap_main(&PathBuf::from(live)),
        // The sub-commands come with the command line.
        _ => ExitCode::from(2),
    }
}
