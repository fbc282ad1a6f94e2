//! Results in Python: one line reads many runs, and the notebooks run. Needs an interpreter with `notebooks/requirements.txt`:
//! `LOADLAB_PYTHON` (`just test` makes one), else `python3`. Left out by `just test-fast`.

use std::path::Path;
use std::process::Command;

use crate::results::fixture::{formats, unlogged};

pub(crate) fn python(script: &str, arguments: &[&Path]) {
    let interpreter = std::env::var("LOADLAB_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(&interpreter).arg(root.join(script)).args(arguments).output();
    let output =
        output.unwrap_or_else(|error| panic!("cannot run {interpreter}: {error}; set LOADLAB_PYTHON"));
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {text}");
}

#[test]
fn polars_duckdb_and_pandas_read_many_runs_in_one_line() {
    let results = tempfile::tempdir().unwrap();
    drop((unlogged(2).write(results.path()), formats(2).write(results.path())));
    python("tests/python/read_results.py", &[results.path()]);
}

#[test]
fn the_first_notebook_runs_on_every_example() {
    for example in [unlogged(6), formats(1)] {
        let results = tempfile::tempdir().unwrap();
        drop(example.write(results.path()));
        let notebook = Path::new(env!("CARGO_MANIFEST_DIR")).join("notebooks/01-first-look.ipynb");
        python("notebooks/execute.py", &[&notebook, results.path()]);
    }
}
