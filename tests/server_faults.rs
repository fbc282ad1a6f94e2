//! Hard kills, engines that hang or die, and what clean-up must leave alone.
//!
//! A fault hits a process of its own: this binary again, running one of the `child_*` functions, which do
//! nothing unless their variable is set.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use loadlab::environment::clean::clean;
use loadlab::environment::container::ContainerEngine;
use tokio::net::{UnixListener, UnixStream};

use crate::server_container::{Bench, docker, engine, environment};

const CHILD: &str = "LOADLAB_TEST_CHILD";

/// Starts this binary again with one test, to be harmed.
fn child(test: &str, variables: &[(&str, &str)]) -> Child {
    Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", &format!("server_faults::{test}"), "--nocapture"])
        .env(CHILD, "1")
        .envs(variables.iter().copied())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the child starts")
}

fn is_child() -> bool {
    std::env::var_os(CHILD).is_some()
}

/// Reads the child's output up to a line that starts with `word`, and gives the rest of that line.
fn line_with(lines: &mut impl Iterator<Item = std::io::Result<String>>, word: &str) -> String {
    lines
        .map_while(Result::ok)
        .find_map(|line| line.split_once(word).map(|(_, rest)| rest.trim().to_owned()))
        .unwrap_or_else(|| panic!("the child never said {word}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn child_that_is_killed() {
    if !is_child() {
        return;
    }
    let engine = engine().await.expect("an engine");
    let mut environment = environment();
    environment.storage = loadlab::model::Storage::Volume;
    let bench = Bench::new(&engine, "killed", environment).await;
    let _instance = bench.start(1).await;
    println!("STARTED {}", bench.container(1));
    tokio::time::sleep(Duration::from_mins(2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_hard_kill_clean_removes_ours_and_nothing_else() {
    let Some(_engine) = engine().await else { return };
    let foreign = format!("foreign-{}", std::process::id());
    docker(&[
        "run",
        "-d",
        "--name",
        &foreign,
        "--entrypoint",
        "sleep",
        crate::server_container::IMAGE,
        "120",
    ]);
    docker(&["volume", "create", &foreign]);

    let mut child = child("child_that_is_killed", &[]);
    let mut lines = BufReader::new(child.stdout.take().expect("output")).lines();
    let name = line_with(&mut lines, "STARTED ");
    child.kill().expect("killed");
    child.wait().expect("gone");
    assert_eq!(
        docker(&["ps", "-q", "--filter", &format!("name={name}")]).lines().count(),
        1,
        "it leaks first"
    );

    let report = clean(&crate::server_container::cache()).await;
    assert!(report.failed.is_empty(), "{report}");
    let words = report.to_string();
    assert!(words.contains(&name) && words.contains(&format!("{name}-data")), "{words}");
    assert_eq!(docker(&["ps", "-aq", "--filter", &format!("name={name}")]), "");
    assert_eq!(docker(&["volume", "ls", "-q", "--filter", &format!("name={name}")]), "");
    assert_eq!(docker(&["ps", "-q", "--filter", &format!("name={foreign}")]).lines().count(), 1);
    assert_eq!(docker(&["volume", "ls", "-q", "--filter", &format!("name={foreign}")]), foreign);
    docker(&["rm", "-fv", &foreign]);
    docker(&["volume", "rm", &foreign]);
}

#[tokio::test(flavor = "multi_thread")]
async fn child_without_an_engine() {
    if !is_child() {
        return;
    }
    let start = Instant::now();
    let error = ContainerEngine::connect().await.expect_err("nobody answers");
    println!("SAID {} ms: {}", start.elapsed().as_millis(), error.to_string().replace('\n', " "));
}

/// What a process says whose `DOCKER_HOST` is this socket, and after how many milliseconds.
fn said_without_an_engine(socket: &Path) -> (u64, String) {
    let host = format!("unix://{}", socket.display());
    let mut child = child("child_without_an_engine", &[("DOCKER_HOST", &host)]);
    let mut lines = BufReader::new(child.stdout.take().expect("output")).lines();
    let said = line_with(&mut lines, "SAID ");
    child.wait().expect("gone");
    let (time, words) = said.split_once(" ms: ").expect("time and words");
    (time.parse().expect("a number"), words.to_owned())
}

#[test]
fn no_engine_is_told_within_two_seconds() {
    let folder = tempfile::tempdir().expect("folder");
    let (time, words) = said_without_an_engine(&folder.path().join("absent.sock"));
    assert!(time < 2000, "{time} ms");
    assert!(words.contains("no container engine answers at DOCKER_HOST="), "{words}");
    assert!(words.contains("what to do:") && words.contains("--on local"), "{words}");
}

#[test]
fn an_engine_that_hangs_is_told_within_two_seconds() {
    let folder = tempfile::tempdir().expect("folder");
    let socket = folder.path().join("silent.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("socket");
    let (time, words) = said_without_an_engine(&socket);
    assert!(time < 2000, "{time} ms");
    assert!(words.contains("no answer"), "{words}");
}

/// Forwards connections to the engine until it is dropped: an engine that can be killed.
struct Proxy(tokio::task::JoinHandle<()>);

impl Proxy {
    fn open(socket: &Path) -> Self {
        let listener = UnixListener::bind(socket).expect("socket");
        Self(tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (mut client, _) = listener.accept().await.expect("accepted");
                connections.spawn(async move {
                    let mut real = UnixStream::connect("/var/run/docker.sock").await.expect("the engine");
                    drop(tokio::io::copy_bidirectional(&mut client, &mut real).await);
                });
            }
        }))
    }

    async fn kill(self) {
        self.0.abort();
        drop(self.0.await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn child_whose_engine_dies() {
    if !is_child() {
        return;
    }
    let host = std::env::var("DOCKER_HOST").expect("set by the parent");
    let proxy = Proxy::open(Path::new(host.trim_start_matches("unix://")));
    let engine = ContainerEngine::connect().await.expect("an engine");
    let bench = Bench::new(&engine, "dies", environment()).await;
    let instance = bench.start(1).await;
    proxy.kill().await;
    let start = Instant::now();
    let next = bench.try_start(2).await.map(drop).expect_err("no engine");
    let words = instance.running.diagnose().await.expect("a diagnosis");
    let stopped = instance.running.stop().await.expect_err("no engine");
    let left = bench.ledger.remaining().expect("list").len();
    println!("SAID {} ms: {left} left; {next}; {words}; {stopped}", start.elapsed().as_millis());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_engine_is_an_error_and_not_a_hang() {
    let Some(_engine) = engine().await else { return };
    if !Path::new("/var/run/docker.sock").exists() {
        eprintln!("NOT TESTED, the engine has no socket to put a proxy before");
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let host = format!("unix://{}/engine.sock", folder.path().display());
    let mut child = child("child_whose_engine_dies", &[("DOCKER_HOST", &host)]);
    let mut lines = BufReader::new(child.stdout.take().expect("output")).lines();
    let said = line_with(&mut lines, "SAID ");
    child.wait().expect("gone");
    let (time, words) = said.split_once(" ms: ").expect("time and words");
    assert!(time.parse::<u64>().expect("a number") < 10_000, "{said}");
    assert!(words.contains("the container engine is in trouble"), "{words}");
    // The server that could not be removed is in the ledger, and the next start removes it.
    let report = clean(&crate::server_container::cache()).await;
    assert!(report.to_string().contains("container loadlab-test-dies-"), "{report}");
    assert!(report.failed.is_empty(), "{report}");
}
