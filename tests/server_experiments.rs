//! Every shipped experiment runs to its end on both backends, and the first notebook on a fresh quickstart.

use std::path::Path;
use std::sync::Mutex;
use std::thread;

use loadlab::model::Outcome;

use crate::lab::{Lab, Server};
use crate::python_results::python;

/// Runs at the same time: a trial waits about as long as it works.
const AT_ONCE: usize = 4;

fn file(name: &str) -> String {
    format!("{}/experiments/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

/// All of `experiments/`, so that none is forgotten.
fn shipped() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let files = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|kind| kind == "yaml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    names
}

/// Every treatment once, with a thousand rows: trials are ok, and what was loaded is what was generated; or they say
/// what this machine lacks.
fn runs_to_its_end(server: Server, name: &str) {
    let lab = Lab::new();
    let said = lab.run(server, &[&file(name), "--smoke", "--allow-commands"]);
    let run = lab.newest();
    let records = run.records();
    // A run that could measure nothing here says so by its exit code.
    let nothing = records.iter().all(|record| record.outcome == Outcome::NotRun);
    said.ended_with(if nothing { 3 } else { 0 });
    assert!(run.stored.manifest.smoke, "{name}");
    assert_eq!(records.len() as u64, run.stored.manifest.trials_planned, "{name}");
    for record in records {
        if record.outcome == Outcome::NotRun {
            let reason = record.error.unwrap_or_default();
            assert!(reason.contains("not run here: "), "{name}: {}: {reason:?}", record.treatment);
            continue;
        }
        assert_eq!(record.outcome, Outcome::Ok, "{name}: {}: {:?}", record.treatment, record.error);
        for load in record.measurements.iter().filter(|step| step.kind == "load") {
            // A load by duration has no number of rows that it must reach.
            if load.rows_expected.is_some() {
                assert_eq!(load.rows_in_table, load.rows_expected, "{name}: {}", record.treatment);
            }
            assert_eq!(load.checksum, load.checksum_expected, "{name}: {}", record.treatment);
        }
    }
}

fn every_experiment_runs(server: Server) {
    if !server.is_here() {
        return;
    }
    let names = shipped();
    assert!(names.len() > 20, "{names:?}");
    let names = Mutex::new(names.into_iter());
    let next = || names.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(name) = next() {
                    runs_to_its_end(server, &name);
                }
            });
        }
    });
}

#[test]
fn every_shipped_experiment_runs_to_its_end_on_local_servers() {
    every_experiment_runs(Server::Local);
}

#[test]
fn every_shipped_experiment_runs_to_its_end_in_containers() {
    every_experiment_runs(Server::Container);
}

#[test]
fn the_first_notebook_runs_on_a_fresh_quickstart() {
    let lab = Lab::new();
    lab.run(Server::Local, &[&file("quickstart"), "--profile", "tiny"]).ended_with(0);
    let notebook = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/01-first-look.ipynb");
    python("notebooks/execute.py", &[&notebook, &lab.folder().join("results")]);
}
