//! Zero to the first answered query: loadlab's fresh server against initdb and start, and against
//! starting the same image with an empty volume.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use loadlab::engine::postgres::{Endpoint, Secret};
use loadlab::environment::choose::{Choice, On, choose};
use loadlab::environment::ledger::Ledger;
use loadlab::environment::local::LocalProvider;
use loadlab::environment::{Launch, Provider};
use loadlab::model::Backend;

use super::{PATIENCE, Promise, cache, environment, milliseconds, paired};

const ROUNDS: usize = 9;

pub(super) async fn zero_to_answer() -> Vec<Promise> {
    let ledger = Ledger::open(&cache(), "bench-start").unwrap();
    let mut promises = vec![local(&ledger).await];
    promises.extend(container(&ledger).await);
    promises
}

async fn local(ledger: &Arc<Ledger>) -> Promise {
    let (provider, _) = LocalProvider::find(&environment(), &cache(), true, ledger).await.unwrap();
    provider.prepare().await.unwrap();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        theirs.push(initdb_and_start(&provider.binaries().folder, round).await);
        ours.push(fresh(&provider, round).await);
    }
    Promise {
        what: "zero to first answer, local: ratio to initdb + start".to_owned(),
        measured: paired(&ours, &theirs),
        at_most: 0.1,
        detail: format!(
            "{}; {}",
            milliseconds("fresh server", &ours),
            milliseconds("initdb + start", &theirs)
        ),
    }
}

async fn fresh(provider: &dyn Provider, round: usize) -> f64 {
    let launch = Launch { run_id: "bench-start".to_owned(), trial: round as u64, environment: environment() };
    let start = Instant::now();
    let instance = provider.start(&launch).await.unwrap();
    let seconds = start.elapsed().as_secs_f64();
    instance.running.stop().await.unwrap();
    seconds
}

/// A command as an unprivileged user where this process is root.
fn unprivileged(program: &Path) -> Command {
    if !nix::unistd::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups", "--"]).arg(program);
    command
}

async fn initdb_and_start(binaries: &Path, round: usize) -> f64 {
    let folder = tempfile::Builder::new().prefix("loadlab-bench").tempdir().unwrap();
    if let Some(user) =
        nix::unistd::User::from_name("postgres").unwrap().filter(|_| nix::unistd::geteuid().is_root())
    {
        nix::unistd::chown(folder.path(), Some(user.uid), Some(user.gid)).unwrap();
    }
    let data: PathBuf = folder.path().join(format!("data{round}"));
    let start = Instant::now();
    let options =
        ["--locale=C", "--encoding=UTF8", "--data-checksums", "--auth=trust", "--username=postgres", "-D"];
    let done = unprivileged(&binaries.join("initdb")).args(options).arg(&data).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut server = unprivileged(&binaries.join("postgres"));
    server.arg("-D").arg(&data).args(["-c", "listen_addresses=", "-k"]).arg(folder.path());
    let mut server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    answered(&Endpoint::Socket { directory: folder.path().to_owned(), port: 5432, password: None }, start)
        .await;
    let seconds = start.elapsed().as_secs_f64();
    stop(&mut server);
    seconds
}

/// The first answer to a query in the database `postgres`: a plain cluster has no other.
async fn answered(endpoint: &Endpoint, start: Instant) {
    while start.elapsed() < PATIENCE {
        if let Ok(session) = loadlab::engine::postgres::Session::open_maintenance(endpoint).await
            && session.client.query_one("SELECT 1", &[]).await.is_ok()
        {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("the reference server did not answer");
}

fn stop(server: &mut Child) {
    let id = nix::unistd::Pid::from_raw(i32::try_from(server.id()).unwrap());
    nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGQUIT).unwrap();
    server.wait().unwrap();
}

async fn container(ledger: &Arc<Ledger>) -> Option<Promise> {
    let choice = Choice { on: On::Container, offline: true, cache: cache(), earlier: None };
    let chosen = match choose(&environment(), &choice, ledger).await {
        Ok(chosen) => chosen,
        Err(error) => {
            println!("SKIPPED: container start, since {error}");
            return None;
        }
    };
    let provider = chosen.provider;
    assert_eq!(provider.backend(), Backend::Container);
    provider.prepare().await.unwrap();
    let image = image();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        theirs.push(empty_volume(&image).await);
        ours.push(fresh(provider.as_ref(), round).await);
    }
    Some(Promise {
        what: "zero to first answer, container: ratio to an empty volume".to_owned(),
        measured: paired(&ours, &theirs),
        at_most: 0.3,
        detail: format!(
            "{}; {}",
            milliseconds("fresh container", &ours),
            milliseconds("same image, empty volume", &theirs)
        ),
    })
}

/// The image that the environment gets here: the official one or our own.
fn image() -> String {
    let listed = docker(&["images", "--format", "{{.Repository}}:{{.Tag}}"]);
    let mut images: Vec<&str> = listed
        .lines()
        .filter(|name| name.starts_with("postgres:") || name.starts_with("loadlab/postgres:"))
        .collect();
    images.sort_unstable();
    images.pop().expect("the provider found an image").to_owned()
}

async fn empty_volume(image: &str) -> f64 {
    let start = Instant::now();
    let id = docker(&["run", "-d", "-e", "POSTGRES_PASSWORD=bench", "--label", "io.loadlab.bench=1", image]);
    let id = id.trim();
    let host = docker(&["inspect", "-f", "{{.NetworkSettings.IPAddress}}", id]).trim().to_owned();
    answered(&Endpoint::Tcp { host, port: 5432, password: Secret("bench".to_owned()) }, start).await;
    let seconds = start.elapsed().as_secs_f64();
    docker(&["rm", "-fv", id]);
    seconds
}

fn docker(arguments: &[&str]) -> String {
    let output = Command::new("docker").args(arguments).output().unwrap();
    assert!(output.status.success(), "docker {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
