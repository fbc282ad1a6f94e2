//! Fetching PostgreSQL through the package clients of this machine, and a trial on what they carry.

use std::fs;

use loadlab::environment::install::install;
use loadlab::environment::ledger::Ledger;
use loadlab::environment::local::LocalProvider;
use loadlab::environment::{Launch, Provider};
use loadlab::model::{Checksums, FreshMethod, VersionRange};

use crate::server_local::environment;

async fn installs_and_starts(major: u32) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let ledger = Ledger::open(folder.path(), "install").expect("ledger");
    let installed = install(major, None, folder.path(), false, &ledger).await.expect("installed");
    println!("{installed} {:?} {:?}", installed.library_path, installed.tools);
    assert_eq!(installed.major, major);
    assert!(ledger.remaining().expect("list").is_empty());
    let names = fs::read_dir(folder.path().join("servers")).expect("folder");
    assert_eq!(
        names.filter(|name| name.as_ref().is_ok_and(|n| n.path().is_dir())).count(),
        1,
        "no scratch folder"
    );

    let mut spec = environment(FreshMethod::Auto);
    spec.versions = VersionRange { min: major, max: major };
    spec.init.checksums = Checksums::Off;
    let (provider, why) =
        LocalProvider::find(&spec, folder.path(), true, &ledger).await.expect("found in the cache");
    println!("{why}");
    let launch = Launch { run_id: "install".to_owned(), trial: 1, environment: spec };
    let instance = provider.start(&launch).await.expect("started");
    println!("{}", instance.facts.identity);
    instance.running.stop().await.expect("stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn version_17_is_fetched_and_starts() {
    installs_and_starts(17).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn version_18_is_fetched_and_starts() {
    installs_and_starts(18).await;
}
