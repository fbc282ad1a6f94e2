//! Kept runs: packed, smaller, and read by every command as before.

use std::fs;
use std::path::{Path, PathBuf};

use loadlab::store::{RunFolder, StoreError, is_kept, keep, kept_runs, read_run};

use super::fixture::{Example, unlogged};
use crate::lab::Lab;

/// A run that ended, with `blocks`.
fn finished(blocks: u32) -> Example {
    let mut example = unlogged(blocks);
    example.manifest.ended_at = Some("2017-06-08T10:20:30Z".parse().unwrap());
    example
}

fn written(example: &Example, results: &Path) -> PathBuf {
    example.write(results).path().to_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn refusal(example: &Example) -> String {
    let results = tempfile::tempdir().unwrap();
    let path = written(example, results.path());
    let error = keep(&path).unwrap_err();
    assert!(matches!(error, StoreError::NotKeepable { .. }), "{error:?}");
    assert!(path.join("journal.jsonl").is_file() && !is_kept(&path));
    error.to_string()
}

#[test]
fn a_kept_run_is_smaller_and_reads_as_before() {
    let results = tempfile::tempdir().unwrap();
    let path = written(&finished(6), results.path());
    let before = read_run(&path).unwrap();
    let table = fs::read(path.join("measurements.parquet")).unwrap();
    let kept = keep(&path).unwrap();
    assert!(!kept.before && kept.packed_bytes * 5 < kept.journal_bytes, "{kept:?}");
    assert_eq!(read_run(&path).unwrap(), before);
    assert_eq!(fs::read(path.join("measurements.parquet")).unwrap(), table);
    let here = names(&path);
    assert!(here.contains(&"journal.jsonl.gz".to_owned()), "{here:?}");
    assert!(!here.iter().any(|name| name.starts_with('.') || name == "journal.jsonl"), "{here:?}");
    assert_eq!(kept.files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>(), here);
    assert_eq!(kept_runs(results.path(), "unlogged").unwrap(), std::slice::from_ref(&path));
    let again = keep(&path).unwrap();
    assert!(again.before && again.files == kept.files);
}

#[test]
fn the_same_journal_is_always_packed_into_the_same_bytes() {
    let pack = || {
        let results = tempfile::tempdir().unwrap();
        let path = written(&finished(1), results.path());
        // The journal has the times of its own writing.
        fs::write(path.join("journal.jsonl"), one_journal()).unwrap();
        keep(&path).unwrap();
        fs::read(path.join("journal.jsonl.gz")).unwrap()
    };
    assert_eq!(pack(), pack());
}

fn one_journal() -> &'static [u8] {
    static JOURNAL: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    JOURNAL.get_or_init(|| {
        let results = tempfile::tempdir().unwrap();
        fs::read(written(&finished(1), results.path()).join("journal.jsonl")).unwrap()
    })
}

#[test]
fn a_kill_between_packing_and_removing_loses_nothing() {
    let results = tempfile::tempdir().unwrap();
    let path = written(&finished(1), results.path());
    fs::write(path.join("journal.jsonl.gz"), b"half of it").unwrap();
    fs::write(path.join(".journal.jsonl.gz.tmp"), b"half").unwrap();
    fs::write(path.join(".reserve"), b"x").unwrap();
    assert!(!is_kept(&path));
    let before = read_run(&path).unwrap();
    keep(&path).unwrap();
    assert_eq!(read_run(&path).unwrap(), before);
    assert!(!names(&path).iter().any(|name| name.starts_with('.')));
}

#[test]
fn runs_that_prove_nothing_are_not_kept() {
    let mut smoke = finished(6);
    smoke.manifest.smoke = true;
    assert!(refusal(&smoke).contains("smoke run"));
    let mut unfinished = finished(6);
    unfinished.records.pop();
    let said = refusal(&unfinished);
    assert!(said.contains("23 of 24 trials") && said.contains("--resume"), "{said}");
    assert!(refusal(&unlogged(6)).contains("not finished"));
    let mut empty = finished(1);
    empty.records.iter_mut().for_each(|record| record.measurements.clear());
    assert!(refusal(&empty).contains("nothing was measured"));
}

