//! Runs that are repeated from their folders alone, on servers that are or are not what they were.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use loadlab::model::{Backend, Outcome};
use loadlab::store::{LOCK_FILE, LockFile, StoredRun, newest_run, read_run};

use crate::lab::{Lab, Said, Server};
use crate::server_container::{IMAGE, docker};

/// An experiment in a project: SQL, rows and an environment in files of their own.
const PROJECT: &str = "
experiment: again
question: Is it the same when it is done again?
sources: {someone-2020: {title: A page, author: Someone, date: 2020-01-01, system: PostgreSQL 12}}
environment: special
design: {blocks: 1, seed: 7, factors: {storage: [logged, unlogged]}}
profiles: {few: {tables.t.rows: 300}}
tables:
  t: {ddl: sql/t.sql, rows: 1_000, values: {id: {sequence: {start: 1}}}}
  own: {ddl: 'CREATE TABLE own (id bigint, note text)', rows_from: {csv: data/own.csv}}
steps:
  - create: t
  - create: own
  - load: {name: load, table: t, method: {copy: {}}}
  - load: {name: own, table: own, method: {copy: {}}}
claims:
  - id: unlogged-gains
    source: someone-2020
    quote: unlogged tables are twice as fast
    metric: load.rows_per_second
    ratio: {of: {storage: unlogged}, to: {storage: logged}}
    published: 2
";
const DDL: &str = "CREATE {{ 'UNLOGGED' if storage == 'unlogged' }} TABLE t (id bigint, name text);\n";

fn project(lab: &Lab, environment: &str) -> PathBuf {
    lab.write("project/experiments/sql/t.sql", DDL);
    lab.write("project/experiments/data/own.csv", "id,note\n1,a\n2,\n");
    lab.write("project/environments/special.yaml", environment);
    lab.write("project/experiments/again.yaml", PROJECT)
}

fn environment(more: &str) -> String {
    format!(
        "environment: a special one\nengine: postgres\nversions: \"14-18\"\nsettings: {{work_mem: 7MB}}\n{more}"
    )
}

const FILE: &str = "project/experiments/again.yaml";

/// The program with the options that tests need.
fn loadlab(lab: &Lab, words: &[&str], on: Server) -> Said {
    lab.loadlab(&[words, &["--on", on.word(), "--offline"]].concat())
}

fn newest(results: &Path) -> StoredRun {
    read_run(&newest_run(results, None).unwrap().expect("there is a run")).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_run_is_repeated_elsewhere_when_nothing_but_its_folder_is_left() {
    let lab = Lab::new();
    project(&lab, &environment(""));
    let said = loadlab(&lab, &["run", FILE, "--profile", "few", "--set", "tables.t.rows=200"], Server::Local);
    said.ended_with(0);
    let first = newest(&lab.folder().join("results"));
    let names: Vec<&str> = first.manifest.inputs.iter().map(|input| input.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "environments/special.yaml",
            "experiments/again.yaml",
            "experiments/data/own.csv",
            "experiments/sql/t.sql"
        ]
    );
    let copy = |name: &str| fs::read_to_string(first.path.join("inputs").join(name)).unwrap();
    assert_eq!(copy("experiments/again.yaml"), PROJECT);
    assert_eq!(copy("experiments/sql/t.sql"), DDL);
    for (file, place) in texts(&first.path).into_iter().map(|file| (fs::read_to_string(&file).unwrap(), file))
    {
        assert!(!file.contains(text(lab.folder())), "{} has a path of this machine", place.display());
        assert!(!file.contains("/usr/lib"), "{} has a path of this machine", place.display());
    }

    let moved = lab.folder().join("moved");
    fs::rename(&first.path, &moved).unwrap();
    fs::remove_dir_all(lab.folder().join("project")).unwrap();
    fs::remove_dir_all(lab.folder().join("results")).unwrap();
    // As if it came from another machine, which is said and stops nothing.
    let manifest = fs::read_to_string(moved.join("run.json")).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    manifest["host"]["cpu_model"] = "Another CPU".into();
    fs::write(moved.join("run.json"), manifest.to_string()).unwrap();
    let said = loadlab(&lab, &["rerun", "moved", "--locked"], Server::Local).ended_with(0);
    for part in [
        &*format!("Against run {}", first.manifest.run),
        "The second against the first",
        "Claims, by the first run and by its repetition",
        "No verdict has changed",
        "differs: CPU: Another CPU / ",
    ] {
        assert!(said.stdout.contains(part), "{part} is not in {}", said.stdout);
    }
    let second = newest(&lab.folder().join("results"));
    assert_eq!(second.manifest.rerun_of.as_deref(), Some(&*first.manifest.run));
    assert_eq!(second.manifest.spec.hash, first.manifest.spec.hash);
    assert_eq!(second.manifest.order_digest, first.manifest.order_digest);
    assert_eq!(second.manifest.inputs, first.manifest.inputs);
    let options = &second.manifest.spec.options;
    assert_eq!(options.profile.as_deref(), Some("few"));
    assert_eq!(options.set, ["tables.t.rows=200"]);
    let records = second.journal.records();
    let own = records.iter().filter(|record| !record.trial.control);
    assert_eq!(own.clone().filter(|record| record.outcome == Outcome::Ok).count(), 2);
    let controls =
        |run: &StoredRun| run.journal.records().iter().filter(|record| record.trial.control).count();
    assert_eq!(controls(&second), controls(&read_run(&moved).unwrap()), "as in the first");
    assert!(records.iter().flat_map(|record| &record.measurements).any(|step| step.rows == Some(200)));
    assert_eq!(lock(&first_lock(&moved)), lock(&first_lock(&second.path)));

    // A repetition is a run like any other: it has a name, and can be repeated.
    let said =
        loadlab(&lab, &["rerun", &second.manifest.run, "--format", "json"], Server::Local).ended_with(0);
    let json: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(json["rerun_of"], *second.manifest.run);
    assert!(json["comparison"]["lines"].is_array() && json["claims"][0]["second"].is_object(), "{json:#}");
    // With another set of environment files it is another experiment, as is said.
    lab.write("others/special.yaml", &environment("").replace("7MB", "9MB"));
    let said = loadlab(&lab, &["rerun", "again", "--environments", "others"], Server::Local).ended_with(0);
    let said = said.complained(&["as asked for", "environments/special.yaml: was sha256:"]);
    assert!(said.stdout.contains("differs: work_mem: 7MB / 9MB"), "{}", said.stdout);
}

