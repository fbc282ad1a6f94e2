//! Client programs of an experiment: started with what they need to find the server and with nothing else of the host,
//! in a process group of their own, and ended with everything they started.

mod captures;
mod output;
mod variables;

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::Child;
use tokio::task::JoinHandle;

pub(super) use self::output::Output;
pub(super) use self::variables::{Telling, password_line, variables};
use crate::engine::postgres::Secret;
use crate::environment::ledger::{Ledger, Thing};
use crate::environment::process::end_marked;
use crate::model::{Capture, Captured, Stream};

/// Lines of standard error in a message.
const LINES: usize = 8;
/// How long the pipes of an ended program may take to run dry.
const DRY: Duration = Duration::from_secs(2);

/// Both outputs of a program, readable while it runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Printed {
    stdout: Output,
    stderr: Output,
    /// Taken out of what is kept.
    secret: Option<Secret>,
}

impl Printed {
    pub(super) fn without(secret: Option<Secret>) -> Self {
        Self { secret, ..Self::default() }
    }

    fn text(&self, stream: Stream) -> String {
        let text = match stream {
            Stream::Stdout => self.stdout.text(),
            Stream::Stderr => self.stderr.text(),
        };
        match &self.secret {
            Some(secret) if !secret.0.is_empty() => text.replace(&secret.0, "***"),
            _ => text,
        }
    }

    /// Names and texts of the files they become.
    pub(super) fn files(&self, name: &str) -> Vec<(String, String)> {
        let file = |stream: Stream| (format!("{name}.{}", stream.name()), self.text(stream));
        vec![file(Stream::Stdout), file(Stream::Stderr)]
    }

    /// All captures, or the words of the first that is missing, with those before it.
    pub(super) fn captures(&self, wanted: &[Capture]) -> (Vec<Captured>, Option<String>) {
        let mut found = Vec::new();
        for capture in wanted {
            match captures::capture(capture, &self.text(capture.stream)) {
                Ok(captured) => found.push(captured),
                Err(why) => return (found, Some(why)),
            }
        }
        (found, None)
    }

    /// How it ended, when not well, with the last lines of standard error, or else of standard output.
    pub(super) fn complaint(&self, program: &str, status: ExitStatus) -> Option<String> {
        use std::os::unix::process::ExitStatusExt;
        let how = match (status.code(), status.signal()) {
            (Some(0), _) => return None,
            (Some(code), _) => format!("exit code {code}"),
            (None, signal) => format!("signal {}", signal.unwrap_or_default()),
        };
        let (stream, text) = match self.text(Stream::Stderr) {
            text if text.trim().is_empty() => (Stream::Stdout, self.text(Stream::Stdout)),
            text => (Stream::Stderr, text),
        };
        let lines = output::last_lines(&text, LINES);
        let end = if lines.is_empty() {
            " and printed nothing".to_owned()
        } else {
            format!("; {}:{lines}", stream.name())
        };
        Some(format!("`{program}` ended with {how}{end}"))
    }
}

/// A running program. Dropping it ends it and everything it started.
pub(super) struct Program {
    child: Child,
    group: Option<Pid>,
    mark: Thing,
    ledger: Arc<Ledger>,
    readers: Vec<JoinHandle<()>>,
}

impl Program {
    /// Starts a program in a folder, with these variables only; `mark` tells its processes from all others.
    ///
    /// # Errors
    /// Says why it cannot be started.
    pub(super) fn start(
        run: &[String],
        folder: &Path,
        variables: &[(String, String)],
        mark: &str,
        ledger: &Arc<Ledger>,
        printed: &Printed,
    ) -> Result<Self, String> {
        let (name, arguments) = run.split_first().ok_or("no program is named")?;
        let thing = Thing::Marked(mark.to_owned());
        ledger.record(&thing).map_err(|error| error.to_string())?;
        let mut command = tokio::process::Command::new(name);
        command.args(arguments).current_dir(folder).env_clear();
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // A group of its own: Ctrl-C at the terminal is loadlab's to answer.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| {
            drop(ledger.forget(&thing));
            let remedy = if error.kind() == std::io::ErrorKind::NotFound {
                ": install it, or name it with its path"
            } else {
                ""
            };
            format!("cannot start `{name}`: {error}{remedy}")
        })?;
        let group = child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw);
        let mut readers = Vec::new();
        readers.extend(child.stdout.take().map(|pipe| tokio::spawn(printed.stdout.clone().fill(pipe))));
        readers.extend(child.stderr.take().map(|pipe| tokio::spawn(printed.stderr.clone().fill(pipe))));
        Ok(Self { child, group, mark: thing, ledger: Arc::clone(ledger), readers })
    }

    /// Waits for its end; children that go on are not waited for.
    pub(super) async fn ended(&mut self) -> Result<ExitStatus, String> {
        self.child.wait().await.map_err(|error| format!("waiting for the program: {error}"))
    }

    /// Ends what it left running and reads its outputs to their end.
    pub(super) async fn tidy(mut self) {
        self.end();
        for reader in std::mem::take(&mut self.readers) {
            // A process that cannot be killed keeps the pipe open: what it prints is not waited for.
            drop(tokio::time::timeout(DRY, reader).await);
        }
    }

    fn end(&mut self) {
        if let Some(group) = self.group.take() {
            // ESRCH: nothing of the group is left.
            let _sent = killpg(group, Signal::SIGKILL);
        }
        if let Thing::Marked(mark) = &self.mark
            && end_marked(mark).1
        {
            // What cannot be written stays listed, and is looked for again.
            drop(self.ledger.forget(&self.mark));
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if self.group.is_some() {
            self.end();
        }
    }
}
