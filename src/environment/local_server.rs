//! A running local server: what it uses, why it died, how it ends.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use super::account::last_lines;
#[cfg(target_os = "linux")]
use super::cgroup::OwnCgroup;
use super::files::failed;
use super::fresh::Way;
use super::ledger::{Ledger, Thing};
use super::local::START_DEADLINE;
use super::local_command::LocalCommand;
use super::local_programs::LocalPrograms;
use super::place::Place;
use super::program::Pipeline;
use super::{Boxed, EnvironmentError, Programs, Running, Usage, process, shared_memory};
use crate::engine::postgres::{Endpoint, ready};

/// How long a server may take for its immediate shutdown before it is killed.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a starting server is asked whether it still lives.
const POLL: Duration = Duration::from_millis(5);
/// How long a server whose connections broke may take to end before it counts as one that lives on.
const ENDING: Duration = Duration::from_millis(500);
/// Lines of the log shown with an error.
const LOG_LINES: usize = 12;

/// How long a clean shutdown may take: it writes out everything the server holds.
const SHUTDOWN: Duration = Duration::from_mins(2);

/// The process, then its folder: fields are dropped in this order.
pub(crate) struct LocalServer {
    /// Another one after a restart.
    process: Mutex<Arc<ServerProcess>>,
    place: Place,
    /// Where client programs are, if any can be used with it.
    programs: Option<LocalPrograms>,
    command: LocalCommand,
    endpoint: Endpoint,
    ledger: Arc<Ledger>,
}

/// The outermost process of a server: `unshare`, or the server itself.
struct ServerProcess {
    child: Mutex<Child>,
    pid: u32,
    started: u64,
    ledger: Arc<Ledger>,
    /// The private folder: a child that outlived the server works in it.
    folder: PathBuf,
    /// Whether it was ended and forgotten.
    ended: AtomicBool,
}

impl LocalServer {
    /// Takes charge of a process that was just spawned and writes it down.
    ///
    /// # Errors
    /// When the ledger cannot be written; the process is ended then.
    pub(crate) fn new(
        child: Child,
        place: Place,
        command: LocalCommand,
        endpoint: Endpoint,
        ledger: &Arc<Ledger>,
    ) -> Result<Self, EnvironmentError> {
        let process = Mutex::new(ServerProcess::new(child, &place, ledger)?);
        Ok(Self { process, place, programs: None, command, endpoint, ledger: Arc::clone(ledger) })
    }

    /// Tells it about client programs.
    pub(crate) fn with_programs(mut self, programs: LocalPrograms) -> Self {
        self.programs = Some(programs);
        self
    }

    /// Waits until it answers, at most `deadline`; a server that has ended is not waited for.
    ///
    /// # Errors
    /// With the last lines of the server's log.
    pub(crate) async fn ready(&self, deadline: Duration) -> Result<(), EnvironmentError> {
        let answer = tokio::select! {
            answer = ready(&self.endpoint, deadline) => answer.map_err(|error| error.to_string()),
            status = self.ended() => Err(end_in_words(status)),
        };
        answer.map_err(|why| EnvironmentError::NotReady { reason: format!("{why}; {}", self.log_in_words()) })
    }

