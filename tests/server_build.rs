//! Servers with blocks of other sizes: building them, finding them, and never taking one for another.
//!
//! Compiling takes minutes, so no test does it. The way of a build is walked with a source whose `make install` puts
//! this machine's own server into place; what real builds can do is tested where some are in the cache.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use loadlab::environment::discover::{Binaries, discover};
use loadlab::environment::doctor::cache_folder;
use loadlab::model::{Builder, Guard, Outcome, block_size_words};

use crate::lab::{Lab, Server, step};

async fn servers(cache: &Path) -> Vec<Binaries> {
    discover(None, cache).await.unwrap().usable
}

/// A source folder that "compiles" to a server of this machine.
fn pretended_source(lab: &Lab, server: &Binaries) -> PathBuf {
    let parts = include_str!("../src/environment/build/mod.rs")
        .lines()
        .filter_map(|line| line.trim().strip_prefix("\"src/")?.strip_suffix("\","));
    let parts = parts.map(|part| format!("src/{part}")).collect::<Vec<_>>().join(" ");
    let bin = server.folder.display();
    let install = format!(
        "set -e\nmkdir -p $1/bin\ncp {bin}/postgres {bin}/initdb {bin}/pg_c* $1/bin\n\
         for part in lib share; do test ! -e {bin}/../$part || ln -s {bin}/../$part $1/$part; done\n"
    );
    let install = lab.write("source/install.sh", &install);
    let script = format!(
        "#!/bin/sh\nPACKAGE_NAME='PostgreSQL'\nPACKAGE_VERSION='{}'\n\
         for option; do case $option in --prefix=*) prefix=${{option#--prefix=}};; esac; done\n\
         for part in {parts}; do mkdir -p $part; printf 'all generated-headers install:\\n\\t@:\\n' > $part/Makefile; done\n\
         printf 'all generated-headers:\\n\\t@:\\ninstall:\\n\\tsh {} $(DESTDIR)%s\\n' $prefix > src/backend/Makefile\n",
        server.version,
        install.display()
    );
    let path = lab.write("source/configure", &script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    lab.folder().join("source")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_is_tried_out_found_and_not_made_twice() {
    let lab = Lab::bare();
    let Some(system) = servers(lab.cache()).await.into_iter().next() else {
        panic!("no server on this machine")
    };
    let source = pretended_source(&lab, &system).display().to_string();
    let words = ["env", "build", "--block-size", "8kB", "--source", &source];
    let said = lab.loadlab(&words).ended_with(0);
    assert!(
        said.stderr.contains("configuring PostgreSQL") && said.stderr.contains("trying it out"),
        "{}",
        said.stderr
    );
    assert!(said.stdout.contains("(built by loadlab)"), "{}", said.stdout);
    let again = lab.loadlab(&words).ended_with(0);
    assert!(
        again.stderr.contains("is there already") && !again.stderr.contains("configuring"),
        "{}",
        again.stderr
    );
    let list = lab.loadlab(&["env", "list"]).ended_with(0).stdout;
    assert!(list.contains("(built by loadlab)"), "{list}");
    assert!(servers(lab.cache()).await.iter().any(|server| server.builder == Builder::Loadlab));

    // What the machine's server really has is noticed, whatever was asked for.
    let wrong = lab.loadlab(&["env", "build", "--block-size", "4kB", "--source", &source]).ended_with(3);
    wrong.complained(&["its blocks have 8kB instead of 4kB"]);
    let names: Vec<String> = fs::read_dir(lab.cache().join("servers"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| Path::new(name).extension().is_none_or(|kind| kind != "log"))
        .collect();
    assert_eq!(names, [format!("built-{}-8kB", system.version)], "nothing else is left");
}

#[test]
fn mistakes_of_the_command_line_are_told_before_anything_is_made() {
    let lab = Lab::bare();
    for size in ["12kB", "64kB", "4", "big"] {
        let said = lab.loadlab(&["env", "build", "--block-size", size]).ended_with(2);
        said.complained(&["--block-size"]);
    }
    lab.loadlab(&["env", "install", "17", "--from", "apt"])
        .ended_with(2)
        .complained(&["none of archive, npm, pip"]);
    let missing = ["env", "build", "--block-size", "4kB", "--source", "nowhere"];
    lab.loadlab(&missing).ended_with(3).complained(&["nowhere: No such file", "--source"]);
    lab.write("empty/README", "");
    let empty = ["env", "build", "--block-size", "4kB", "--source", "empty"];
    lab.loadlab(&empty).ended_with(3).complained(&["no source of PostgreSQL", "archive unpacks to"]);
    let bare = Lab::bare().variable("PATH", "/nowhere");
    bare.loadlab(&missing).ended_with(3).complained(&["a C compiler, make", "is missing", "build-essential"]);
}

/// An experiment over block sizes.
fn over_sizes(sizes: &[&str], more: &str) -> String {
    format!(
        "experiment: sizes\nquestion: Does it run?\n{more}\ndesign: {{factors: {{block_size: [{}]}}, blocks: 1}}\n\
         server: {{block_size: '{{{{ block_size }}}}'}}\n\
         tables:\n  t: {{ddl: 'CREATE TABLE t (id bigint PRIMARY KEY, name text)', rows: 2000}}\n\
         steps:\n  - create: t\n  - load: {{name: load, table: t, method: copy}}\n",
        sizes.join(", ")
    )
}

#[test]
fn a_container_refuses_another_block_size_with_the_remedy() {
    let lab = Lab::bare();
    lab.experiment(&over_sizes(&["16kB"], ""));
    let said = lab.loadlab(&[
        "run",
        "experiment.yaml",
        "--environments",
        "container",
        "--on",
        "container",
        "--offline",
    ]);
    if Server::Container.is_here() {
        said.ended_with(3).complained(&[
            "asks for blocks of 16kB",
            "env build --block-size 16kB",
            "--on local",
        ]);
    }
    let said = lab.run(Server::Local, &[]).ended_with(3);
    said.complained(&["with blocks of 16kB on this machine", "env build --block-size 16kB"]);
    lab.experiment(&over_sizes(&["8kB", "16kB"], "needs: {block_sizes: ['{{ block_size }}']}"));
    let said = lab.run(Server::Local, &[]).ended_with(0);
    assert!(
        said.stderr.contains("block_size=16kB: not run here: it needs a server with blocks of 16kB"),
        "{}",
        said.stderr
    );
}

/// Own builds in the cache of whoever runs the tests.
async fn real_builds() -> Vec<Binaries> {
    let mut builds = servers(&cache_folder()).await;
    builds.retain(|server| server.builder == Builder::Loadlab && server.block_size != 8192);
    if builds.is_empty() {
        eprintln!(
            "NOT TESTED, no build in {}: `loadlab env build --block-size 16kB` makes one",
            cache_folder().display()
        );
    }
    builds
}

#[tokio::test(flavor = "multi_thread")]
async fn every_build_in_the_cache_serves_trials_with_its_blocks() {
    let builds = real_builds().await;
    if builds.is_empty() {
        return;
    }
    let cache = cache_folder().display().to_string();
    let lab = Lab::bare().variable("LOADLAB_CACHE", &cache);
    let sizes: Vec<String> = builds.iter().map(|build| block_size_words(build.block_size)).collect();
    let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
    lab.experiment(&over_sizes(&sizes, ""));
    let said = lab.run(Server::Local, &[]).ended_with(0);
    for record in lab.newest().records() {
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        let cluster = record.server.as_ref().unwrap().cluster.clone().unwrap();
        assert_eq!(record.treatment, format!("block_size={}", block_size_words(cluster.block_size)));
        assert!(step(&record, "load").guards.is_empty());
        assert!(said.stdout.contains(&format!("blocks of {}", block_size_words(cluster.block_size))));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_another_block_size_than_asked_for_voids_the_trial() {
    let Some(build) = real_builds().await.into_iter().next() else { return };
    let lab = Lab::new();
    let folder = build.folder.display();
    let text = format!("environment: own\nengine: postgres\nversions: \"14-18\"\nbinaries: {folder}\n");
    lab.write("local/postgres.yaml", &text);
    let other = if build.block_size == 4096 { "16kB" } else { "4kB" };
    lab.experiment(&over_sizes(&[other], ""));
    // The folder was named, so what it holds is told at once.
    lab.run(Server::Local, &[]).ended_with(3).complained(&["with blocks of", "found PostgreSQL"]);
    lab.experiment(&over_sizes(&[&block_size_words(build.block_size)], ""));
    lab.run(Server::Local, &[]).ended_with(0);
    let record = lab.newest().record();
    assert!(!step(&record, "load").guards.contains(&Guard::SettingNotInForce));
    assert!(record.settings.iter().any(|s| s.name == "block_size" && s.requested.is_some() && s.in_force));
}