fn first_lock(run: &Path) -> PathBuf {
    run.join(LOCK_FILE)
}

fn lock(path: &Path) -> LockFile {
    LockFile::read(path).unwrap().expect("there is a lock")
}

/// Files of a run that hold text.
fn texts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(texts(&path));
        } else if path.extension().is_none_or(|ending| ending != "parquet") {
            found.push(path);
        }
    }
    found
}

#[test]
fn files_that_the_run_did_not_keep_are_asked_for_and_checked() {
    let lab = Lab::new();
    project(&lab, &environment(""));
    let rows = "id,note\n".to_owned() + &"1,some words that make it long\n".repeat(40_000);
    let own = lab.write("project/experiments/data/own.csv", &rows);
    let secret = "CREATE TABLE t (id bigint, name text);\n-- CREATE ROLE x PASSWORD 'canary'\n";
    lab.write("project/experiments/sql/t.sql", secret);
    let said = loadlab(&lab, &["run", FILE, "--profile", "few"], Server::Local).ended_with(0);
    said.complained(&["own.csv is not copied", "larger than 1 MiB", "t.sql is not copied", "password"]);
    let first = newest(&lab.folder().join("results"));
    assert!(!first.path.join("inputs/experiments/data").exists());
    for file in texts(&first.path) {
        assert!(!fs::read_to_string(&file).unwrap().contains("canary"), "{}", file.display());
    }

    let run = text(&first.path);
    let said = loadlab(&lab, &["rerun", run], Server::Local).ended_with(2);
    said.complained(&[
        "experiments/data/own.csv: the run holds no copy",
        "experiments/sql/t.sql",
        "--inputs",
    ]);
    let given = ["rerun", run, "--inputs", "project/experiments"];
    loadlab(&lab, &given, Server::Local).ended_with(0);
    fs::write(own, rows.replacen("some", "other", 1)).unwrap();
    loadlab(&lab, &given, Server::Local).ended_with(2).complained(&["own.csv: this is another file"]);
    // What the run kept is checked as well.
    fs::write(first.path.join("inputs/environments/special.yaml"), environment("fresh: copy\n")).unwrap();
    loadlab(&lab, &given, Server::Local).ended_with(2).complained(&["special.yaml: this is another file"]);
}

