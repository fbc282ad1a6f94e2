//! A child process that is run to its end: in a process group of its own, which ends with whoever waits for it.

use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of each output that are kept: the last ones.
const KEPT: usize = 64 * 1024;

/// The ends of what a child wrote.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Kills a process group unless it was let go.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // ESRCH: nothing of it is left.
            let _sent = killpg(group, Signal::SIGKILL);
        }
    }
}

/// Runs a command. Dropping the future kills the whole group: that is how deadlines end it.
pub(crate) async fn run_in_group(command: Command) -> std::io::Result<Ended> {
    let mut command = tokio::process::Command::from(command);
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.kill_on_drop(true).spawn()?;
    let mut group = Group(child.id().and_then(|pid| i32::try_from(pid).ok()).map(Pid::from_raw));
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = tokio::join!(end_of(stdout), end_of(stderr));
    child.wait().await?;
    group.0 = None;
    Ok(Ended { stdout, stderr })
}

/// Reads all of it and keeps the end.
async fn end_of(pipe: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut pipe) = pipe else { return String::new() };
    let mut kept = Vec::new();
    let mut buffer = vec![0; KEPT];
    // A pipe that breaks has given all it had.
    while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
        kept.extend_from_slice(&buffer[..count]);
        kept.drain(..kept.len().saturating_sub(KEPT));
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::environment::process::{started, wait_until};

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[tokio::test]
    async fn the_end_of_long_output_is_kept() {
        let ended = run_in_group(shell("yes | head -c 300000; echo end; echo words >&2")).await.unwrap();
        assert_eq!(ended.stderr, "words\n");
        assert!(ended.stdout.len() <= KEPT && ended.stdout.ends_with("end\n"));
    }

    #[tokio::test]
    async fn a_deadline_ends_children_of_children() {
        let note = tempfile::NamedTempFile::new().unwrap();
        let script = format!("sh -c 'echo $$ > {0}; sleep 60; true' | cat", note.path().display());
        let late = tokio::time::timeout(Duration::from_millis(700), run_in_group(shell(&script))).await;
        assert!(late.is_err());
        let pid: u32 = std::fs::read_to_string(note.path()).unwrap().trim().parse().unwrap();
        assert!(wait_until(Duration::from_secs(2), || started(pid).is_none()));
    }
}
