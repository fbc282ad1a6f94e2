//! A plan of a million trials: seconds, and flat memory.

use std::process::Command;
use std::time::Instant;

use nix::sys::resource::{UsageWho, getrusage};

use super::Promise;

pub(super) fn million_trials() -> Vec<Promise> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("million.yaml");
    let levels = (0..100).map(|level| level.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!(
        "experiment: million\nquestion: does planning stay flat?\nenvironment: postgres\n\
         design: {{factors: {{a: [{levels}], b: [{levels}], c: [{levels}]}}, blocks: 1}}\n\
         tables: {{t: {{ddl: 'CREATE TABLE t (id integer)', rows: 10}}}}\n\
         steps: [{{create: t}}, {{load: {{table: t, method: copy}}}}]\n"
    );
    std::fs::write(&file, text).unwrap();
    let start = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_loadlab")).arg("plan").arg(&file).output().unwrap();
    let seconds = start.elapsed().as_secs_f64();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The first child of this process: the peak of all children is its peak.
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss();
    let megabytes = f64::from(i32::try_from(peak / 1024).unwrap());
    let detail = format!("{seconds:.2} s, peak {megabytes:.0} MB");
    vec![
        Promise {
            what: "plan of 10^6 trials: peak memory, MB".to_owned(),
            measured: megabytes,
            at_most: 256.0,
            detail: detail.clone(),
        },
        Promise { what: "plan of 10^6 trials: seconds".to_owned(), measured: seconds, at_most: 10.0, detail },
    ]
}