#[test]
fn a_run_of_an_older_loadlab_is_repeated_if_it_can_be_and_says_so_if_not() {
    let lab = Lab::new();
    let simple =
        PROJECT.replace("special", "postgres").replace("sql/t.sql", "CREATE TABLE t (id bigint)").replace(
            "  own: {ddl: 'CREATE TABLE own (id bigint, note text)', rows_from: {csv: data/own.csv}}\n",
            "",
        );
    let simple = simple
        .replace("  - create: own\n", "")
        .replace("  - load: {name: own, table: own, method: {copy: {}}}\n", "");
    lab.write("simple/again.yaml", &simple);
    loadlab(&lab, &["run", "simple/again.yaml"], Server::Local).ended_with(0);
    let run = newest(&lab.folder().join("results"));
    make_old(&run.path);
    loadlab(&lab, &["rerun", text(&run.path), "--locked"], Server::Local)
        .ended_with(2)
        .complained(&["older loadlab"]);
    let said = loadlab(&lab, &["rerun", text(&run.path)], Server::Local).ended_with(0);
    assert!(said.stdout.contains("Against run"), "{}", said.stdout);

    project(&lab, &environment(""));
    loadlab(&lab, &["run", FILE], Server::Local).ended_with(0);
    let run = newest(&lab.folder().join("results"));
    make_old(&run.path);
    let said = loadlab(&lab, &["rerun", text(&run.path)], Server::Local).ended_with(2);
    said.complained(&["older loadlab", "--environments", "run the original file"]);
}

/// Takes away what older versions did not write.
fn make_old(run: &Path) {
    fs::remove_dir_all(run.join("inputs")).unwrap();
    fs::remove_file(run.join(LOCK_FILE)).unwrap();
    let path = run.join("run.json");
    let mut json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let json_map = json.as_object_mut().unwrap();
    assert!(json_map.shift_remove("inputs").is_some() && json_map.shift_remove("rerun_of").is_some());
    fs::write(&path, json.to_string()).unwrap();
}

#[test]
fn locked_refuses_what_has_changed_and_names_it() {
    let lab = Lab::new();
    project(&lab, &environment(""));
    let locked = ["run", FILE, "--profile", "few", "--locked"];
    loadlab(&lab, &locked, Server::Local).ended_with(2).complained(&["not there", "loadlab lock"]);
    loadlab(&lab, &["lock", FILE], Server::Local).ended_with(0).complained(&["again: 4 files and 1 servers"]);
    let path = lab.folder().join("project").join(LOCK_FILE);
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.contains("binary: sha256:") && !written.contains("/usr/"), "{written}");
    loadlab(&lab, &locked, Server::Local).ended_with(0);
    let runs = || fs::read_dir(lab.folder().join("results/again")).unwrap().count();
    assert_eq!(runs(), 1);

    lab.write("project/experiments/sql/t.sql", &DDL.replace("name", "word"));
    lab.write("project/environments/special.yaml", &environment("fresh: copy\n"));
    loadlab(&lab, &locked, Server::Local).ended_with(2).complained(&[
        "experiments/sql/t.sql: locked sha256:",
        "environments/special.yaml: locked sha256:",
        "lock again",
    ]);
    assert_eq!(runs(), 1, "nothing is begun");
    let note = ["note: not as in", "experiments/sql/t.sql: was sha256:"];
    loadlab(&lab, &locked[..4], Server::Local).ended_with(0).complained(&note);

    // Only the entry of the named experiment is renewed.
    let other = "  another:\n    loadlab: 9.9.9\n    inputs: {}\n    servers: []\n";
    fs::write(&path, format!("{written}{other}")).unwrap();
    loadlab(&lab, &["lock", FILE], Server::Local).ended_with(0);
    let renewed = lock(&path);
    assert_eq!(renewed.experiments["another"].loadlab, "9.9.9");
    assert_ne!(renewed.experiments["again"], LockFile::read(&path).unwrap().unwrap().experiments["another"]);
    loadlab(&lab, &locked, Server::Local).ended_with(0);
}

/// A server like the installed one, in a folder of its own, whose program can be changed.
fn own_server(lab: &Lab) -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").unwrap().next().expect("one is installed").unwrap();
    let version = installed.file_name().into_string().unwrap();
    let own = lab.folder().join("srv");
    let bin = own.join("lib/postgresql").join(&version).join("bin");
    fs::create_dir_all(&bin).unwrap();
    let copied = Command::new("cp").arg("-r").arg(installed.path().join("bin/.")).arg(&bin).status().unwrap();
    assert!(copied.success());
    std::os::unix::fs::symlink(installed.path().join("lib"), bin.with_file_name("lib")).unwrap();
    fs::create_dir_all(own.join("share/postgresql")).unwrap();
    let share = Path::new("/usr/share/postgresql").join(&version);
    std::os::unix::fs::symlink(share, own.join("share/postgresql").join(&version)).unwrap();
    // The server's account has to get there.
    let open = Command::new("chmod").args(["-R", "a+rX"]).arg(lab.folder()).status().unwrap();
    assert!(open.success());
    bin
}

