//! The real program in a folder of its own: an experiment file, a results folder, a cache, and what is left of them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use loadlab::model::{Measurement, TrialRecord};
use loadlab::store::{StoredRun, newest_run, read_run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use polars::prelude::{DataFrame, ParquetReader, SerReader};

use crate::server_container::{cache as shared_cache, docker, engine};

/// Longest time of any run in these tests, on a slow machine and in a debug build.
const PATIENCE: Duration = Duration::from_mins(5);
/// How long the reaper may take after a kill.
const REAPING: Duration = Duration::from_secs(20);

/// A backend under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    Local,
    Container,
}

impl Server {
    /// The word for `--on`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Container => "container",
        }
    }

    /// Whether it can be tested here; a missing engine is said, or a failure where one is required.
    pub(crate) fn is_here(self) -> bool {
        static ENGINE: OnceLock<bool> = OnceLock::new();
        let ask = || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(engine()).is_some()
        };
        self == Self::Local || *ENGINE.get_or_init(ask)
    }

    /// Any version here; in a container the one whose image the tests make sure of.
    fn versions(self) -> &'static str {
        match self {
            Self::Local => "\"14-18\"",
            Self::Container => "15",
        }
    }
}

/// What the program said and how it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) elapsed: Duration,
}

impl Said {
    /// Ended with this exit code.
    #[track_caller]
    pub(crate) fn ended_with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// Said all of these on standard error.
    #[track_caller]
    pub(crate) fn complained(self, parts: &[&str]) -> Self {
        for part in parts {
            assert!(self.stderr.contains(part), "{part:?} is not in:\n{}", self.stderr);
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }

    /// Was done in this time.
    #[track_caller]
    pub(crate) fn within(self, most: Duration) -> Self {
        assert!(self.elapsed < most, "took {:?}: {}", self.elapsed, self.stderr);
        self
    }
}

/// A folder with everything of one test.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
    cache: PathBuf,
    variables: Vec<(String, String)>,
    /// Whether runs may go on beside others: tests run in parallel.
    beside_others: bool,
    /// The folder of a cache in memory, removed at the end.
    _memory: Option<tempfile::TempDir>,
}

impl Lab {
    /// With the cache of all tests, in which clusters are prepared once.
    pub(crate) fn new() -> Self {
        Self::with(shared_cache())
    }

    /// With a cache that nobody else uses, so that everything in it is this test's. Images that are made already
    /// are not made again.
    pub(crate) fn alone() -> Self {
        let lab = Self::with(PathBuf::new());
        let cache = lab.folder.path().join("c");
        let baked = cache.join("baked");
        fs::create_dir_all(&baked).unwrap();
        for entry in fs::read_dir(shared_cache().join("baked")).into_iter().flatten().flatten() {
            if entry.path().extension().is_none() {
                fs::copy(entry.path(), baked.join(entry.file_name())).unwrap();
            }
        }
        Self { cache, ..lab }
    }

    /// With a cache that is not there yet.
    pub(crate) fn bare() -> Self {
        let lab = Self::with(PathBuf::new());
        Self { cache: lab.folder.path().join("c"), ..lab }
    }

    /// With a cache of its own in memory; `None` where the machine has no folder for that.
    pub(crate) fn in_memory() -> Option<Self> {
        let memory = Path::new("/dev/shm");
        let folder = tempfile::Builder::new().prefix("lab").tempdir_in(memory).ok()?;
        let lab = Self::with(PathBuf::new());
        // The server's account must be able to enter.
        fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        Some(Self { cache: folder.path().join("c"), _memory: Some(folder), ..lab })
    }

    /// With a cache for servers that are fetched: in that of all tests they would be taken for the others' servers.
    pub(crate) fn with_fetched_servers() -> Self {
        Self::with(shared_cache().with_file_name("cache-of-fetched-servers"))
    }

    fn with(cache: PathBuf) -> Self {
        // In the usual place for temporary files, where paths are short enough for sockets.
        let folder = tempfile::Builder::new().prefix("lab").tempdir().unwrap();
        let lab = Self { folder, cache, variables: Vec::new(), beside_others: true, _memory: None };
        for server in [Server::Local, Server::Container] {
            let text = format!(
                "environment: for tests\nengine: postgres\nversions: {}\n\
                 initdb: {{locale: C, encoding: UTF8, checksums: on}}\n",
                server.versions()
            );
            lab.write(&format!("{}/postgres.yaml", server.word()), &text);
        }
        lab
    }

    /// Sets an environment variable of the program.
    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Leaves it to the program whether runs may go on beside others.
    pub(crate) fn strict(mut self) -> Self {
        self.beside_others = false;
        self
    }

