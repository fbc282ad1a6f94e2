//! Clean-up of what dead runs left in a container engine; needs one.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::models::VolumeCreateRequest;
use loadlab::environment::clean::clean;
use loadlab::environment::engine::{OWNER_LABEL, RUN_LABEL};
use loadlab::environment::ledger::{Ledger, Owner, Thing};
use loadlab::environment::reaper::Reaper;

async fn volume(docker: &Docker, name: &str, labels: &[(&str, &str)]) {
    let labels: HashMap<String, String> =
        labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let request = VolumeCreateRequest {
        name: Some(name.to_owned()),
        labels: Some(labels),
        ..VolumeCreateRequest::default()
    };
    docker.create_volume(request).await.expect("volume");
}

async fn exists(docker: &Docker, name: &str) -> bool {
    docker.inspect_volume(name).await.is_ok()
}

/// An owner of this boot that is gone.
fn dead_owner() -> String {
    let this = Owner::this().to_string();
    let mut parts = this.splitn(3, ':');
    let pid = parts.next().expect("pid");
    format!("{pid}:1:{}", parts.nth(1).expect("boot"))
}

#[tokio::test(flavor = "multi_thread")]
async fn only_volumes_of_dead_runs_are_removed() {
    let docker = Docker::connect_with_defaults().expect("a container engine");
    let cache = tempfile::tempdir().expect("temporary folder");
    let name = |kind: &str| format!("loadlab-test-{kind}-{}", std::process::id());
    let (dead, live, foreign) = (name("dead"), name("live"), name("of-others"));
    volume(&docker, &dead, &[(RUN_LABEL, "r"), (OWNER_LABEL, &dead_owner())]).await;
    volume(&docker, &live, &[(RUN_LABEL, "r"), (OWNER_LABEL, &Owner::this().to_string())]).await;
    volume(&docker, &foreign, &[]).await;
    // Every run that starts cleans up first, so another test's run may be faster: then once more.
    let mut report = clean(cache.path()).await;
    for _ in 0..20 {
        if report.removed.contains(&format!("volume {dead}")) {
            break;
        }
        volume(&docker, &dead, &[(RUN_LABEL, "r"), (OWNER_LABEL, &dead_owner())]).await;
        report = clean(cache.path()).await;
    }
    assert!(report.removed.contains(&format!("volume {dead}")), "{report}");
    assert!(!exists(&docker, &dead).await);
    for name in [&live, &foreign] {
        assert!(exists(&docker, name).await, "{name} is not to be touched");
        docker
            .remove_volume(name, None::<bollard::query_parameters::RemoveVolumeOptions>)
            .await
            .expect("removed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reaper_removes_listed_volumes() {
    let docker = Docker::connect_with_defaults().expect("a container engine");
    let cache = tempfile::tempdir().expect("temporary folder");
    let name = format!("loadlab-test-listed-{}", std::process::id());
    let ledger = Ledger::open(cache.path(), "run").expect("ledger");
    let reaper = Reaper::start(Path::new(env!("CARGO_BIN_EXE_loadlab")), &ledger).expect("reaper");
    ledger.record(&Thing::Container("loadlab-test-never-made".to_owned())).expect("recorded");
    ledger.record(&Thing::Volume(name.clone())).expect("recorded");
    volume(&docker, &name, &[]).await;
    // Something is left, so the reaper is not dismissed; the lock goes with the ledger.
    let live = ledger.folder().to_owned();
    reaper.finish(&ledger);
    assert!(live.exists());
    drop(ledger);
    let begin = Instant::now();
    while live.exists() || exists(&docker, &name).await {
        assert!(begin.elapsed() < Duration::from_secs(10), "the reaper removes it");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
