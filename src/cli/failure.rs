//! Exit codes, and failures with their code.

use std::process::ExitCode;

use super::say;
use crate::environment::EnvironmentError;
use crate::spec::Diagnostics;
use crate::store::StoreError;

/// How the program ended; the documented exit codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// 0
    Done,
    /// 1: some trials failed.
    TrialsFailed,
    /// 2: the file or the command line is wrong.
    Wrong,
    /// 3: the environment is unavailable.
    Environment,
    /// 4: what `--fail-if` names was found.
    Found,
    /// 130: ended by the user.
    Interrupted,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Done => 0,
            Exit::TrialsFailed => 1,
            Exit::Wrong => 2,
            Exit::Environment => 3,
            Exit::Found => 4,
            Exit::Interrupted => 130,
        })
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub struct Failure {
    exit: Exit,
    message: String,
}

impl Failure {
    /// The user's file or command line is wrong (exit code 2).
    pub(super) fn wrong(message: impl Into<String>) -> Self {
        Self { exit: Exit::Wrong, message: message.into() }
    }

    /// The world does not have what is needed (exit code 3).
    pub(super) fn environment(message: impl Into<String>) -> Self {
        Self { exit: Exit::Environment, message: message.into() }
    }

    /// The first line of the message, without its beginning `error: `.
    pub(super) fn first_line(&self) -> &str {
        let line = self.message.lines().next().unwrap_or_default();
        line.strip_prefix("error: ").unwrap_or(line)
    }

    /// Prints the message and gives the exit code.
    pub(super) fn print(self) -> ExitCode {
        say(self.message.trim_end());
        self.exit.into()
    }
}

impl From<Diagnostics> for Failure {
    fn from(found: Diagnostics) -> Self {
        Self::wrong(found.render(super::options::colour()))
    }
}

impl From<EnvironmentError> for Failure {
    fn from(error: EnvironmentError) -> Self {
        Self::environment(format!("error: {}", crate::engine::postgres::chain(&error)))
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let message = format!("error: {error}");
        match error {
            // Nothing of the world is missing: another run was meant.
            StoreError::Kept { .. } | StoreError::NotKeepable { .. } => Self::wrong(message),
            _ => Self::environment(message),
        }
    }
}
