//! Every shipped experiment runs to its end on both backends, and the first notebook on a fresh quickstart.

use std::path::Path;

use crate::lab::{Lab, Server};
use crate::python_results::python;

/// The file and what makes it small: the smallest profile would take minutes in a debug build.
const SHIPPED: [(&str, &str); 4] = [
    ("quickstart", "tables.event.rows=300"),
    ("unlogged", "tables.h_boekingdetail.rows=300"),
    ("copy-freeze", "tables.t_test.rows=300"),
    ("copy-versus-insert", "tables.measurement.rows=300"),
];

fn file(name: &str) -> String {
    format!("{}/experiments/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

fn every_experiment_runs(server: Server) {
    if !server.is_here() {
        return;
    }
    for (name, rows) in SHIPPED {
        let lab = Lab::new();
        lab.run(server, &[&file(name), "--set", rows, "--set", "design.blocks=1"]).ended_with(0);
        let run = lab.newest();
        let records = run.records();
        assert_eq!(records.len() as u64, run.stored.manifest.trials_planned, "{name}");
        for record in records {
            let loads = record.measurements.iter().filter(|step| step.kind == "load");
            for load in loads {
                assert_eq!(load.rows_in_table, Some(300), "{name}: {}", record.treatment);
                assert_eq!(load.checksum, load.checksum_expected, "{name}: {}", record.treatment);
            }
        }
    }
}

#[test]
fn every_shipped_experiment_is_in_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|kind| kind == "yaml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort_unstable();
    let mut listed = SHIPPED.map(|(name, _)| name);
    listed.sort_unstable();
    assert_eq!(names, listed);
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
