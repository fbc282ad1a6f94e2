//! The account a local server runs under, and how its processes are started.
//!
//! PostgreSQL refuses to run as root, so root steps down to `postgres` or else `nobody`. On Linux
//! processes are started through `setpriv`, which also asks the kernel to signal the server when its
//! parent dies.

use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{LazyLock, mpsc};
use std::time::Duration;

use nix::unistd::{User, geteuid};
use tokio::sync::oneshot;

use super::EnvironmentError;
use super::files::failed;

/// Accounts that root steps down to, best first.
const CANDIDATES: [&str; 2] = ["postgres", "nobody"];

/// What the kernel sends a server when its parent dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnParentDeath {
    /// Nothing: short commands.
    Nothing,
    /// SIGQUIT, the immediate shutdown: also ends children and frees shared memory.
    Quit,
    /// SIGKILL, where namespaces take everything along.
    Kill,
}

/// Under which account servers are started.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    /// The account stepped down to; `None`: this process is unprivileged itself.
    below: Option<User>,
    /// Whether `setpriv` is there and knows `--pdeathsig`.
    setpriv: bool,
}

impl Account {
    /// Finds the account and the ways this machine has to use it.
    ///
    /// # Errors
    /// As root, when there is no account to step down to.
    pub(crate) async fn detect() -> Result<Self, EnvironmentError> {
        let below = if geteuid().is_root() { Some(unprivileged()?) } else { None };
        let mut probe = Command::new("setpriv");
        probe.args(["--pdeathsig", "KILL", "true"]);
        let setpriv = run(probe, Duration::from_secs(5)).await.is_ok_and(|output| output.status.success());
        Ok(Self { below, setpriv })
    }

    /// Name of the account, when it is another than that of this process.
    pub(crate) fn name(&self) -> Option<&str> {
        self.below.as_ref().map(|user| user.name.as_str())
    }

    /// Who must own the server's folders, when that is not this process.
    pub(crate) fn owner(&self) -> Option<(u32, u32)> {
        self.below.as_ref().map(|user| (user.uid.as_raw(), user.gid.as_raw()))
    }

    /// A command under this account, in a process group of its own (so that Ctrl-C does not reach it),
    /// with a bare environment, working in `folder`: by that a stray process is known as ours.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, folder: &Path, death: OnParentDeath) -> Command {
        let mut command = if self.setpriv {
            let mut command = Command::new("setpriv");
            if let Some((uid, gid)) = self.owner() {
                command.args(["--reuid", &uid.to_string(), "--regid", &gid.to_string(), "--init-groups"]);
            }
            match death {
                OnParentDeath::Nothing => command.args(["--pdeathsig", "clear"]),
                OnParentDeath::Quit => command.args(["--pdeathsig", "QUIT"]),
                OnParentDeath::Kill => command.args(["--pdeathsig", "KILL"]),
            };
            command.arg("--").arg(program);
            command
        } else {
            let mut command = Command::new(program);
            if let Some((uid, gid)) = self.owner() {
                command.uid(uid).gid(gid);
            }
            command
        };
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into()))
            // initdb takes the time zone from here: the same cluster on every machine.
            .env("TZ", "UTC")
            .env("LC_ALL", "C")
            .current_dir(folder)
            .stdin(Stdio::null())
            .process_group(0);
        command
    }

    /// Whether the account can enter a folder.
    ///
    /// # Errors
    /// Says which folder and what to do.
    pub(crate) async fn must_reach(&self, folder: &Path) -> Result<(), EnvironmentError> {
        let mut command = self.command("test", Path::new("/"), OnParentDeath::Nothing);
        command.arg("-x").arg(folder);
        let output = run(command, Duration::from_secs(5)).await.map_err(failed("running `test`"))?;
        if output.status.success() {
            return Ok(());
        }
        let name = self.name().unwrap_or("this user");
        Err(EnvironmentError::Unavailable {
            reason: format!(
                "{}: {name} cannot enter this folder, but the server runs as {name}",
                folder.display()
            ),
            remedy: "name another cache folder in LOADLAB_CACHE, below folders that everybody may enter"
                .to_owned(),
        })
    }
}

fn unprivileged() -> Result<User, EnvironmentError> {
    CANDIDATES
        .iter()
        .find_map(|name| User::from_name(name).ok().flatten())
        .filter(|user| !user.uid.is_root())
        .ok_or_else(|| EnvironmentError::Unavailable {
            reason: "PostgreSQL does not run as root, and there is no account `postgres` or `nobody`"
                .to_owned(),
            remedy: "run loadlab as an ordinary user".to_owned(),
        })
}

/// Runs a command to its end, with a deadline after which it is killed.
pub(crate) async fn run(command: Command, deadline: Duration) -> std::io::Result<Output> {
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true);
    tokio::time::timeout(deadline, command.output()).await.unwrap_or_else(|_| {
        Err(std::io::Error::new(std::io::ErrorKind::TimedOut, format!("not done within {deadline:?}")))
    })
}

type Request = (Command, oneshot::Sender<std::io::Result<Child>>);

/// The thread that starts servers. The kernel's parent-death signal goes out when the parent *thread*
/// ends, and the runtime ends its threads as it likes; this one lives as long as the process.
static SPAWNER: LazyLock<mpsc::Sender<Request>> = LazyLock::new(|| {
    let (sender, receiver) = mpsc::channel::<Request>();
    let _detached = std::thread::Builder::new().name("servers".to_owned()).spawn(move || {
        for (mut command, answer) in receiver {
            // Nobody waits any more: the trial was cancelled.
            if let Err(Ok(mut child)) = answer.send(command.spawn()) {
                drop(child.kill());
                drop(child.wait());
            }
        }
    });
    sender
});

/// Starts a long-lived process that dies with this one.
pub(crate) async fn spawn(command: Command) -> std::io::Result<Child> {
    let gone = || std::io::Error::other("the thread that starts servers is gone");
    let (sender, receiver) = oneshot::channel();
    SPAWNER.send((command, sender)).map_err(|_| gone())?;
    receiver.await.unwrap_or_else(|_| Err(gone()))
}

/// The last part of what a command said: standard error, else standard output.
pub(crate) fn words(output: &Output) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    let text = if error.trim().is_empty() { String::from_utf8_lossy(&output.stdout) } else { error };
    last_lines(&text, 15)
}

/// The last lines of a text.
pub(crate) fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.trim_end().lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

/// A program on the search path.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn commands_run_unprivileged_in_their_folder() {
        let account = Account::detect().await.expect("an account");
        let mut command = account.command("sh", Path::new("/usr"), OnParentDeath::Nothing);
        command.args(["-c", "id -u; pwd; echo $HOME"]);
        let output = run(command, Duration::from_secs(5)).await.expect("ran");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        assert_ne!(lines[0], "0", "never root");
        assert_eq!(lines[1], "/usr");
    }

    #[tokio::test]
    async fn commands_have_a_deadline() {
        let mut command = Command::new("sleep");
        command.arg("30");
        let error = run(command, Duration::from_millis(50)).await.expect_err("too slow");
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
    }

    #[test]
    fn last_lines_of_a_log() {
        assert_eq!(last_lines("a\nb\nc\n", 2), "b\nc");
        assert_eq!(last_lines("", 2), "");
    }
}
