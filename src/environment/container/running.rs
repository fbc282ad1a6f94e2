//! A running container: what it used, why it is in trouble, how it is stopped.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bollard::models::ContainerState;

use super::engine::ContainerEngine;
use super::folders::Footprint;
use super::programs;
use super::reach::{Reach, Up};
use super::stats;
use crate::engine::postgres::Endpoint;
use crate::environment::cgroup::Cgroup;
use crate::environment::program::Pipeline;
use crate::environment::{Boxed, EnvironmentError, Programs, Running, Usage};

/// Lines of the log that are looked at.
const LOG_LINES: usize = 200;
/// Lines of the log that are shown.
const SHOWN_LINES: usize = 12;

/// How long a clean shutdown may take: it writes out everything the server holds.
const SHUTDOWN: Duration = Duration::from_mins(2);

/// The provider's side of a trial's server.
pub(super) struct RunningContainer {
    engine: ContainerEngine,
    footprint: Footprint,
    reach: Reach,
    /// Another one after a restart.
    process: Mutex<Process>,
}

/// The first process of a container.
#[derive(Debug, Clone, Default)]
struct Process {
    /// Its number here, where it is visible.
    pid: Option<i64>,
    /// Files of its cgroup, where they are visible.
    cgroup: Option<Cgroup>,
}

impl Process {
    fn of(up: &Up) -> Self {
        Self { pid: up.pid, cgroup: up.pid.and_then(Cgroup::of) }
    }
}

impl RunningContainer {
    /// A container whose server answers.
    pub(super) fn new(engine: ContainerEngine, footprint: Footprint, reach: Reach, up: &Up) -> Self {
        Self { engine, footprint, reach, process: Mutex::new(Process::of(up)) }
    }

    fn process(&self) -> Process {
        self.process.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn start_again(&self) -> Result<Endpoint, EnvironmentError> {
        if self.reach.in_memory {
            return Err(EnvironmentError::Unavailable {
                reason: "the data directory is in memory and would be lost with the container's stop"
                    .to_owned(),
                remedy: "use `storage: layer` or `volume`".to_owned(),
            });
        }
        let name = self.footprint.container();
        // A fast shutdown, whatever signal the image would stop with.
        self.engine.signal(name, "SIGINT").await?;
        let code = self.engine.exit_code(name, SHUTDOWN).await?;
        if code != 0 {
            return Err(EnvironmentError::NotReady {
                reason: format!("container {name} ended with exit code {code} when it was stopped"),
            });
        }
        self.engine.start_again(name).await?;
        let up = self.reach.wait(&self.engine, name).await?;
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = Process::of(&up);
        Ok(up.endpoint)
    }
}

impl Running for RunningContainer {
    fn usage(&self) -> Boxed<'_, Usage> {
        Box::pin(async {
            match self.process().cgroup {
                Some(cgroup) => cgroup.usage(),
                None => match self.engine.stats(self.footprint.container()).await {
                    Some(answer) => stats::from_stats(&answer),
                    None => Usage::default(),
                },
            }
        })
    }

    fn diagnose(&self) -> Boxed<'_, Option<String>> {
        Box::pin(async {
            let kills = self.process().cgroup.as_ref().and_then(Cgroup::memory_kills).unwrap_or(0);
            diagnose(&self.engine, self.footprint.container(), kills).await
        })
    }

    fn programs(&self, pipeline: Pipeline) -> Boxed<'_, Result<Programs<'_>, EnvironmentError>> {
        Box::pin(programs::prepare(&self.engine, self.footprint.container(), &self.reach, pipeline))
    }

    fn data_directory(&self) -> Option<PathBuf> {
        // Through the container's own root, whatever its layers and volumes are made of.
        let pid = self.process().pid?;
        let data = PathBuf::from(format!("/proc/{pid}/root{}", self.reach.data));
        data.join("PG_VERSION").exists().then_some(data)
    }

    fn restart(&self) -> Boxed<'_, Result<Endpoint, EnvironmentError>> {
        Box::pin(self.start_again())
    }

    fn stop(mut self: Box<Self>) -> Boxed<'static, Result<(), EnvironmentError>> {
        Box::pin(async move { self.footprint.remove().await })
    }
}

/// Why a container is in trouble; `None` when it runs and nothing speaks against it.
pub(super) async fn diagnose(engine: &ContainerEngine, name: &str, memory_kills: u64) -> Option<String> {
    let state = match engine.container(name).await {
        Ok(Some(container)) => container.state.unwrap_or_default(),
        Ok(None) => return Some(format!("container {name} is gone: somebody else removed it")),
        Err(error) => return Some(format!("the container engine is in trouble: {error}")),
    };
    let log = engine.log_end(name, LOG_LINES).await;
    explain(&state, memory_kills, &log)
}

/// Puts state and log into words.
fn explain(state: &ContainerState, memory_kills: u64, log: &str) -> Option<String> {
    let running = state.running.unwrap_or(false);
    let mut words = Vec::new();
    if state.oom_killed.unwrap_or(false) || memory_kills > 0 {
        words.push(
            "out of memory: the kernel killed a process of the server (oom), its memory limit was reached"
                .to_owned(),
        );
    }
    if small_shared_memory(log) {
        words.push("/dev/shm is too small; raise limits.shared_memory of the environment".to_owned());
    }
    if !running {
        let code = state.exit_code.unwrap_or_default();
        let mut end = format!("the container has ended with exit code {code}");
        if let Some(error) = state.error.as_deref().filter(|error| !error.is_empty()) {
            end = format!("{end} ({error})");
        }
        words.push(end);
    }
    if words.is_empty() {
        return None;
    }
    let lines: Vec<&str> = log.lines().collect();
    let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    Some(format!("{}; the end of its log:\n{shown}", words.join("; ")))
}

/// PostgreSQL words it as a full disk.
fn small_shared_memory(log: &str) -> bool {
    log.lines().any(|line| {
        line.contains("could not resize shared memory segment") && line.contains("No space left on device")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(running: bool, code: i64, oom: bool) -> ContainerState {
        ContainerState {
            running: Some(running),
            exit_code: Some(code),
            oom_killed: Some(oom),
            ..ContainerState::default()
        }
    }

    #[test]
    fn a_healthy_server_has_no_diagnosis() {
        assert_eq!(explain(&state(true, 0, false), 0, "LOG:  ready"), None);
    }

    #[test]
    fn causes_are_named_before_the_log() {
        let killed = explain(&state(false, 137, true), 0, "a\nb").expect("trouble");
        assert!(killed.starts_with("out of memory"), "{killed}");
        assert!(killed.contains("exit code 137") && killed.ends_with("a\nb"), "{killed}");
        let backend = explain(&state(true, 0, false), 2, "").expect("trouble");
        assert!(backend.starts_with("out of memory"), "{backend}");
    }

    #[test]
    fn a_small_shared_memory_is_recognised() {
        let log = "ERROR:  could not resize shared memory segment \"/PostgreSQL.1\" to 8 bytes: No space left on device";
        let words = explain(&state(true, 0, false), 0, log).expect("trouble");
        assert!(words.starts_with("/dev/shm is too small"), "{words}");
    }
}
