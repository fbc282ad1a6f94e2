//! The journal: nothing that was finished is lost, whatever happens to the file afterwards.

use std::fs;

use loadlab::model::{Outcome, Scalar, TrialRecord};
use loadlab::store::{Event, Journal, RunFolder, StoreError, newest_run, read_run};
use proptest::prelude::*;

use super::fixture::{formats, unlogged};

#[test]
fn finished_trials_come_back_and_an_open_one_is_lost() {
    let results = tempfile::tempdir().unwrap();
    let example = unlogged(2);
    let mut folder = RunFolder::create(results.path(), &example.manifest).unwrap();
    for record in &example.records[..3] {
        folder.started(&record.trial, 0).unwrap();
        folder.finished(record).unwrap();
    }
    folder.started(&example.records[3].trial, 0).unwrap();
    let path = folder.path().to_owned();
    drop(folder);

    let mut folder = RunFolder::open(&path).unwrap();
    let journal = folder.journal().unwrap();
    assert_eq!(journal.records(), example.records[..3]);
    assert_eq!(journal.lost(), [(3, 0)]);
    assert_eq!(journal.next_attempt(3), 1);
    assert_eq!(journal.done().len(), 3);
    folder.lost(3, 0).unwrap();
    let again = TrialRecord { attempt: 1, ..example.records[3].clone() };
    folder.started(&again.trial, 1).unwrap();
    folder.finished(&again).unwrap();
    assert_eq!(folder.journal().unwrap().lost(), []);
    assert_eq!(folder.records().unwrap()[3].attempt, 1);
}

#[test]
fn the_latest_attempt_counts_and_a_cancelled_one_is_not_done() {
    let mut first = unlogged(1).records[0].clone();
    first.outcome = Outcome::Cancelled;
    let mut journal =
        Journal { events: vec![Event::Finished(Box::new(first.clone()))], ..Journal::default() };
    assert!(journal.done().is_empty());
    let second = TrialRecord { attempt: 1, outcome: Outcome::Ok, ..first };
    journal.events.insert(0, Event::Finished(Box::new(second)));
    assert_eq!(journal.records().len(), 1);
    assert_eq!(journal.records()[0].attempt, 1);
    assert_eq!(journal.done().len(), 1);
}

#[test]
fn every_torn_end_is_recognised_and_repaired() {
    let results = tempfile::tempdir().unwrap();
    let example = formats(1);
    let path = example.write(results.path()).path().to_owned();
    let journal = path.join("journal.jsonl");
    let whole = fs::read(&journal).unwrap();
    let start_of_last = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    for end in (start_of_last..whole.len()).step_by(97) {
        let parsed = Journal::parse(&whole[..end]);
        assert_eq!(parsed.records().len(), example.records.len() - 1, "cut at {end}");
        assert_eq!(parsed.torn_bytes, (end - start_of_last) as u64);
        assert!(parsed.damaged_lines.is_empty());
    }
    fs::write(&journal, &whole[..whole.len() - 40]).unwrap();
    let mut folder = RunFolder::open(&path).unwrap();
    folder.finished(example.records.last().unwrap()).unwrap();
    let repaired = folder.journal().unwrap();
    assert_eq!((repaired.torn_bytes, repaired.damaged_lines.len()), (0, 0));
    assert_eq!(repaired.records(), example.records);
}

#[test]
fn a_damaged_line_is_named_and_skipped() {
    let results = tempfile::tempdir().unwrap();
    let example = formats(1);
    let path = example.write(results.path()).path().to_owned();
    let mut bytes = fs::read(path.join("journal.jsonl")).unwrap();
    let second_line = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 60;
    bytes[second_line] ^= 1;
    let parsed = Journal::parse(&bytes);
    assert_eq!(parsed.damaged_lines, [2]);
    assert_eq!(parsed.records().len(), example.records.len() - 1);
    assert_eq!(parsed.complaints(), ["journal.jsonl:2: damaged line skipped (checksum or JSON)"]);
}

#[test]
fn a_second_writer_is_told_who_writes() {
    let results = tempfile::tempdir().unwrap();
    let folder = formats(1).write(results.path());
    let error = RunFolder::open(folder.path()).unwrap_err();
    assert!(error.to_string().contains(&format!("in use by process {}", std::process::id())), "{error}");
    read_run(folder.path()).unwrap();
    let path = folder.path().to_owned();
    drop(folder);
    RunFolder::open(&path).unwrap();
}