    /// The process of this moment.
    fn process(&self) -> Arc<ServerProcess> {
        Arc::clone(&self.process.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn ended(&self) -> ExitStatus {
        let process = self.process();
        loop {
            if let Some(status) = process.status() {
                return status;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    async fn start_again(&self) -> Result<Endpoint, EnvironmentError> {
        let process = self.process();
        let stopping = tokio::task::spawn_blocking(move || process.shut_down());
        let stopped = stopping.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        stopped.map_err(failed("stopping the server to start it again"))?;
        self.process().end()?;
        let child = self.command.spawn(&self.place).await?;
        let process = ServerProcess::new(child, &self.place, &self.ledger)?;
        *self.process.lock().unwrap_or_else(PoisonError::into_inner) = process;
        self.ready(START_DEADLINE).await?;
        Ok(self.endpoint.clone())
    }

    fn log_in_words(&self) -> String {
        let log = fs::read(self.place.log()).unwrap_or_default();
        let lines = last_lines(&String::from_utf8_lossy(&log), LOG_LINES);
        if lines.is_empty() { "its log is empty".to_owned() } else { format!("end of its log:\n{lines}") }
    }

    fn stop_and_remove(mut self) -> Result<(), EnvironmentError> {
        let ended = self.process().end();
        let removed = self.place.remove();
        ended.and(removed)
    }
}

impl ServerProcess {
    fn new(child: Child, place: &Place, ledger: &Arc<Ledger>) -> Result<Arc<Self>, EnvironmentError> {
        let pid = child.id();
        // A server that died at once has no start time; nothing is written down for it.
        let started = process::started(pid);
        let process = Arc::new(Self {
            child: Mutex::new(child),
            pid,
            started: started.unwrap_or_default(),
            ledger: Arc::clone(ledger),
            folder: place.folder.clone(),
            ended: AtomicBool::new(false),
        });
        if let Some(started) = started {
            ledger.record(&Thing::Process { pid, started })?;
        }
        Ok(process)
    }

    /// A fast shutdown: sessions end, everything is written out. Blocks until the server is gone.
    fn shut_down(&self) -> std::io::Result<()> {
        if self.status().is_none() {
            process::signal(process::server_below(self.pid), Signal::SIGINT);
        }
        if !process::wait_until(SHUTDOWN, || self.status().is_some()) {
            return Err(std::io::Error::new(
                std::io::ErrorKind::TimedOut,
                format!("not done within {SHUTDOWN:?}"),
            ));
        }
        match self.status() {
            Some(status) if !status.success() => Err(std::io::Error::other(end_in_words(status))),
            _ => Ok(()),
        }
    }

    fn status(&self) -> Option<ExitStatus> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait().ok().flatten()
    }

    /// Ends it and everything below it.
    fn end(&self) -> Result<(), EnvironmentError> {
        if self.status().is_some() {
            self.end_orphans();
        }
        let gone = process::end(self.pid, self.started, PATIENCE);
        // Collects the exit status, so that no zombie stays.
        self.status();
        if !gone {
            let what = format!("process {}: it does not end, not even by SIGKILL", self.pid);
            return Err(failed(what)(std::io::ErrorKind::TimedOut.into()));
        }
        self.ended.store(true, Ordering::Relaxed);
        self.ledger.forget(&Thing::Process { pid: self.pid, started: self.started })
    }
}

impl ServerProcess {
    /// A server that was killed left its children alone, and its shared memory to nobody.
    fn end_orphans(&self) {
        for pid in process::working_in(&self.folder) {
            if let Some(started) = process::started(pid) {
                process::end(pid, started, Duration::ZERO);
            }
        }
        shared_memory::free(&self.folder.join("data"));
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if !self.ended.load(Ordering::Relaxed) {
            // A failure stays in the ledger.
            drop(self.end());
        }
    }
}

impl Running for LocalServer {
    fn usage(&self) -> Boxed<'_, Usage> {
        let pid = self.process().pid;
        // Reading every process of the machine takes milliseconds: not on a thread of the runtime.
        let reading = tokio::task::spawn_blocking(move || usage_below(pid));
        Box::pin(async move { reading.await.unwrap_or_default() })
    }

    fn diagnose(&self) -> Boxed<'_, Option<String>> {
        Box::pin(async {
            let begin = Instant::now();
            let process = self.process();
            // Its connections break a little before it is known how it ended.
            while process.status().is_none() && begin.elapsed() < ENDING {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            let ended = process.status().map(|status| format!("{}; ", end_in_words(status)));
            Some(format!("{}{}", ended.unwrap_or_default(), self.log_in_words()))
        })
    }

    fn programs(&self, pipeline: Pipeline) -> Boxed<'_, Result<Programs<'_>, EnvironmentError>> {
        let made = self.programs.as_ref().map(|programs| programs.run(pipeline));
        Box::pin(async move {
            made.ok_or_else(|| EnvironmentError::Unavailable {
                reason: "no client programs were looked for".to_owned(),
                remedy: "call `find_programs` of the provider first".to_owned(),
            })
        })
    }

    fn data_directory(&self) -> Option<PathBuf> {
        if self.command.way != Way::Overlay {
            return Some(self.place.data());
        }
        // The overlay is mounted for the server alone; its root shows what it sees.
        let server = process::server_below(self.process().pid);
        let data = self.place.data();
        let seen = PathBuf::from(format!("/proc/{server}/root")).join(data.strip_prefix("/").ok()?);
        seen.join("PG_VERSION").exists().then_some(seen)
    }

    fn restart(&self) -> Boxed<'_, Result<Endpoint, EnvironmentError>> {
        Box::pin(self.start_again())
    }

    fn stop(self: Box<Self>) -> Boxed<'static, Result<(), EnvironmentError>> {
        Box::pin(async move {
            let stopping = tokio::task::spawn_blocking(move || self.stop_and_remove());
            stopping
                .await
                .unwrap_or_else(|error| Err(failed("stopping a server")(std::io::Error::other(error))))
        })
    }
}

fn end_in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        // unshare and setpriv pass a signal on as 128 + its number.
        (_, Some(9)) | (Some(137), _) => {
            "the server was killed (SIGKILL): perhaps the machine ran out of memory".to_owned()
        }
        (_, Some(signal)) => format!("the server ended by signal {signal}"),
        (Some(code), _) => format!("the server ended with exit code {code}"),
        (None, None) => "the server ended".to_owned(),
    }
}

