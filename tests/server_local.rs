//! The local backend against a real PostgreSQL of this machine.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use loadlab::engine::postgres::{Endpoint, Role, Session};
use loadlab::environment::clean::clean;
use loadlab::environment::doctor::doctor;
use loadlab::environment::ledger::{Ledger, Thing};
use loadlab::environment::local::LocalProvider;
use loadlab::environment::reaper::Reaper;
use loadlab::environment::{EnvironmentError, Instance, Launch, Provider};
use loadlab::model::{
    ConnectionPath, EnvironmentSpec, FreshMethod, InitOptions, Limits, Scalar, Storage, VersionRange,
};

/// Folder of the cache for the process that is to be killed.
const VICTIM: &str = "LOADLAB_TEST_VICTIM";

/// An environment of any version with nothing set.
pub(crate) fn environment(fresh: FreshMethod) -> EnvironmentSpec {
    EnvironmentSpec {
        name: "postgres".to_owned(),
        versions: VersionRange { min: 14, max: 18 },
        image: String::new(),
        binaries: None,
        block_size: None,
        builder: None,
        init: InitOptions::default(),
        settings: IndexMap::new(),
        limits: Limits::default(),
        storage: Storage::Layer,
        fresh,
        connection: ConnectionPath::Socket,
        client_cpuset: None,
        url_variable: String::new(),
    }
}

/// A cache, a run in it, and a provider.
struct Bench {
    provider: LocalProvider,
    ledger: Arc<Ledger>,
    spec: EnvironmentSpec,
    cache: PathBuf,
    /// Removed with the bench.
    folder: Option<tempfile::TempDir>,
}

impl Bench {
    async fn new(spec: EnvironmentSpec) -> Self {
        let folder = tempfile::tempdir().expect("temporary folder");
        let cache = folder.path().to_owned();
        let mut bench = Self::at(&cache, "run", spec).await;
        bench.folder = Some(folder);
        bench
    }

    async fn at(cache: &Path, run: &str, spec: EnvironmentSpec) -> Self {
        let ledger = Ledger::open(cache, run).expect("ledger");
        let (provider, why) =
            LocalProvider::find(&spec, cache, true, &ledger).await.expect("PostgreSQL is installed");
        assert!(!why.contains('/'), "no paths in results: {why}");
        Self { provider, ledger, spec, cache: cache.to_owned(), folder: None }
    }

    async fn start(&self, trial: u64) -> Result<Instance, EnvironmentError> {
        let run_id = self.ledger.run_id().to_owned();
        self.provider.start(&Launch { run_id, trial, environment: self.spec.clone() }).await
    }

    fn trials(&self) -> usize {
        fs::read_dir(self.cache.join("trials")).map_or(0, Iterator::count)
    }
}

async fn text(endpoint: &Endpoint, role: Role, sql: &str) -> String {
    let session = Session::open(endpoint, role).await.expect("connection");
    session.client.query_one(sql, &[]).await.expect("answer").get(0)
}

