//! The container backend against a real engine.
//!
//! Where an engine must be there (`CI=true` or `LOADLAB_REQUIRE_DOCKER` set) its absence is a failure;
//! elsewhere each test says loudly that it proved nothing.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loadlab::engine::postgres::{Role, Session};
use loadlab::environment::container::{ContainerEngine, ContainerProvider, resolve};
use loadlab::environment::ledger::Ledger;
use loadlab::environment::{EnvironmentError, Instance, Launch, Provider};
use loadlab::model::{
    ConnectionPath, EnvironmentSpec, FreshMethod, InitOptions, Limits, Scalar, Storage, VersionRange,
};

pub(crate) const IMAGE: &str = "loadlab/postgres:15";

/// The engine, or `None` where the test may be left out.
pub(crate) async fn engine() -> Option<ContainerEngine> {
    match ContainerEngine::connect().await {
        Ok(engine) => {
            ensure_image();
            Some(engine)
        }
        Err(error) if required() => panic!("a container engine is required here: {error}"),
        Err(error) => {
            eprintln!("NOT TESTED, no container engine: {error}");
            None
        }
    }
}

fn required() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
        || std::env::var_os("LOADLAB_REQUIRE_DOCKER").is_some()
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|facts| facts.uid() == 0)
}

/// Builds the image once; several tests may ask at the same time.
fn ensure_image() {
    static BUILT: std::sync::Once = std::sync::Once::new();
    BUILT.call_once(|| {
        let present = Command::new("docker").args(["image", "inspect", IMAGE]).output().expect("docker runs");
        if !present.status.success() {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("environments/images/build.sh");
            let built = Command::new(script).arg("15").status().expect("build.sh runs");
            assert!(built.success(), "{IMAGE} could not be built");
        }
    });
}