/// CPU time and block I/O of a server and its children, living and ended. The counters of a process
/// include those children it has waited for.
#[cfg(target_os = "linux")]
fn usage_below(pid: u32) -> Usage {
    let mut ticks = 0;
    let mut nanoseconds = 0;
    let mut io = Some((0, 0));
    let mut seen = false;
    for member in std::iter::once(pid).chain(process::descendants(pid)) {
        let Some(process) = i32::try_from(member).ok().and_then(|id| procfs::process::Process::new(id).ok())
        else {
            continue;
        };
        let Ok(stat) = process.stat() else { continue };
        seen = true;
        // Clock ticks of 10 ms for children that have ended; the scheduler's nanoseconds for the living.
        ticks += u64::try_from(stat.cutime + stat.cstime).unwrap_or_default();
        match process.schedstat() {
            Ok(scheduled) => nanoseconds += scheduled.sum_exec_runtime,
            Err(_) => ticks += stat.utime + stat.stime,
        }
        // A sum without one of its parts would be a wrong number.
        io = io.zip(process.io().ok()).map(|((r, w), own)| (r + own.read_bytes, w + own.write_bytes));
    }
    #[expect(clippy::cast_precision_loss, reason = "clock ticks stay far below 2^53")]
    let seconds = ticks as f64 / procfs::ticks_per_second() as f64 + nanoseconds as f64 / 1e9;
    if !seen {
        return Usage::default();
    }
    let (read_bytes, written_bytes) = io.unzip();
    // It lives in the cgroup of this process.
    let OwnCgroup { throttled_periods, memory_kills } = OwnCgroup::now();
    Usage { cpu_seconds: Some(seconds), read_bytes, written_bytes, throttled_periods, memory_kills }
}

/// Not known on this system.
#[cfg(not(target_os = "linux"))]
fn usage_below(_pid: u32) -> Usage {
    Usage::default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kill_is_suspected_to_be_the_memory() {
        assert!(end_in_words(ExitStatus::from_raw(9)).contains("memory"));
        assert!(end_in_words(ExitStatus::from_raw(137 << 8)).contains("memory"));
        assert_eq!(end_in_words(ExitStatus::from_raw(1 << 8)), "the server ended with exit code 1");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn usage_covers_children() {
        let usage = usage_below(std::process::id());
        assert!(usage.cpu_seconds.is_some_and(|seconds| seconds >= 0.0));
        assert_eq!(usage_below(u32::MAX), Usage::default());
    }
}