async fn starts_and_stops(fresh: FreshMethod, word: &str) {
    let bench = Bench::new(environment(fresh)).await;
    bench.provider.prepare().await.expect("prepared");
    let instance = bench.start(1).await.expect("started");
    assert_eq!(instance.facts.fresh, word);
    assert!(instance.facts.identity.starts_with("postgres "), "{}", instance.facts.identity);
    assert_eq!(instance.facts.identity.split("sha256:").nth(1).map(str::len), Some(12));
    assert!(!instance.facts.storage.is_empty() && instance.facts.storage != "unknown");
    let endpoint = instance.endpoint.clone();
    assert_eq!(
        text(&endpoint, Role::Owner, "SELECT current_user || ' ' || current_database()").await,
        "loadlab loadlab"
    );
    assert_eq!(text(&endpoint, Role::Admin, "SHOW listen_addresses").await, "");
    assert_eq!(text(&endpoint, Role::Admin, "SHOW data_checksums").await, "on");
    assert_eq!(text(&endpoint, Role::Admin, "SHOW fsync").await, "on");

    let session = Session::open(&endpoint, Role::Admin).await.expect("connection");
    let before = instance.running.usage().await;
    session
        .client
        .batch_execute(
            "CREATE TABLE t AS SELECT i, md5(i::text) FROM generate_series(1, 300000) i; CHECKPOINT",
        )
        .await
        .expect("work");
    let after = instance.running.usage().await;
    assert!(after.cpu_seconds > before.cpu_seconds, "{before:?} {after:?}");
    assert!(after.written_bytes > before.written_bytes, "{before:?} {after:?}");

    let exchange = instance.exchange.expect("exchange folder");
    let copy = format!("COPY t TO '{}/t.csv' (FORMAT csv)", exchange.server_dir);
    session.client.batch_execute(&copy).await.expect("the server writes the exchange folder");
    fs::write(exchange.client_dir.join("in.csv"), "1,a\n").expect("so does the client");
    let copy = format!("COPY t FROM '{}/in.csv' (FORMAT csv)", exchange.server_dir);
    session.client.batch_execute(&copy).await.expect("the server reads it");

    instance.running.stop().await.expect("stopped");
    assert_eq!(bench.trials(), 0, "nothing is left");
    assert!(bench.ledger.remaining().expect("list").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn overlay_starts_and_stops() {
    starts_and_stops(FreshMethod::Overlay, "overlay").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_starts_and_stops() {
    starts_and_stops(FreshMethod::Copy, "copy").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn initdb_starts_and_stops() {
    starts_and_stops(FreshMethod::Initdb, "initdb").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_start_is_fresh_and_cheap() {
    let bench = Bench::new(environment(FreshMethod::Auto)).await;
    bench.provider.prepare().await.expect("prepared");
    for trial in 1..=5 {
        let begin = Instant::now();
        let instance = bench.start(trial).await.expect("started");
        println!("start {trial}: {:?}", begin.elapsed());
        let tables = "SELECT count(*)::text FROM pg_tables WHERE schemaname = 'public'";
        assert_eq!(text(&instance.endpoint, Role::Owner, tables).await, "0");
        let session = Session::open(&instance.endpoint, Role::Admin).await.expect("connection");
        session.client.batch_execute("CREATE TABLE public.left_behind ()").await.expect("table");
        instance.running.stop().await.expect("stopped");
    }
    assert_eq!(bench.trials(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_is_not_root_and_its_folder_is_private() {
    let bench = Bench::new(environment(FreshMethod::Auto)).await;
    let instance = bench.start(1).await.expect("started");
    let Endpoint::Socket { directory, .. } = &instance.endpoint else { panic!("a socket") };
    let folder = fs::metadata(directory).expect("folder");
    assert_ne!(folder.uid(), 0);
    assert_eq!(folder.permissions().mode() & 0o777, 0o700);
    let program = "COPY (SELECT 1) TO PROGRAM 'id -u > /dev/stderr; id -u > ";
    let exchange = instance.exchange.as_ref().expect("exchange folder");
    let session = Session::open(&instance.endpoint, Role::Admin).await.expect("connection");
    session.client.batch_execute(&format!("{program}{}/id'", exchange.server_dir)).await.expect("ran");
    assert_ne!(fs::read_to_string(exchange.client_dir.join("id")).expect("id").trim(), "0");
    instance.running.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn by_address_only_loopback_listens_and_asks_for_the_password() {
    let mut spec = environment(FreshMethod::Auto);
    spec.connection = ConnectionPath::Address;
    let bench = Bench::new(spec).await;
    let instance = bench.start(1).await.expect("started");
    assert_eq!(instance.facts.connection, "address");
    assert_eq!(text(&instance.endpoint, Role::Owner, "SHOW listen_addresses").await, "127.0.0.1");
    let mut wrong = instance.endpoint.clone();
    let Endpoint::Tcp { password, .. } = &mut wrong else { panic!("TCP") };
    password.0 = "wrong".to_owned();
    assert!(Session::open(&wrong, Role::Owner).await.is_err());
    instance.running.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_settings_fail_at_once_with_the_line_of_the_log() {
    for (name, value, words) in [
        ("no_such_setting", Scalar::Bool(true), "unrecognized configuration parameter \"no_such_setting\""),
        ("shared_buffers", Scalar::Text("1 gb".to_owned()), "invalid value for parameter \"shared_buffers\""),
    ] {
        let mut spec = environment(FreshMethod::Auto);
        spec.settings.insert(name.to_owned(), value);
        let bench = Bench::new(spec).await;
        bench.provider.prepare().await.expect("prepared");
        let begin = Instant::now();
        let Err(error) = bench.start(1).await else { panic!("it must not start") };
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        assert!(matches!(error, EnvironmentError::NotReady { .. }));
        assert!(error.to_string().contains(words), "{error}");
        assert!(error.to_string().contains("exit code 1"), "{error}");
        assert_eq!(bench.trials(), 0);
        assert!(bench.ledger.remaining().expect("list").is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_and_cpus_are_in_force() {
    let mut spec = environment(FreshMethod::Auto);
    spec.settings.insert("autovacuum".to_owned(), Scalar::Bool(false));
    spec.settings.insert("max_wal_size".to_owned(), Scalar::Text("8GB".to_owned()));
    spec.settings.insert("port".to_owned(), Scalar::Int(1));
    spec.limits.cpuset = Some("0".to_owned());
    let bench = Bench::new(spec).await;
    let instance = bench.start(1).await.expect("a port of the experiment's does not count");
    assert_eq!(text(&instance.endpoint, Role::Admin, "SHOW autovacuum").await, "off");
    assert_eq!(text(&instance.endpoint, Role::Admin, "SHOW max_wal_size").await, "8GB");
    let cpus = "SELECT pg_read_file('/proc/self/status')";
    let status = text(&instance.endpoint, Role::Admin, cpus).await;
    assert!(status.contains("Cpus_allowed_list:\t0\n"), "{status}");
    instance.running.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runs_at_once_share_one_template() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let one = async {
        let bench = Bench::at(folder.path(), "one", environment(FreshMethod::Auto)).await;
        (bench.start(1).await.expect("started"), bench)
    };
    let two = async {
        let bench = Bench::at(folder.path(), "two", environment(FreshMethod::Auto)).await;
        (bench.start(1).await.expect("started"), bench)
    };
    let ((one, bench), (two, _other)) = tokio::join!(one, two);
    let id = "SELECT system_identifier::text FROM pg_control_system()";
    let same = text(&one.endpoint, Role::Admin, id).await;
    assert_eq!(same, text(&two.endpoint, Role::Admin, id).await);
    let templates = fs::read_dir(folder.path().join("templates")).expect("folder");
    let folders = templates.filter(|entry| entry.as_ref().is_ok_and(|entry| entry.path().is_dir())).count();
    assert_eq!(folders, 1);
    one.running.stop().await.expect("stopped");
    assert_eq!(text(&two.endpoint, Role::Owner, "SELECT 'alive'").await, "alive");
    two.running.stop().await.expect("stopped");
    assert_eq!(bench.trials(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_instance_is_ended_too() {
    let bench = Bench::new(environment(FreshMethod::Copy)).await;
    let instance = bench.start(1).await.expect("started");
    drop(instance);
    assert_eq!(bench.trials(), 0);
    assert!(bench.ledger.remaining().expect("list").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_diagnosed_and_its_rest_removed() {
    for fresh in [FreshMethod::Overlay, FreshMethod::Copy] {
        let bench = Bench::new(environment(fresh)).await;
        let instance = bench.start(1).await.expect("started");
        let things = bench.ledger.remaining().expect("list");
        let pid =
            things.iter().find_map(|t| if let Thing::Process { pid, .. } = t { Some(*pid) } else { None });
        let pid = pid.expect("a process").to_string();
        assert!(Command::new("kill").args(["-9", &pid]).status().expect("kill").success());
        tokio::time::sleep(Duration::from_millis(200)).await;
        let words = instance.running.diagnose().await.expect("words");
        assert!(words.contains("SIGKILL") && words.contains("ready to accept connections"), "{words}");
        instance.running.stop().await.expect("stopped");
        assert_eq!(bench.trials(), 0);
        assert!(processes(&bench.cache).is_empty());
        let segments = fs::read_to_string("/proc/sysvipc/shm").expect("segments");
        let made_by = |line: &str| line.split_whitespace().nth(4) == Some(&pid);
        assert!(!segments.lines().any(made_by), "{segments}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_doctor_finds_the_server_and_leaves_nothing() {
    let cache = tempfile::tempdir().expect("temporary folder");
    let report = doctor(cache.path()).await;
    println!("{report}");
    assert!(report.local(), "{report}");
    assert!(report.to_string().contains("template"), "{report}");
    for name in ["trials", "live"] {
        assert_eq!(fs::read_dir(cache.path().join(name)).map_or(0, Iterator::count), 0, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_the_server_cannot_reach_is_refused() {
    let closed = tempfile::tempdir().expect("temporary folder");
    fs::set_permissions(closed.path(), fs::Permissions::from_mode(0o700)).expect("mode");
    let bench = Bench::at(&closed.path().join("cache"), "run", environment(FreshMethod::Auto)).await;
    let outcome = bench.provider.prepare().await;
    if nix::unistd::geteuid().is_root() {
        let error = outcome.expect_err("only root can enter it").to_string();
        assert!(error.contains("cannot enter this folder") && error.contains("LOADLAB_CACHE"), "{error}");
    } else {
        outcome.expect("the server runs as this user");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_named_folder_is_the_only_one_taken() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let ledger = Ledger::open(folder.path(), "run").expect("ledger");
    let mut spec = environment(FreshMethod::Auto);
    spec.binaries = Some(folder.path().join("empty"));
    let Err(error) = LocalProvider::find(&spec, folder.path(), false, &ledger).await else {
        panic!("nothing there")
    };
    assert!(error.to_string().contains("it has no postgres"), "{error}");
}

/// Prints what the three ways cost; the ratio is asserted loosely, since machines are shared.
#[tokio::test(flavor = "multi_thread")]
async fn a_fresh_server_costs_a_fraction_of_initdb() {
    let bench = Bench::new(environment(FreshMethod::Auto)).await;
    bench.provider.prepare().await.expect("prepared");
    let ways = [FreshMethod::Initdb, FreshMethod::Copy, FreshMethod::Overlay];
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for trial in 0..5 {
        for (way, times) in ways.into_iter().zip(&mut times) {
            let mut environment = bench.spec.clone();
            environment.fresh = way;
            let begin = Instant::now();
            let launch = Launch { run_id: "run".to_owned(), trial, environment };
            let instance = bench.provider.start(&launch).await.expect("started");
            times.push(begin.elapsed());
            instance.running.stop().await.expect("stopped");
        }
    }
    let medians = times.map(|mut times| {
        times.sort();
        (times[times.len() / 2], times[0], times[times.len() - 1])
    });
    println!("zero to ready (median, min, max): initdb, copy, overlay: {medians:?}");
    assert!(medians[2].0 < medians[0].0 / 5, "{medians:?}");
}

/// Not a test of its own: the process that the tests below kill. Starts a server, says so and waits.
#[tokio::test(flavor = "multi_thread")]
async fn victim() {
    let Ok(text) = std::env::var(VICTIM) else { return };
    let (cache, fresh) = text.split_once('|').expect("cache|way");
    let fresh = if fresh == "copy" { FreshMethod::Copy } else { FreshMethod::Overlay };
    let bench = Bench::at(Path::new(cache), "victim", environment(fresh)).await;
    let reaper = std::env::var_os("LOADLAB_TEST_REAPER");
    let _reaper = reaper
        .map(|_| Reaper::start(Path::new(env!("CARGO_BIN_EXE_loadlab")), &bench.ledger).expect("reaper"));
    let _instance = bench.start(1).await.expect("started");
    println!("\nready");
    tokio::time::sleep(Duration::from_mins(1)).await;
}

/// Starts the process that is to be killed.
fn victim_in(cache: &Path, way: &str, with_reaper: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["server_local::victim", "--exact", "--nocapture", "--test-threads=1"]);
    command.env(VICTIM, format!("{}|{way}", cache.display())).stdout(Stdio::piped()).process_group(0);
    if with_reaper {
        command.env("LOADLAB_TEST_REAPER", "1");
    }
    command.spawn().expect("victim")
}

/// Kills its whole group, as Ctrl-C would signal it: server and reaper are not in it.
fn kill_group(mut victim: Child) {
    let group = format!("-{}", victim.id());
    assert!(Command::new("kill").args(["-KILL", "--", &group]).status().expect("kill").success());
    victim.wait().expect("gone");
}

/// Kills a process with a running server; returns the cache.
fn kill_a_run(way: &str, with_reaper: bool) -> tempfile::TempDir {
    let cache = tempfile::tempdir().expect("temporary folder");
    let mut victim = victim_in(cache.path(), way, with_reaper);
    let mut lines = BufReader::new(victim.stdout.take().expect("pipe")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line == "ready")), "the victim has a server");
    assert!(!processes(cache.path()).is_empty());
    kill_group(victim);
    cache
}

/// Processes whose command line or working folder lies in a folder.
fn processes(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("proc").flatten() {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let inside = fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        if inside || line.contains(&*folder.to_string_lossy()) {
            found.push(line);
        }
    }
    found
}

fn must_become_empty(cache: &Path) {
    let begin = Instant::now();
    loop {
        let count = |name: &str| fs::read_dir(cache.join(name)).map_or(0, Iterator::count);
        let (trials, live, left) = (count("trials"), count("live"), processes(cache));
        let mounts =
            fs::read_to_string("/proc/mounts").expect("mounts").matches(&*cache.to_string_lossy()).count();
        if trials + live + left.len() + mounts == 0 {
            println!("clean after {:?}", begin.elapsed());
            return;
        }
        assert!(
            begin.elapsed() < Duration::from_secs(10),
            "{trials} trials, {live} runs, {left:?}, {mounts} mounts"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn after_sigkill_the_reaper_leaves_nothing() {
    for way in ["overlay", "copy"] {
        let cache = kill_a_run(way, true);
        must_become_empty(cache.path());
        assert!(cache.path().join("templates").exists(), "the template stays");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_at_any_moment_leaves_nothing_after_the_next_start() {
    let cache = tempfile::tempdir().expect("temporary folder");
    let bench = Bench::at(cache.path(), "first", environment(FreshMethod::Auto)).await;
    bench.provider.prepare().await.expect("the template is there");
    drop(bench);
    for (round, way) in ["overlay", "copy"].into_iter().cycle().take(12).enumerate() {
        let folder = cache.path().to_owned();
        tokio::task::spawn_blocking(move || {
            let victim = victim_in(&folder, way, round % 3 == 0);
            std::thread::sleep(Duration::from_millis(15 + 25 * round as u64));
            kill_group(victim);
        })
        .await
        .expect("killed");
        let report = clean(cache.path()).await;
        assert!(report.failed.is_empty(), "{report}");
        must_become_empty(cache.path());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_sigkill_without_a_reaper_the_next_start_removes_it() {
    let cache = tokio::task::spawn_blocking(|| kill_a_run("overlay", false)).await.expect("killed");
    let foreign = cache.path().join("trials/foreign");
    fs::create_dir(&foreign).expect("folder");
    let report = clean(cache.path()).await;
    assert!(report.to_string().contains("removed folder"), "{report}");
    assert!(report.failed.is_empty(), "{report}");
    assert!(foreign.exists(), "what no ledger lists is not touched");
    fs::remove_dir(&foreign).expect("removed");
    must_become_empty(cache.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dismissed_reaper_ends() {
    let bench = Bench::new(environment(FreshMethod::Auto)).await;
    let reaper = Reaper::start(Path::new(env!("CARGO_BIN_EXE_loadlab")), &bench.ledger).expect("reaper");
    let instance = bench.start(1).await.expect("started");
    instance.running.stop().await.expect("stopped");
    let begin = Instant::now();
    reaper.finish(&bench.ledger);
    assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
}