#[test]
fn another_server_binary_is_drift_and_an_old_one_is_preferred() {
    let lab = Lab::new();
    let bin = own_server(&lab);
    project(&lab, &environment(&format!("binaries: {}\n", bin.display())));
    let locked = ["run", FILE, "--profile", "few", "--locked"];
    loadlab(&lab, &["lock", FILE], Server::Local).ended_with(0);
    loadlab(&lab, &locked, Server::Local).ended_with(0);
    let run = newest(&lab.folder().join("results"));
    let mut program = fs::read(bin.join("postgres")).unwrap();
    program.push(0);
    fs::remove_file(bin.join("postgres")).unwrap();
    fs::write(bin.join("postgres"), program).unwrap();
    let executable = Command::new("chmod").arg("755").arg(bin.join("postgres")).status().unwrap();
    assert!(executable.success());
    let drift = "environment special, server binary: locked sha256:";
    loadlab(&lab, &locked, Server::Local).ended_with(3).complained(&[drift, "lock again"]);
    let again = ["rerun", text(&run.path), "--locked"];
    loadlab(&lab, &again, Server::Local).ended_with(3).complained(&[drift, "of run"]);
    let said = loadlab(&lab, &again[..2], Server::Local).ended_with(0);
    said.complained(&["note: not as in loadlab.lock of run", "server binary: was sha256:"]);

    // A version that is nowhere here: told, and something else is taken.
    let mut was = lock(&run.path.join(LOCK_FILE));
    was.experiments.get_mut("again").unwrap().servers[0].is.version = "14.1".to_owned();
    was.write(&run.path.join(LOCK_FILE)).unwrap();
    let said = loadlab(&lab, &again[..2], Server::Local).ended_with(0);
    said.complained(&["environment special, PostgreSQL: was 14.1, is "]);
}

#[test]
fn a_container_is_locked_by_the_id_of_its_image() {
    if !Server::Container.is_here() {
        return;
    }
    let lab = Lab::new();
    let tag = format!("loadlab-test-lock:{}", std::process::id());
    docker(&["tag", IMAGE, &tag]);
    project(&lab, &environment(&format!("image: \"{tag}\"\n")).replace("14-18", "15"));
    let locked = ["run", FILE, "--profile", "few", "--locked"];
    loadlab(&lab, &["lock", FILE], Server::Container).ended_with(0);
    let lock_path = lab.folder().join("project").join(LOCK_FILE);
    let is = lock(&lock_path).experiments["again"].servers[0].is.clone();
    assert_eq!((is.backend, is.image.as_deref()), (Backend::Container, Some(&*tag)));
    let id = docker(&["image", "inspect", "--format", "{{.Id}}", &tag]);
    assert_eq!(is.image_id.as_deref(), Some(&*id));

    // The name moves to another image.
    let container = docker(&["create", IMAGE]);
    docker(&["commit", "-c", &format!("LABEL test={}", std::process::id()), &container, &tag]);
    docker(&["rm", &container]);
    let moved = ["note: not as in", "environment special, image id: was sha256:"];
    loadlab(&lab, &locked[..4], Server::Container).ended_with(0).complained(&moved);
    // The locked one is still there and is taken.
    loadlab(&lab, &locked, Server::Container).ended_with(0);
    let run = newest(&lab.folder().join("results"));
    let identity = run.journal.records()[0].server.clone().unwrap().identity;
    assert!(identity.starts_with(&id[..19]), "{identity} is not {id}");
    // Now it is nowhere.
    let mut gone = lock(&lock_path);
    let pin = &mut gone.experiments.get_mut("again").unwrap().servers[0].is;
    pin.image_id = Some(format!("sha256:{}", "0".repeat(64)));
    gone.write(&lock_path).unwrap();
    let said = loadlab(&lab, &locked, Server::Container).ended_with(3);
    said.complained(&["image id: locked sha256:000000000000, found sha256:", "fetch or tag"]);
    docker(&["rmi", &tag]);
}
