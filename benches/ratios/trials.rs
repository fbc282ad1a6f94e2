//! A run of forty small trials: how much of its wall time is spent in fresh servers and steps.

use std::process::Command;
use std::time::Instant;

use super::Promise;

pub(super) fn forty() -> Vec<Promise> {
    let results = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_loadlab"))
        .args(["run", "experiments/quickstart.yaml", "--on", "local", "--set", "design.blocks=8", "--set"])
        .args(["tables.event.rows=2_000", "--results"])
        .arg(results.path())
        .output()
        .unwrap();
    let wall = start.elapsed().as_secs_f64();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let run = loadlab::store::newest_run(results.path(), None).unwrap().unwrap();
    let records = loadlab::store::read_run(&run).unwrap().journal.records();
    assert_eq!(records.len(), 40);
    let inside: f64 = records.iter().map(|record| record.seconds).sum();
    vec![Promise {
        what: "run of 40 small trials: share of time outside servers and steps".to_owned(),
        measured: 1.0 - inside / wall,
        at_most: 0.15,
        detail: format!("{inside:.2} s of {wall:.2} s"),
    }]
}