    /// Writes a file below the folder.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// Writes the experiment file.
    pub(crate) fn experiment(&self, text: &str) -> &Self {
        self.write("experiment.yaml", text);
        self
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The program with these arguments.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadlab"));
        command.args(arguments);
        if self.beside_others && arguments.first().is_some_and(|first| is_run(first.as_ref())) {
            command.arg("--beside-others");
        }
        command.current_dir(self.folder.path()).env("LOADLAB_CACHE", &self.cache);
        command.env("NO_COLOR", "1").envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs the program to its end.
    pub(crate) fn loadlab(&self, arguments: &[&str]) -> Said {
        let begin = Instant::now();
        let output =
            assert_cmd::Command::from_std(self.command(arguments)).timeout(PATIENCE).output().unwrap();
        Said {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            elapsed: begin.elapsed(),
        }
    }

    fn run_arguments<'a>(server: Server, more: &[&'a str]) -> Vec<&'a str> {
        let fixed =
            ["--on", server.word(), "--environments", server.word(), "--offline", "--results", "results"];
        let file = if more.first().is_some_and(|word| Path::new(word).extension().is_some()) {
            None
        } else {
            Some("experiment.yaml")
        };
        ["run"].into_iter().chain(file).chain(more.iter().copied()).chain(fixed).collect()
    }

    /// `loadlab run` of the experiment, or of a file named first.
    pub(crate) fn run(&self, server: Server, more: &[&str]) -> Said {
        self.loadlab(&Self::run_arguments(server, more))
    }

    /// The same, not waited for, in a process group of its own as a shell does it.
    pub(crate) fn start(&self, server: Server, more: &[&str]) -> Running {
        use std::os::unix::process::CommandExt;
        let mut command = self.command(&Self::run_arguments(server, more));
        command.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: Some(command.spawn().unwrap()), begin: Instant::now() }
    }

    /// The same, which may fetch servers.
    pub(crate) fn start_fetching(&self, server: Server) -> Running {
        let arguments = Self::run_arguments(server, &[]);
        let mut command =
            self.command(&arguments.into_iter().filter(|word| *word != "--offline").collect::<Vec<_>>());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running { child: Some(command.spawn().unwrap()), begin: Instant::now() }
    }

    /// Folder of what runs keep and leave.
    pub(crate) fn cache(&self) -> &Path {
        &self.cache
    }

    /// The newest run.
    pub(crate) fn newest(&self) -> Run {
        self.find().expect("there is a run")
    }

    /// The newest run, if there is one.
    pub(crate) fn find(&self) -> Option<Run> {
        let path = newest_run(&self.folder.path().join("results"), None).unwrap()?;
        Some(Run { stored: read_run(&path).unwrap() })
    }

    /// All files below the folder, sorted.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        files_below(self.folder.path())
    }

    /// Everything that runs of these processes have left on the machine, in words. Complete for a lab of its own.
    pub(crate) fn left(&self, runs: &[u32]) -> Vec<String> {
        let mut left: Vec<String> =
            self.processes().into_iter().map(|(pid, words)| format!("process {pid}: {words}")).collect();
        for folder in ["live", "trials"] {
            let entries = fs::read_dir(self.cache.join(folder)).into_iter().flatten().flatten();
            for entry in entries {
                let inside: Vec<PathBuf> = files_below(&entry.path());
                left.push(format!("{} with {inside:?}", entry.path().display()));
            }
        }
        if Server::Container.is_here() {
            let owner = "{{.Label \"io.loadlab.owner\"}}";
            let containers = docker(&["ps", "-a", "--format", &format!("{owner} container {{{{.Names}}}}")]);
            let volumes = docker(&["volume", "ls", "--format", &format!("{owner} volume {{{{.Name}}}}")]);
            let ours = |line: &&str| runs.iter().any(|pid| line.starts_with(&format!("{pid}:")));
            left.extend(containers.lines().chain(volumes.lines()).filter(ours).map(str::to_owned));
        }
        left
    }

    /// Waits until nothing is left: what a killed run cannot remove, its reaper does.
    #[track_caller]
    pub(crate) fn assert_nothing_left_soon(&self, runs: &[u32]) {
        let begin = Instant::now();
        loop {
            let left = self.left(runs);
            if left.is_empty() {
                return;
            }
            if begin.elapsed() > REAPING {
                // A kill between the ledger and its reaper leaves the ledger alone; the next start removes it.
                let only_ledgers = left.iter().all(|thing| thing.contains("/live/"));
                assert!(only_ledgers, "still there after {REAPING:?}: {left:#?}");
                self.loadlab(&["clean"]).ended_with(0);
                assert_eq!(self.left(runs), Vec::<String>::new(), "after `loadlab clean`");
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Processes that work in the cache: servers, whatever they call themselves, and their helpers. Numbers and titles.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
        let cache = self.cache.to_string_lossy().into_owned();
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let one = |entry: fs::DirEntry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let words = fs::read(entry.path().join("cmdline")).ok()?;
            let words = String::from_utf8_lossy(&words).replace('\0', " ");
            let at = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            let reaps = words.contains(" reap ");
            let ours = at.starts_with(&cache) || (words.contains(&cache) && !reaps);
            ours.then_some((pid, words.trim().to_owned()))
        };
        entries.filter_map(one).collect()
    }

    /// Waits for a server process of the run whose title ends with `word`, such as `SELECT`, and gives its number.
    pub(crate) fn wait_for_backend(&self, server: Server, run: u32, word: &str) -> i32 {
        let begin = Instant::now();
        loop {
            let found = match server {
                Server::Local => self.processes(),
                Server::Container => container_processes(run),
            };
            let works = |(_, title): &&(i32, String)| {
                title.starts_with("postgres: loadlab loadlab") && title.ends_with(word)
            };
            if let Some((pid, _)) = found.iter().find(works) {
                return *pid;
            }
            assert!(begin.elapsed() < Duration::from_mins(1), "no {word} among {found:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn is_run(command: &OsStr) -> bool {
    ["run", "rerun"].iter().any(|word| command == *word)
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        // A folder may vanish while it is looked at.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let list = if entry.path().is_dir() { &mut folders } else { &mut files };
            list.push(entry.path());
        }
    }
    files.sort();
    files
}

/// Host numbers and titles of the processes in the containers of a run.
fn container_processes(run: u32) -> Vec<(i32, String)> {
    let names = docker(&["ps", "--format", "{{.Label \"io.loadlab.owner\"}} {{.Names}}"]);
    let names = names
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(owner, _)| owner.starts_with(&format!("{run}:")));
    let mut found = Vec::new();
    for (_, name) in names {
        // A container may end between the two questions.
        let Ok(top) = Command::new("docker").args(["top", name, "-eo", "pid,args"]).output() else {
            continue;
        };
        let lines = String::from_utf8_lossy(&top.stdout).into_owned();
        let parse = |line: &str| {
            let (pid, title) = line.trim().split_once(' ')?;
            Some((pid.parse().ok()?, title.trim().to_owned()))
        };
        found.extend(lines.lines().filter_map(parse));
    }
    found
}

