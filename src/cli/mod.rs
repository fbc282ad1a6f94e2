//! The command line: clap, one file per sub-command, wiring and exit codes only.

mod check;
mod claims;
mod clean;
mod commands;
mod compare;
mod differences;
mod env;
mod failure;
mod hopeless;
mod inputs;
mod interrupt;
mod keep;
mod lock;
mod locking;
mod options;
mod plan;
mod power;
mod ready;
mod reference;
mod report;
mod rerun;
mod resume;
mod run;
mod schema;
mod servers;
mod space;
mod stopping;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use failure::Exit;
pub use failure::Failure;
pub use reference::claims_of_kept_runs;

/// Declarative, reproducible experiments on how fast a database loads and reads data.
///
/// Exit codes: 0 all done, 1 some trials failed, 2 the file or the command line is wrong,
/// 3 the environment is unavailable, 4 a claim is contradicted or a regression found (with --fail-if), 130 ended by Ctrl-C.
#[derive(Debug, Parser)]
#[command(name = "loadlab", version, max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run an experiment: every trial on a fresh server, results in Parquet
    Run(run::RunArguments),
    /// Find every mistake in experiment files, without any server
    Check(check::CheckArguments),
    /// Show treatments, order, rows, disk and time of a run, without any server
    Plan(plan::PlanArguments),
    /// Show the results of a run as a table, Markdown or JSON
    Report(report::ReportArguments),
    /// Compare two runs, or two treatments of one run, with intervals
    Compare(compare::CompareArguments),
    /// Repeat a run from its folder alone, also one of another machine, and compare the two
    Rerun(rerun::RerunArguments),
    /// Write `loadlab.lock`: checksums of the files, and what servers the environments give here
    Lock(lock::LockArguments),
    /// Judge the published statements of an experiment by one of its runs
    Claims(claims::ClaimsArguments),
    /// Pack a finished run for a repository; every command reads it as before
    Keep(keep::KeepArguments),
    /// What servers this machine can run: list, doctor, install, build
    #[command(subcommand)]
    Env(env::EnvCommand),
    /// Remove what killed runs left behind; touches nothing that is not provably loadlab's
    Clean(clean::CleanArguments),
    /// Print a JSON Schema for editors
    Schema(schema::SchemaArguments),
    /// Print shell completions
    Completions {
        /// Shell to print for
        shell: clap_complete::Shell,
    },
    /// Internal: removes what a run leaves when it is killed
    #[command(hide = true, name = crate::environment::reaper::COMMAND)]
    Reap {
        /// Folder of the run's ledger
        live: PathBuf,
    },
}

/// Parses the arguments, runs the command, prints its failure.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            drop(error.print());
            return if error.use_stderr() { Exit::Wrong.into() } else { Exit::Done.into() };
        }
    };
    if let Command::Reap { live } = &arguments.command {
        return crate::environment::reaper::reap_main(live);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => {
            let ended = runtime.block_on(dispatch(arguments.command));
            // A task that blocks must not keep a finished program alive.
            runtime.shutdown_background();
            ended
        }
        Err(error) => Err(Failure::environment(format!("cannot start the runtime: {error}"))),
    };
    match ended {
        Ok(exit) => exit.into(),
        Err(failure) => failure.print(),
    }
}

async fn dispatch(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(arguments) => run::run(arguments).await,
        Command::Check(arguments) => Ok(check::check(&arguments)),
        Command::Plan(arguments) => plan::plan(&arguments).await,
        Command::Report(arguments) => report::report(&arguments),
        Command::Compare(arguments) => compare::compare(&arguments),
        Command::Rerun(arguments) => rerun::rerun(arguments).await,
        Command::Lock(arguments) => lock::lock(arguments).await,
        Command::Claims(arguments) => claims::claims(&arguments),
        Command::Keep(arguments) => keep::keep(&arguments),
        Command::Env(command) => env::env(command).await,
        Command::Clean(arguments) => clean::clean(&arguments).await,
        Command::Schema(arguments) => Ok(schema::schema(&arguments)),
        Command::Completions { shell } => {
            let mut out = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "loadlab", &mut out);
            print(&String::from_utf8_lossy(&out));
            Ok(Exit::Done)
        }
        Command::Reap { .. } => Ok(Exit::Done),
    }
}

/// Writes to standard output. A reader that went away (`| head`) is no error.
fn print(text: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    drop(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Writes a line to standard error.
fn say(text: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "{text}"));
}