/// Runs the docker command line and gives its output; panics when it fails.
pub(crate) fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker").args(arguments).output().expect("docker runs");
    assert!(output.status.success(), "docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

pub(crate) fn environment() -> EnvironmentSpec {
    EnvironmentSpec {
        name: "test".to_owned(),
        versions: VersionRange { min: 15, max: 15 },
        image: "postgres:15".to_owned(),
        binaries: None,
        block_size: None,
        builder: None,
        init: InitOptions::default(),
        settings: [("work_mem".to_owned(), Scalar::Text("7MB".to_owned()))].into_iter().collect(),
        limits: Limits::default(),
        storage: Storage::Layer,
        fresh: FreshMethod::Auto,
        connection: ConnectionPath::Socket,
        client_cpuset: None,
        url_variable: "LOADLAB_URL".to_owned(),
    }
}

/// Shared by the tests and kept between them, so that the cluster is baked once.
pub(crate) fn cache() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

/// Everything of one test: its run, its provider, its launches.
pub(crate) struct Bench {
    pub(crate) ledger: Arc<Ledger>,
    provider: ContainerProvider,
    pub(crate) environment: EnvironmentSpec,
    pub(crate) run_id: String,
}

impl Bench {
    pub(crate) async fn new(engine: &ContainerEngine, name: &str, environment: EnvironmentSpec) -> Self {
        let cache = cache();
        let run_id = format!("test-{name}-{}", std::process::id());
        let ledger = Ledger::open(&cache, &run_id).expect("ledger");
        let image = resolve(engine, &environment, true).await.expect("the image is there");
        let provider = ContainerProvider::new(engine.clone(), image, &environment, cache, &ledger);
        Self { ledger, provider, environment, run_id }
    }

    pub(crate) async fn try_start(&self, trial: u64) -> Result<Instance, EnvironmentError> {
        let launch = Launch { run_id: self.run_id.clone(), trial, environment: self.environment.clone() };
        self.provider.start(&launch).await
    }

    pub(crate) async fn start(&self, trial: u64) -> Instance {
        self.try_start(trial).await.expect("the server starts")
    }

    pub(crate) fn container(&self, trial: u64) -> String {
        format!("loadlab-{}-{trial}", self.run_id)
    }

    /// Nothing of this run is left, neither in the engine nor in the ledger.
    pub(crate) fn assert_nothing_left(&self) {
        let filter = format!("label=io.loadlab.run={}", self.run_id);
        assert_eq!(docker(&["ps", "-aq", "--filter", &filter]), "");
        assert_eq!(docker(&["volume", "ls", "-q", "--filter", &filter]), "");
        assert_eq!(self.ledger.remaining().expect("list"), []);
    }
}

pub(crate) async fn answer(instance: &Instance, query: &str) -> String {
    let session = Session::open(&instance.endpoint, Role::Admin).await.expect("connected");
    session.client.query_one(query, &[]).await.expect("answered").get(0)
}

fn inspected(name: &str, what: &str) -> String {
    docker(&["inspect", "--format", what, name])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_starts_with_the_settings_asked_for_and_leaves_nothing() {
    let Some(engine) = engine().await else { return };
    let bench = Bench::new(&engine, "start", environment()).await;
    bench.provider.prepare().await.expect("baked");
    let instance = bench.start(1).await;
    assert_eq!(answer(&instance, "SHOW work_mem").await, "7MB");
    assert_eq!(answer(&instance, "SHOW data_checksums").await, "on");
    assert_eq!(answer(&instance, "SHOW server_encoding").await, "UTF8");
    assert_eq!(
        answer(&instance, "SELECT datcollate::text FROM pg_database WHERE datname = current_database()")
            .await,
        "C"
    );
    // Durability is the server's default, never switched off behind the user's back.
    for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
        assert_eq!(answer(&instance, &format!("SHOW {setting}")).await, "on");
    }
    assert!(instance.facts.identity.starts_with("sha256:"));
    assert!(instance.facts.identity.ends_with(" loadlab/postgres:15"), "{}", instance.facts.identity);
    assert_eq!(instance.facts.fresh, "baked image");
    let owner = Session::open(&instance.endpoint, Role::Owner).await.expect("owner");
    let privileged: bool = owner
        .client
        .query_one("SELECT rolsuper FROM pg_roles WHERE rolname = current_user", &[])
        .await
        .expect("answered")
        .get(0);
    assert!(!privileged, "experiments run as a plain role");
    let before = instance.running.usage().await;
    assert!(before.cpu_seconds.expect("CPU time") > 0.0);
    let work = "CREATE TABLE t AS SELECT repeat('x', 1000) FROM generate_series(1, 20000)";
    owner.client.batch_execute(work).await.expect("loaded");
    let admin = Session::open(&instance.endpoint, Role::Admin).await.expect("admin");
    admin.client.batch_execute("CHECKPOINT").await.expect("flushed");
    let after = instance.running.usage().await;
    assert!(after.cpu_seconds > before.cpu_seconds);
    // Without root the processes of the server's user are not readable, and cgroup v1 may not count.
    match before.written_bytes.zip(after.written_bytes) {
        Some((before, after)) => {
            assert!(after - before > 20_000_000, "{before} {after}: 20 MB, log and table");
        }
        None => assert!(!is_root(), "root can tell"),
    }
    assert_eq!(instance.running.diagnose().await, None);
    instance.running.stop().await.expect("stopped");
    bench.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_password_is_neither_in_the_image_nor_readable_by_others() {
    use std::os::unix::fs::PermissionsExt;
    let Some(engine) = engine().await else { return };
    let bench = Bench::new(&engine, "secret", environment()).await;
    let instance = bench.start(1).await;
    let inspect = docker(&["inspect", &bench.container(1)]);
    let folder = cache().join("baked");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).expect("folder").flatten() {
        if entry.path().extension().is_none() {
            let secret = std::fs::read_to_string(entry.path()).expect("read");
            assert!(secret.len() >= 32 && !inspect.contains(&secret));
            assert_eq!(entry.metadata().expect("facts").permissions().mode() & 0o777, 0o600);
            seen += 1;
        }
    }
    assert!(seen > 0);
    instance.running.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_storage_holds_the_cluster_and_is_removed() {
    let Some(engine) = engine().await else { return };
    let place = tempfile::tempdir().expect("folder");
    let storages = [
        (Storage::Layer, "overlay"),
        (Storage::Volume, "ext|xfs|btrfs|overlay|zfs"),
        (Storage::Tmpfs, "tmpfs"),
        (Storage::Bind(place.path().to_owned()), "ext|xfs|btrfs|overlay|tmpfs|zfs"),
    ];
    for (trial, (storage, kinds)) in (1..).zip(storages) {
        let bench =
            Bench::new(&engine, &format!("storage{trial}"), EnvironmentSpec { storage, ..environment() })
                .await;
        let instance = bench.start(trial).await;
        let data = answer(&instance, "SHOW data_directory").await;
        let kind = docker(&["exec", &bench.container(trial), "stat", "-f", "-c", "%T", &data]);
        assert!(kinds.split('|').any(|known| kind.starts_with(known)), "{kind} is none of {kinds}");
        assert_eq!(answer(&instance, "SHOW work_mem").await, "7MB");
        instance.running.stop().await.expect("stopped");
        bench.assert_nothing_left();
    }
    assert_eq!(std::fs::read_dir(place.path()).expect("folder").count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_connection_path_works_and_none_is_public() {
    let Some(engine) = engine().await else { return };
    for (trial, connection) in
        (1..).zip([ConnectionPath::Socket, ConnectionPath::Address, ConnectionPath::Published])
    {
        let bench =
            Bench::new(&engine, &format!("path{trial}"), EnvironmentSpec { connection, ..environment() })
                .await;
        let instance = bench.start(trial).await;
        let name = bench.container(trial);
        assert_eq!(answer(&instance, "SELECT current_database()::text").await, "loadlab");
        let ports = inspected(&name, "{{json .NetworkSettings.Ports}}");
        assert!(!ports.contains("0.0.0.0") && !ports.contains("::"), "{ports}");
        assert_eq!(ports.contains("127.0.0.1"), connection == ConnectionPath::Published, "{ports}");
        let network = inspected(&name, "{{.HostConfig.NetworkMode}}");
        assert_eq!(network == "none", connection == ConnectionPath::Socket, "{network}");
        instance.running.stop().await.expect("stopped");
        bench.assert_nothing_left();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_in_force() {
    let Some(engine) = engine().await else { return };
    let limits = Limits {
        cpus: Some(0.5),
        cpuset: Some("0".to_owned()),
        memory_bytes: Some(512 << 20),
        shared_memory_bytes: Some(128 << 20),
    };
    let bench = Bench::new(&engine, "limits", EnvironmentSpec { limits, ..environment() }).await;
    let instance = bench.start(1).await;
    let name = bench.container(1);
    let seen = inspected(
        &name,
        "{{.HostConfig.NanoCpus}} {{.HostConfig.CpusetCpus}} {{.HostConfig.Memory}} {{.HostConfig.ShmSize}}",
    );
    assert_eq!(seen, "500000000 0 536870912 134217728");
    assert_eq!(docker(&["exec", &name, "nproc"]), "1");
    // Either version of cgroups.
    let script = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; \
                  df -k --output=size /dev/shm | tail -n 1";
    let shown = docker(&["exec", &name, "sh", "-c", script]);
    assert_eq!(shown.split_whitespace().collect::<Vec<_>>(), ["536870912", "131072"]);
    assert_eq!(instance.facts.cpuset.as_deref(), Some("0"));
    instance.running.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn running_out_of_memory_is_named() {
    let Some(engine) = engine().await else { return };
    let limits = Limits { memory_bytes: Some(96 << 20), ..Limits::default() };
    let mut environment = EnvironmentSpec { limits, ..environment() };
    environment.settings.insert("work_mem".to_owned(), Scalar::Text("2GB".to_owned()));
    environment.settings.insert("shared_buffers".to_owned(), Scalar::Text("16MB".to_owned()));
    let bench = Bench::new(&engine, "oom", environment).await;
    let instance = bench.start(1).await;
    let session = Session::open(&instance.endpoint, Role::Owner).await.expect("connected");
    let hungry = "SELECT cardinality(array_agg(repeat('x', 1000) || n)) FROM generate_series(1, 400000) n";
    assert!(session.client.query_one(hungry, &[]).await.is_err(), "the query cannot be answered in 96 MiB");
    let words = instance.running.diagnose().await.expect("a diagnosis");
    assert!(words.starts_with("out of memory"), "{words}");
    instance.running.stop().await.expect("stopped");
    bench.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_starts_in_a_row_meet_no_reset() {
    let Some(engine) = engine().await else { return };
    let bench = Bench::new(&engine, "row", environment()).await;
    for trial in 1..=20 {
        let instance = bench.start(trial).await;
        let session = Session::open(&instance.endpoint, Role::Owner).await.expect("no reset after ready");
        for _ in 0..5 {
            session.client.batch_execute("SELECT 1").await.expect("no reset after ready");
        }
        instance.running.stop().await.expect("stopped");
    }
    bench.assert_nothing_left();
}

/// Builds an image over ours with one more file in `/docker-entrypoint-initdb.d`.
fn derived_image(tag: &str, file: &str, script: &str) {
    let folder = tempfile::tempdir().expect("folder");
    std::fs::write(folder.path().join(file), script).expect("script");
    let dockerfile = format!("FROM {IMAGE}\nCOPY {file} /docker-entrypoint-initdb.d/{file}\n");
    std::fs::write(folder.path().join("Dockerfile"), dockerfile).expect("Dockerfile");
    docker(&["build", "-q", "-t", tag, &folder.path().display().to_string()]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_trial_reaches_the_temporary_server() {
    let Some(engine) = engine().await else { return };
    let tag = format!("loadlab/test-slow:{}", std::process::id());
    derived_image(&tag, "slow.sql", "CREATE TABLE made_by_script (n int); SELECT pg_sleep(3);");
    let bench = Bench::new(&engine, "slow", EnvironmentSpec { image: tag.clone(), ..environment() }).await;
    let start = Instant::now();
    bench.provider.prepare().await.expect("baked");
    assert!(start.elapsed() > Duration::from_secs(3), "the script ran while the image was baked");
    let start = Instant::now();
    for trial in 1..=3 {
        let instance = bench.start(trial).await;
        // The script's three seconds are not part of a trial, its table is.
        let session = Session::open_maintenance(&instance.endpoint).await.expect("connected");
        session.client.batch_execute("SELECT * FROM made_by_script").await.expect("the table is there");
        instance.running.stop().await.expect("stopped");
    }
    assert!(start.elapsed() < Duration::from_secs(9), "{:?}", start.elapsed());
    bench.assert_nothing_left();
    let baked = docker(&["images", "-q", "--filter", &format!("since={tag}"), "loadlab/baked"]);
    for image in baked.lines().take(1) {
        docker(&["rmi", "-f", image]);
    }
    docker(&["rmi", "-f", &tag]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_cannot_be_made_is_told_with_its_log() {
    let Some(engine) = engine().await else { return };
    let tag = format!("loadlab/test-broken:{}", std::process::id());
    derived_image(&tag, "broken.sql", "SELECT nonsense_that_does_not_exist;");
    let bench = Bench::new(&engine, "broken", EnvironmentSpec { image: tag.clone(), ..environment() }).await;
    let error = bench.provider.prepare().await.expect_err("the script fails");
    assert!(error.to_string().contains("nonsense_that_does_not_exist"), "{error}");
    bench.assert_nothing_left();
    docker(&["rmi", "-f", &tag]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_its_settings_fails_at_once() {
    let Some(engine) = engine().await else { return };
    let mut environment = environment();
    environment.settings.insert("shared_buffers".to_owned(), Scalar::Text("nonsense".to_owned()));
    let bench = Bench::new(&engine, "refuses", environment).await;
    bench.provider.prepare().await.expect("baked");
    let start = Instant::now();
    let Err(error) = bench.try_start(1).await else { panic!("the setting is not valid") };
    assert!(error.to_string().contains("invalid value for parameter \"shared_buffers\""), "{error}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    bench.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_image_is_told_at_once_when_offline() {
    let Some(engine) = engine().await else { return };
    let environment = EnvironmentSpec { image: "loadlab/never-made:1".to_owned(), ..environment() };
    let start = Instant::now();
    let error = resolve(&engine, &environment, true).await.expect_err("there is no such image");
    let words = error.to_string();
    assert!(words.contains("loadlab/never-made:1") && words.contains("--offline"), "{words}");
    assert!(words.contains("what to do: docker pull"), "{words}");
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_that_is_repeated_replaces_what_a_kill_left() {
    let Some(engine) = engine().await else { return };
    let bench = Bench::new(&engine, "again", environment()).await;
    bench.provider.prepare().await.expect("baked");
    let leftover = bench.container(1);
    let label = format!("io.loadlab.run={}", bench.run_id);
    docker(&["run", "-d", "--name", &leftover, "--label", &label, "--entrypoint", "sleep", IMAGE, "99"]);
    let instance = bench.start(1).await;
    assert_eq!(answer(&instance, "SHOW work_mem").await, "7MB");
    instance.running.stop().await.expect("stopped");

    // The same name without our label: somebody else's.
    docker(&["run", "-d", "--name", &leftover, "--entrypoint", "sleep", IMAGE, "99"]);
    let error = bench.try_start(1).await.map(drop).expect_err("the name is taken");
    assert!(error.to_string().contains("is not ours"), "{error}");
    assert_eq!(inspected(&leftover, "{{.State.Running}}"), "true");
    docker(&["rm", "-fv", &leftover]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abandoned_start_is_removed_in_the_background() {
    let Some(engine) = engine().await else { return };
    let bench = Bench::new(&engine, "abandoned", environment()).await;
    bench.provider.prepare().await.expect("baked");
    let cancelled = tokio::time::timeout(Duration::from_millis(120), bench.try_start(1)).await;
    if let Ok(Ok(instance)) = cancelled {
        instance.running.stop().await.expect("stopped");
    }
    let start = Instant::now();
    while !bench.ledger.remaining().expect("list").is_empty() {
        assert!(start.elapsed() < Duration::from_secs(20), "{:?}", bench.ledger.remaining());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_exchanged_with_the_server() {
    let Some(engine) = engine().await else { return };
    let bench = Bench::new(&engine, "exchange", environment()).await;
    let instance = bench.start(1).await;
    let exchange = instance.exchange.as_ref().expect("a folder");
    std::fs::write(exchange.client_dir.join("rows"), "1\n2\n").expect("written");
    let session = Session::open(&instance.endpoint, Role::Admin).await.expect("connected");
    let server = &exchange.server_dir;
    let copy = format!("CREATE TABLE t (n int); COPY t FROM '{server}/rows'; COPY t TO '{server}/back'");
    session.client.batch_execute(&copy).await.expect("copied");
    let back = std::fs::read_to_string(exchange.client_dir.join("back")).expect("read");
    assert_eq!(back, "1\n2\n");
    instance.running.stop().await.expect("stopped");
    bench.assert_nothing_left();
}
