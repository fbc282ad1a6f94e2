//! A small process beside every run that outlives its death and removes what it left.
//!
//! It holds the reading end of a pipe. However the run ends, the kernel closes the other end; without
//! the word `done` before that, everything in the ledger is removed.

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use super::clean::{CleanReport, remove_listed, sweep};
use super::engine::Engine;
use super::files::failed;
use super::ledger::{self, Ledger, Thing};
use super::{EnvironmentError, process};

/// Name of the hidden sub-command; its one argument is the live folder.
pub const COMMAND: &str = "reap";
/// What a run says when nothing is left to remove.
const DONE: &[u8] = b"done";
/// How long the reaper waits for the lock of the run after its pipe was closed: a run may close the
/// pipe a little before it ends.
const LOCK_PATIENCE: Duration = Duration::from_mins(1);

/// The run's handle on its reaper.
#[derive(Debug)]
pub struct Reaper {
    child: Child,
}

impl Reaper {
    /// Starts `program reap <live folder>` in a process group of its own, so that Ctrl-C does not reach
    /// it. `program` is this executable.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(program: &Path, ledger: &Ledger) -> Result<Self, EnvironmentError> {
        let child = Command::new(program)
            .arg(COMMAND)
            .arg(ledger.folder())
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(failed(format!(
                "{}: starting the process that cleans up after a kill",
                program.display()
            )))?;
        Ok(Self { child })
    }

    /// Dismisses the reaper. When the ledger still lists something, it is not dismissed but left to
    /// remove that as soon as this process has ended.
    pub fn finish(mut self, ledger: &Ledger) {
        let empty = ledger.remaining().is_ok_and(|things| things.is_empty());
        if let Some(mut pipe) = self.child.stdin.take()
            && empty
        {
            // A reaper that is gone needs no word.
            drop(pipe.write_all(DONE));
        }
        if empty {
            let pid = self.child.id();
            process::wait_until(Duration::from_secs(2), || process::started(pid).is_none());
            drop(self.child.try_wait());
        }
    }
}

/// The reaper's life: waits for the end of standard input, then removes what `live` lists unless the
/// word `done` came. The exit code is 1 when something could not be removed.
pub fn reap_main(live: &Path) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return ExitCode::FAILURE };
    runtime.block_on(reap(live))
}

async fn reap(live: &Path) -> ExitCode {
    // Only receiving them replaces their default action, which would end the reaper with its run.
    let _ignored: Vec<_> = [SignalKind::hangup(), SignalKind::interrupt(), SignalKind::terminate()]
        .into_iter()
        .map(signal)
        .collect();
    let waiting = tokio::task::spawn_blocking(|| {
        let mut words = Vec::new();
        // An unreadable pipe is a closed pipe.
        drop(std::io::stdin().lock().read_to_end(&mut words));
        words
    });
    if waiting.await.is_ok_and(|words| words == DONE) {
        return ExitCode::SUCCESS;
    }
    let Some(lock) = ledger::take_over(live, LOCK_PATIENCE) else {
        // Either somebody has cleaned up already, or the run lives on and will do so itself.
        return ExitCode::SUCCESS;
    };
    let mut report = CleanReport::default();
    let containers = ledger::read_things(live)
        .is_ok_and(|things| things.iter().any(|t| matches!(t, Thing::Container(_) | Thing::Volume(_))));
    if containers {
        let engine = Engine::connect().await;
        remove_listed(live, engine.as_ref().map_err(Clone::clone), &mut report).await;
        if let Ok(engine) = &engine {
            // A request that was under way when the run died may make its container only now.
            tokio::time::sleep(Duration::from_millis(500)).await;
            sweep(engine, &mut report).await;
        }
    } else {
        remove_listed(live, Err("not asked".to_owned()), &mut report).await;
    }
    drop(lock);
    // The folder went with what it listed. By now one of its name may belong to a run that was resumed.
    if report.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