/// A program that was started.
pub(crate) struct Running {
    child: Option<Child>,
    begin: Instant,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().expect("not ended").id()
    }

    /// Sends a signal to the program alone.
    pub(crate) fn signal(&self, signal: Signal) {
        // It may have ended just now.
        let _gone = kill(Pid::from_raw(self.pid().try_into().unwrap()), signal);
    }

    /// Ctrl-C: the signal goes to the whole process group.
    pub(crate) fn interrupt(&self) {
        let _gone = kill(Pid::from_raw(-i32::try_from(self.pid()).unwrap()), Signal::SIGINT);
    }

    /// Whether it still runs.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.as_mut().expect("not ended").try_wait().unwrap().is_none()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Said {
        let child = self.child.take().expect("not ended");
        let output = child.wait_with_output().unwrap();
        Said {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            elapsed: self.begin.elapsed(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// A run on disk.
pub(crate) struct Run {
    pub(crate) stored: StoredRun,
}

impl Run {
    /// Its folder, as a word of a command line.
    pub(crate) fn path(&self) -> &str {
        self.stored.path.to_str().unwrap()
    }

    pub(crate) fn records(&self) -> Vec<TrialRecord> {
        self.stored.journal.records()
    }

    /// The only trial.
    #[track_caller]
    pub(crate) fn record(&self) -> TrialRecord {
        let records = self.records();
        assert_eq!(records.len(), 1);
        records.into_iter().next().unwrap()
    }

    /// One of the run's Parquet files.
    pub(crate) fn parquet(&self, name: &str) -> DataFrame {
        let path = self.stored.path.join(format!("{name}.parquet"));
        ParquetReader::new(fs::File::open(path).unwrap()).finish().unwrap()
    }
}

/// The measurement of a step.
#[track_caller]
pub(crate) fn step<'a>(record: &'a TrialRecord, name: &str) -> &'a Measurement {
    let found = record.measurements.iter().find(|step| step.step == name);
    found.unwrap_or_else(|| panic!("no step {name} in {}: {:?}", record.treatment, record.error))
}