#[test]
fn a_damaged_journal_is_not_kept() {
    let results = tempfile::tempdir().unwrap();
    let path = written(&finished(1), results.path());
    let journal = path.join("journal.jsonl");
    let mut bytes = fs::read(&journal).unwrap();
    bytes[60] ^= 1;
    fs::write(&journal, bytes).unwrap();
    assert!(keep(&path).unwrap_err().to_string().contains("journal.jsonl:1: damaged"));
}

#[test]
fn a_run_that_ended_by_its_own_rule_is_finished() {
    let mut example = finished(8);
    example.manifest.design.blocks.min = 6;
    example.manifest.ended_by_rule = Some("after 6 blocks every interval is narrow".to_owned());
    example.records.truncate(24);
    let results = tempfile::tempdir().unwrap();
    assert!(!keep(&written(&example, results.path())).unwrap().before);
}

/// Looking at the numbers and stopping is not the declared rule, even after whole blocks.
#[test]
fn a_run_stopped_by_hand_after_whole_blocks_does_not_pass_as_ended_by_its_rule() {
    let mut example = finished(8);
    example.manifest.design.blocks.min = 6;
    example.records.truncate(24);
    assert!(refusal(&example).contains("24 of 32"));
    let heading = loadlab::report::heading(&example.manifest, &example.records).join("\n");
    assert!(heading.contains("INCOMPLETE") && !heading.contains("ended by the rule"), "{heading}");
    example.manifest.ended_by_rule = Some("after 6 blocks every interval is narrow".to_owned());
    let heading = loadlab::report::heading(&example.manifest, &example.records).join("\n");
    assert!(heading.contains("ended by the rule"), "{heading}");
}

#[test]
fn a_kept_run_takes_no_more_trials_and_a_damaged_one_says_so() {
    let results = tempfile::tempdir().unwrap();
    let path = written(&finished(1), results.path());
    keep(&path).unwrap();
    let error = RunFolder::open(&path).unwrap_err();
    assert!(error.to_string().contains("nothing is left to resume"), "{error}");
    fs::write(path.join("journal.jsonl.gz"), b"\x1f\x8b\x08no gzip").unwrap();
    let error = read_run(&path).unwrap_err().to_string();
    assert!(error.contains("journal.jsonl.gz") && error.contains("cannot unpack"), "{error}");
}

#[test]
fn every_command_reads_a_kept_run() {
    let lab = Lab::bare();
    let mut other = finished(6);
    "20160101-000000-cccccc".clone_into(&mut other.manifest.run);
    let other = written(&other, &lab.folder().join("results"));
    let other = other.to_str().unwrap();
    let path = written(&finished(8), &lab.folder().join("results"));
    let run = path.strip_prefix(lab.folder()).unwrap().to_str().unwrap();
    let report = lab.loadlab(&["report", run]).ended_with(0).stdout;
    let compared = lab.loadlab(&["compare", other, run]).ended_with(0).stdout;
    let kept = lab.loadlab(&["keep", run]).ended_with(0).stdout;
    assert!(kept.contains("git add -f") && kept.contains("NOTES.md") && kept.contains("in all"), "{kept}");
    assert!(lab.loadlab(&["keep", "unlogged"]).ended_with(0).stdout.contains("is kept already"));
    assert_eq!(lab.loadlab(&["report", run]).ended_with(0).stdout, report);
    assert_eq!(lab.loadlab(&["compare", other, run]).ended_with(0).stdout, compared);
    fs::remove_file(path.join("measurements.parquet")).unwrap();
    lab.loadlab(&["report", run, "--rewrite"]).ended_with(0);
    let here = names(&path);
    assert!(here.contains(&"measurements.parquet".to_owned()), "{here:?}");
    assert!(!here.iter().any(|name| name.starts_with('.')), "{here:?}");
    lab.loadlab(&["claims", run]).ended_with(2).complained(&["has no claims"]);
}