#[test]
fn a_number_that_is_not_finite_is_refused_not_lost_later() {
    let results = tempfile::tempdir().unwrap();
    let mut example = formats(1);
    let mut folder = RunFolder::create(results.path(), &example.manifest).unwrap();
    example.records[0].measurements[1].spans.seconds = f64::NAN;
    assert!(matches!(folder.finished(&example.records[0]), Err(StoreError::NotStorable { trial: 0, .. })));
}

#[test]
fn names_cannot_leave_the_results_folder_and_links_are_refused() {
    let results = tempfile::tempdir().unwrap();
    let mut example = formats(1);
    "../escape".clone_into(&mut example.manifest.experiment);
    assert!(matches!(RunFolder::create(results.path(), &example.manifest), Err(StoreError::BadName { .. })));
    "linked".clone_into(&mut example.manifest.experiment);
    let elsewhere = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), results.path().join("linked")).unwrap();
    assert!(matches!(RunFolder::create(results.path(), &example.manifest), Err(StoreError::Link { .. })));
}

#[test]
fn a_manifest_comes_back_and_a_newer_one_is_refused() {
    let results = tempfile::tempdir().unwrap();
    let example = formats(1);
    let mut folder = example.write(results.path());
    let ended = "2026-01-02T00:10:00Z".parse().unwrap();
    folder.update_manifest(|manifest| manifest.ended_at = Some(ended)).unwrap();
    let path = folder.path().to_owned();
    let stored = read_run(&path).unwrap().manifest;
    assert_eq!(stored.design, example.manifest.design);
    assert_eq!(stored.ended_at, Some(ended));
    let text = fs::read_to_string(path.join("run.json")).unwrap();
    fs::write(path.join("run.json"), text.replace("\"schema_version\": 1", "\"schema_version\": 99"))
        .unwrap();
    assert!(matches!(read_run(&path), Err(StoreError::TooNew { found: 99, .. })));
    assert!(matches!(read_run(results.path()), Err(StoreError::NotARun { .. })));
}

#[test]
fn the_newest_run_is_found() {
    let results = tempfile::tempdir().unwrap();
    assert_eq!(newest_run(&results.path().join("none"), None).unwrap(), None);
    let old = unlogged(1).write(results.path()).path().to_owned();
    let new = formats(1).write(results.path()).path().to_owned();
    assert_eq!(newest_run(results.path(), None).unwrap(), Some(new));
    assert_eq!(newest_run(results.path(), Some("unlogged")).unwrap(), Some(old));
}

/// Spans come from clocks with nanoseconds.
fn seconds() -> impl Strategy<Value = f64> {
    (0_u64..1 << 50).prop_map(|nanoseconds| std::time::Duration::from_nanos(nanoseconds).as_secs_f64())
}

prop_compose! {
    fn record()(
        trial in 0_u64..1000, attempt in 0_u32..5, text in ".{0,40}", level in -9_000_000_000_i64..9_000_000_000,
        spans in proptest::collection::vec(seconds(), 3), rows in proptest::option::of(any::<u64>()),
    ) -> TrialRecord {
        let mut record = unlogged(1).records[0].clone();
        record.trial.number = trial;
        record.attempt = attempt;
        // Passwords do not come back, on purpose.
        record.error = Some(loadlab::store::redact(&text));
        record.factors = vec![(text.clone(), Scalar::Int(level)), ("t".into(), Scalar::Float(spans[2])), ("n".into(), Scalar::Null)];
        record.seconds = spans[0];
        record.measurements[1].spans.seconds = spans[1];
        record.measurements[1].rows = rows;
        record
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_is_written_is_read(records in proptest::collection::vec(record(), 1..4)) {
        let results = tempfile::tempdir().unwrap();
        let mut folder = RunFolder::create(results.path(), &formats(1).manifest).unwrap();
        for record in &records {
            folder.finished(record).unwrap();
        }
        let expected: Vec<Event> = records.into_iter().map(|record| Event::Finished(Box::new(record))).collect();
        prop_assert_eq!(folder.journal().unwrap().events, expected);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let parsed = Journal::parse(&bytes);
        prop_assert!(parsed.events.is_empty());
    }
}
