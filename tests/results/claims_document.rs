//! `docs/CLAIMS.md` of a made-up project: only kept runs count, claims are those of today's file, and what is missing is said.

use std::fs;
use std::path::Path;

use loadlab::cli::claims_of_kept_runs;
use loadlab::store::keep;

use super::fixture::{Example, unlogged};

/// The experiment of the made-up run, as its file is today.
const FILE: &str = r#"
experiment: unlogged
question: How much does it gain?
expectation: Something.
sources:
  jalvingh-2017: {title: A page, author: A person, date: 2017-06-08}
  other: {title: Another page, url: https://example.org/page}
environment: postgres
design:
  factors:
    batch: [5000, 500, 1]
    storage: [unlogged, logged]
  blocks: 8
tables:
  t: {ddl: "CREATE TABLE t (a int)", rows: 20_000}
steps:
  - create: t
  - load: {name: insert, table: t, method: {insert: {rows_per_batch: "{{ batch }}"}}}
  - sql: {name: later, run: "SELECT 1"}
claims:
  - id: gain
    source: jalvingh-2017
    quote: UNLOGGED gains | 60 %
    metric: insert.rows_per_second
    ratio: {of: {storage: unlogged}, to: {storage: logged}, where: {batch: 500}}
    published: 1.6
    needs: {rows: ">= 10_000"}
    confounds: Another client.
  - id: gain-of-more
    source: jalvingh-2017
    quote: the same in batches of 5,000
    metric: insert.rows_per_second
    ratio: {of: {storage: unlogged}, to: {storage: logged}, where: {batch: 5000}}
    published: 1.6
  - id: later
    source: other
    quote: a step that the run does not have
    metric: later.seconds
    absolute: {storage: logged, batch: 500}
    published: 3
    raw: {unit: s, of: [3]}
  - id: oracle
    source: other
    quote: Oracle
    raw: {unit: s, of: [1.07]}
    not_comparable: Oracle; loadlab has no engine for it.
"#;

fn project() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for folder in ["experiments", "environments", "results"] {
        fs::create_dir(root.path().join(folder)).unwrap();
    }
    fs::write(root.path().join("experiments/unlogged.yaml"), FILE).unwrap();
    let environment = "environment: postgres\nengine: postgres\nversions: \"15\"\n";
    fs::write(root.path().join("environments/postgres.yaml"), environment).unwrap();
    root
}

fn document(root: &Path) -> String {
    claims_of_kept_runs(root).unwrap_or_else(|failure| panic!("{failure:?}"))
}

/// A finished run, and another that is newer and not kept.
fn run(root: &Path) -> std::path::PathBuf {
    let finished = |run: &str| {
        let mut example: Example = unlogged(8);
        example.manifest.ended_at = Some("2017-06-08T10:20:30Z".parse().unwrap());
        run.clone_into(&mut example.manifest.run);
        example.manifest.spec.options.profile = None;
        example.write(&root.join("results")).path().to_owned()
    };
    finished("20990101-000000-000-dddddd");
    finished("20170608-101530-000-aaaaaa")
}

#[test]
fn without_a_kept_run_nothing_is_re_tested() {
    let root = project();
    let before = document(root.path());
    assert!(before.contains("| all | 4 |  |  |  |  | 1 |  | 3 |"), "{before}");
    assert!(before.contains("P1: A page (A person, 2017-06-08)"), "{before}");
    assert!(before.contains("no run of them is kept: unlogged"), "{before}");
    assert!(before.contains("| 1.07 s | - | - | - | not comparable |"), "{before}");
    run(root.path());
    assert_eq!(document(root.path()), before, "runs that are not kept change nothing");
}

#[test]
fn the_newest_kept_run_judges_the_claims_of_todays_file() {
    let root = project();
    let path = run(root.path());
    keep(&path).unwrap();
    fs::write(path.join("NOTES.md"), "A shared machine.\nNothing else is wrong.\n").unwrap();
    let found = document(root.path());
    // Factors and levels stand in another order in the file than in the run.
    assert!(
        found.contains("| unlogged | gain | UNLOGGED gains \\| 60 % | as published | 1.60x +- "),
        "{found}"
    );
    assert!(
        found.contains("- unlogged, gain: reproduced. The interval lies within the tolerance."),
        "{found}"
    );
    for part in
        ["rows >= 10\\_000 (found 20000)", "Mind: Another client", "environment\\_fault", "last COMMIT"]
    {
        assert!(found.contains(part), "{part}: {found}");
    }
    // What the run is, and what it is not.
    for part in [
        "../results/unlogged/20170608-101530-000-aaaaaa",
        "32 trials in 8 blocks",
        "2 CPUs",
        "  > A shared machine.",
        "older text",
        "`steps`",
        "makes of nothing was not measured",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert!(
        found.contains("gain-of-more: not yet re-tested") && found.contains("the run has no batch=5000"),
        "{found}"
    );
    assert!(found.contains("the run has no step later"), "{found}");
    assert!(found.contains("| all | 4 | 1 |  |  |  | 1 |  | 2 |"), "{found}");
}

#[test]
fn a_kept_run_that_cannot_be_read_is_named() {
    let root = project();
    let path = run(root.path());
    keep(&path).unwrap();
    fs::write(path.join("journal.jsonl.gz"), "torn").unwrap();
    let failure = format!("{:?}", claims_of_kept_runs(root.path()).unwrap_err());
    assert!(failure.contains("journal.jsonl.gz"), "{failure}");
}
