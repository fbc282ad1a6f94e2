//! Controls from made-up records: what counts, what is compared, and what a person sees of it.

use std::collections::BTreeMap;
use std::fs::File;

use loadlab::compare::{
    ControlSummary, Facts, Judgement, Reading, Verdict, controls, doubt, judge, noise, summarise,
};
use loadlab::model::{Ceiling, Claim, Controls, Guard, Outcome, TrialRecord};
use loadlab::report::{controls_markdown, controls_table, heading};
use polars::prelude::{ParquetReader, SerReader};

use super::claims::claims;
use super::fixture::{Example, unlogged};

/// A second trial of the first treatment in each block, `speed` times as fast as the first.
fn with_controls(mut example: Example, speed: impl Fn(u32) -> f64) -> Example {
    let twins: Vec<TrialRecord> =
        example.records.iter().filter(|record| record.trial.treatment_index == 0).cloned().collect();
    for mut control in twins {
        control.trial.control = true;
        control.trial.number = example.records.len() as u64;
        control.measurements[1].spans.seconds /= speed(control.trial.block);
        example.records.push(control);
        example.manifest.trials_planned += 1;
    }
    let ceiling = Ceiling {
        method: "insert".to_owned(),
        words: "insert, 500 rows a batch".to_owned(),
        parameters: "{}".to_owned(),
        table: "t".to_owned(),
        table_rows: 20_000,
        repetitions: 3,
        rows: 100_000,
        payload_bytes: 5_000_000,
        seconds: 0.5,
        cpu_seconds: Some(0.5),
        range: (190_000.0, 210_000.0),
        steps: BTreeMap::from([("insert".to_owned(), vec![1, 3])]),
    };
    example.manifest.controls = Some(Controls { treatment: Some(0), ceilings: vec![ceiling], left_out: 0 });
    example
}

fn summary(example: &Example) -> ControlSummary {
    let of_run = example.manifest.controls.as_ref().unwrap();
    controls(of_run, &example.records, &example.manifest.design, Some(2))
}

/// Between 0.99 and 1.01, in no order.
fn shaken(block: u32) -> f64 {
    0.99 + f64::from(block * 7 % 5) / 200.0
}

#[test]
fn control_trials_change_no_number_of_a_run() {
    let plain = unlogged(7);
    // Ten times as fast: whoever averages it shows it.
    let with = with_controls(unlogged(7), |_| 10.0);
    let design = &plain.manifest.design;
    assert_eq!(summarise(&with.records, design), summarise(&plain.records, design));
    assert_eq!(noise(&with.records, design), noise(&plain.records, design));
    let judged = |example: &Example| judge(&claims(), &example.records, design, &Facts::default());
    assert_eq!(judged(&with), judged(&plain));
}

#[test]
fn control_trials_have_a_file_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, with) = (unlogged(2), with_controls(unlogged(2), shaken));
    let height = |run: &loadlab::store::RunFolder, name: &str| {
        let file = File::open(run.path().join(name)).unwrap();
        ParquetReader::new(file).finish().unwrap().height()
    };
    let without = plain.write(folder.path());
    assert!(!without.path().join("controls.parquet").exists(), "a run without controls");
    assert!(!without.path().join("ceilings.parquet").exists());
    let other = tempfile::tempdir().unwrap();
    let run = with.write(other.path());
    for name in ["measurements", "samples", "settings", "treatments", "captures"] {
        let name = format!("{name}.parquet");
        assert_eq!(height(&run, &name), height(&without, &name), "{name}");
    }
    // Two steps of two control trials; one ceiling of one step in two treatments.
    assert_eq!((height(&run, "controls.parquet"), height(&run, "ceilings.parquet")), (4, 2));
}

#[test]
fn twins_of_a_block_are_compared_and_nothing_else() {
    let found = summary(&with_controls(unlogged(7), shaken));
    assert_eq!((found.trials, found.noise_floor.len()), (7, 1), "create answers nothing");
    let floor = &found.noise_floor[0];
    assert_eq!((floor.step.as_str(), floor.blocks, floor.reading), ("insert", 7, Reading::Unclear));
    let mean = (0..7).map(|block| shaken(block).ln()).sum::<f64>() / 7.0;
    assert!((floor.ratio.ln() - mean).abs() < 1e-9, "{floor:?}");
    // A twin with a guard leaves its block out; one block alone says nothing.
    let mut guarded = with_controls(unlogged(2), shaken);
    guarded.records[0].measurements[1].guards = vec![Guard::Throttled];
    assert!(summary(&guarded).noise_floor.is_empty());
    let mut failed = with_controls(unlogged(3), shaken);
    let last = failed.records.last_mut().unwrap();
    (last.outcome, last.measurements) = (Outcome::Failed, Vec::new());
    let found = summary(&failed);
    assert_eq!((found.noise_floor[0].blocks, found.not_valid["failed"]), (2, 1));
}

#[test]
fn a_difference_where_there_is_none_is_told_and_put_beside_verdicts() {
    let quiet = with_controls(unlogged(7), shaken);
    let loud = with_controls(unlogged(7), |block| 1.1 * shaken(block));
    let judged = |example: &Example| {
        let mut found = judge(&claims(), &example.records, &example.manifest.design, &Facts::default());
        doubt(&claims(), &mut found, &summary(example));
        found
    };
    let doubted = |example: &Example| {
        judged(example).into_iter().filter(|found| found.reason.contains("differs from itself")).count()
    };
    assert_eq!(doubted(&quiet), 0);
    let found = judged(&loud);
    let of_times = |claim: &Claim| claim.metric.as_ref().is_some_and(|metric| !metric.counter);
    let has_verdict = |found: &Judgement| found.verdict.is_some_and(|v| v != Verdict::NotComparable);
    let claims = claims();
    let expected = claims.iter().zip(&found).filter(|(claim, found)| of_times(claim) && has_verdict(found));
    assert_eq!(doubted(&loud), expected.count());
    assert!(found.iter().any(|found| found.reason.contains("by chance in one comparison of twenty")));
    let said = controls_table(Some(&summary(&loud)), 100);
    assert!(said.contains("THIS RUN FOUND A DIFFERENCE WHERE THERE IS NONE, in insert"), "{said}");
    assert!(!controls_table(Some(&summary(&quiet)), 100).contains("WHERE THERE IS NONE"));
}

#[test]
fn a_person_sees_noise_floor_and_ceiling() {
    let example = with_controls(unlogged(7), shaken);
    let found = summary(&example);
    insta::assert_snapshot!(controls_table(Some(&found), 100) + &controls_markdown(Some(&found)));
    assert_eq!(controls_table(None, 100) + &controls_markdown(None), "");
    let words = heading(&example.manifest, &example.records);
    assert!(words[1].ends_with("all 28 trials and 7 control trials"), "{words:?}");
    let cut = heading(&example.manifest, &example.records[..34]);
    assert!(cut[1].contains("28 of 28 trials: INCOMPLETE"), "{cut:?}");
}

#[test]
fn clients_count_as_often_as_there_are_cpus() {
    let mut example = with_controls(unlogged(7), shaken);
    example.records[3].measurements[1].clients = 4;
    example.records[3].measurements[1].spans.seconds /= 2.0;
    let share = |cores| {
        let of_run = example.manifest.controls.as_ref().unwrap();
        let found = controls(of_run, &example.records[3..4], &example.manifest.design, cores);
        found.ceilings[0].nearest.as_ref().unwrap().share
    };
    assert!((share(Some(2)) - 2.0 * share(Some(4))).abs() < 1e-9);
    assert!((share(Some(8)) - share(None)).abs() < 1e-9);
}
