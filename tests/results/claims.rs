//! Claims, judged by made-up records: what verdicts rest on, and what a person sees of them.

use indexmap::IndexMap;
use loadlab::compare::{Facts, Judgement, Verdict, in_question, judge};
use loadlab::model::{
    Claim, ClaimSource, Contrast, Group, Metric, RawUnit, RawValues, Reading, Scalar, Statement,
};
use loadlab::report::{claims_markdown, claims_table};

use super::fixture::{Example, unlogged};
use crate::lab::Lab;

fn group(levels: &[(usize, usize)]) -> Group {
    Group { levels: levels.to_vec() }
}

/// Unlogged against logged, in batches of 500 (1) or of single rows (0).
fn storage(batch: usize) -> Contrast {
    Contrast { of: group(&[(0, 1), (1, batch)]), to: group(&[(0, 0), (1, batch)]) }
}

pub(super) fn claim(id: &str, metric: &str, statement: Statement, published: Option<f64>) -> Claim {
    let (steps, name) = metric.rsplit_once('.').unwrap();
    let counter = name.contains("bytes");
    Claim {
        id: id.to_owned(),
        source_id: "s".to_owned(),
        source: ClaimSource {
            title: "A page".to_owned(),
            author: None,
            date: Some("June 2017".to_owned()),
            system: None,
            url: None,
        },
        quote: None,
        reading: Reading::AsPublished,
        metric: Some(Metric {
            steps: steps.split('+').map(str::to_owned).collect(),
            name: name.to_owned(),
            counter,
        }),
        statement,
        published,
        raw: None,
        needs: IndexMap::new(),
        confounds: None,
    }
}

fn ratio(id: &str, batch: usize, published: f64) -> Claim {
    claim(id, "insert.rows_per_second", Statement::Ratio(storage(batch)), Some(published))
}

pub(super) fn facts() -> Facts {
    Facts { smoke: false, cores: Some(2), memory_bytes: Some(8 << 30) }
}

fn judged(example: &Example, claim: Claim) -> Judgement {
    judge(&[claim], &example.records, &example.manifest.design, &facts()).remove(0)
}

/// One claim of every kind, and one for every verdict.
pub(super) fn claims() -> Vec<Claim> {
    let raw = |unit, of: &[f64], to: &[f64]| {
        Some(RawValues { unit, of: of.to_vec(), to: to.to_vec(), rounding: None })
    };
    let rate = "insert.rows_per_second";
    let singles = Statement::NoDifference { contrast: storage(0), margin: 0.15 };
    let order =
        Statement::Order(vec![group(&[(0, 1), (1, 1)]), group(&[(0, 0), (1, 1)]), group(&[(0, 0), (1, 0)])]);
    let mut all = vec![
        Claim { raw: raw(RawUnit::Seconds, &[7.03, 6.94], &[11.2, 11.1]), ..ratio("gain", 1, 1.6) },
        ratio("larger-gain", 1, 3.0),
        Claim { reading: Reading::AsCorrected, ..ratio("loss", 1, 0.5) },
        claim("singles-alike", rate, singles, None),
        claim("order", rate, order, None),
        claim("wal", "insert.wal_bytes", Statement::Ratio(storage(1)), Some(0.0133)),
        Claim {
            raw: raw(RawUnit::RowsPerSecond, &[13_882.0], &[]),
            ..claim("rate-there", rate, Statement::Absolute(group(&[(0, 0), (1, 0)])), Some(13_882.0))
        },
        claim("other-system", rate, Statement::NotComparable("needs Oracle".to_owned()), Some(1.07)),
        ratio("many-rows", 1, 1.6),
    ];
    all[0].needs.insert("rows".to_owned(), Scalar::Text(">= 10_000".to_owned()));
    all[8].needs.insert("rows".to_owned(), Scalar::Text(">= 100_000".to_owned()));
    all[3].confounds = Some("the client may be the limit".to_owned());
    all
}

#[test]
fn a_person_sees_verdict_reason_and_arithmetic() {
    let example = unlogged(8);
    let judgements = judge(&claims(), &example.records, &example.manifest.design, &facts());
    let verdicts: Vec<_> = judgements.iter().map(|judgement| judgement.verdict.map(Verdict::words)).collect();
    assert_eq!(
        verdicts,
        [
            Some("reproduced"),
            Some("same direction"),
            Some("contradicted"),
            Some("reproduced"),
            Some("reproduced"),
            Some("reproduced"),
            None,
            Some("not comparable"),
            Some("not comparable"),
        ]
    );
    let table = claims_table(&judgements, 120);
    assert!(table.lines().all(|line| line.chars().count() <= 120), "{table}");
    insta::assert_snapshot!(table);
    let markdown = claims_markdown(&judgements);
    assert!(markdown.contains("| gain |") && markdown.contains("- gain: reproduced"), "{markdown}");
    assert_eq!(claims_table(&[], 120) + &claims_markdown(&[]), "");
}

#[test]
fn readings_of_one_comparison_are_one_member_of_the_family() {
    let example = unlogged(8);
    let judgements = judge(&claims(), &example.records, &example.manifest.design, &facts());
    // Storage in large batches (four claims), storage in single rows, and three steps of an order, one of them the same as the first.
    assert_eq!(judgements[0].family, 4);
    let wal = judgements.iter().find(|judgement| judgement.claim == "wal").unwrap();
    assert_eq!(wal.family, 1);
    let found = wal.comparisons[0].ratio.unwrap();
    assert!(found.together.is_some_and(|(low, high)| (high - low).abs() < 1e-9), "{found:?}");
}

#[test]
fn trials_that_failed_or_tripped_a_guard_are_counted_and_not_used() {
    let example = unlogged(8);
    let of_all = Contrast { of: group(&[(0, 1)]), to: group(&[(0, 0)]) };
    let found = judged(&example, claim("all", "insert.rows_per_second", Statement::Ratio(of_all), Some(1.3)));
    let left_out: Vec<_> = found.left_out.iter().map(|(reason, count)| (reason.as_str(), *count)).collect();
    assert_eq!(left_out, [("checkpoint_in_window", 1), ("environment_fault", 1)]);
    assert_eq!((found.comparisons[0].pairs, found.comparisons[0].pairs_missing), (14, 2));
}

#[test]
fn five_blocks_and_smoke_runs_give_no_verdict() {
    let five = judged(&unlogged(5), ratio("gain", 1, 1.6));
    assert_eq!((five.verdict, five.blocks_needed), (Some(Verdict::Inconclusive), Some(6)));
    let example = unlogged(8);
    let smoke = Facts { smoke: true, ..facts() };
    let found = judge(&claims(), &example.records, &example.manifest.design, &smoke);
    assert!(found.iter().all(|judgement| judgement.verdict.is_none() && judgement.comparisons.is_empty()));
}

#[test]
fn steps_are_added_and_one_that_a_treatment_lacks_adds_nothing() {
    let mut example = unlogged(8);
    for record in &mut example.records {
        if record.trial.treatment.levels[0] == 1 {
            record.measurements.retain(|step| step.step != "create");
        }
        for step in record.measurements.iter_mut().filter(|step| step.step == "create") {
            step.spans.seconds = 0.5;
        }
    }
    // 20,000 rows at 100,000 per second: 0.2 s, and 0.5 s to create, against 0.125 s.
    let statement = Statement::Ratio(storage(1));
    let found = judged(&example, claim("sum", "create+insert.seconds", statement, Some(0.18)));
    let ratio = found.comparisons[0].ratio.unwrap().ratio;
    assert!((ratio / (0.125 / 0.7) - 1.0).abs() < 0.02, "{ratio}");
    assert_eq!(found.verdict, Some(Verdict::Reproduced));
    assert!(found.end_point.ends_with("added over the steps"), "{}", found.end_point);
}

#[test]
fn a_counter_of_zero_can_be_compared() {
    let mut example = unlogged(8);
    for record in example.records.iter_mut().filter(|record| record.trial.treatment.levels[0] == 1) {
        for step in &mut record.measurements {
            step.counters.wal_bytes = step.counters.wal_bytes.map(|_| 0);
        }
    }
    let order = Statement::Order(vec![group(&[(0, 0), (1, 1)]), group(&[(0, 1), (1, 1)])]);
    let found = judged(&example, claim("none-at-all", "insert.wal_bytes", order, None));
    assert_eq!(found.verdict, Some(Verdict::Reproduced), "{}", found.reason);
}

#[test]
fn a_trial_that_is_too_short_is_not_comparable() {
    let mut claim = ratio("gain", 1, 1.6);
    claim.needs.insert("seconds".to_owned(), Scalar::Text(">= 10".to_owned()));
    let found = judged(&unlogged(8), claim);
    assert_eq!(found.verdict, Some(Verdict::NotComparable));
    assert_eq!(found.reason, "needs seconds >= 10, found 0");
}

#[test]
fn needs_that_nobody_can_look_up_are_not_met() {
    let mut claim = ratio("gain", 1, 1.6);
    claim.needs.insert("phase_of_the_moon".to_owned(), Scalar::Text("full".to_owned()));
    let found = judged(&unlogged(8), claim);
    assert_eq!(found.verdict, Some(Verdict::NotComparable));
    assert!(found.reason.contains("phase_of_the_moon"), "{}", found.reason);
}

#[test]
fn groups_without_like_partners_are_compared_and_it_is_said() {
    let mut example = unlogged(8);
    // Only single rows logged and only large batches unlogged: nothing is alike in both.
    example.records.retain(|record| record.trial.treatment.levels[0] == record.trial.treatment.levels[1]);
    let contrast = Contrast { of: group(&[(0, 1)]), to: group(&[(0, 0)]) };
    let found =
        judged(&example, claim("mixed", "insert.rows_per_second", Statement::Ratio(contrast), Some(32.0)));
    assert!(!found.comparisons[0].alike);
    assert!(found.reason.contains("differ in more than the claim names"), "{}", found.reason);
}

#[test]
fn a_contradicted_claim_ends_with_4_when_asked() {
    let lab = Lab::bare();
    let mut example = unlogged(8);
    example.manifest.claims = claims();
    example.write(&lab.folder().join("results"));
    let command = ["claims", "unlogged", "--results", "results"];
    let said = lab.loadlab(&command).ended_with(0);
    assert!(
        said.stdout.contains("loss (corrected)") && said.stdout.contains("contradicted"),
        "{}",
        said.stdout
    );
    lab.loadlab(&[&command[..], &["--fail-if", "contradicted"]].concat()).ended_with(4);
    let json = lab.loadlab(&[&command[..], &["--format", "json"]].concat()).ended_with(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["claims"][0]["verdict"], "reproduced");
    assert_eq!(json["claims"][6]["verdict"], serde_json::Value::Null);
    let report = lab.loadlab(&["report", "unlogged", "--results", "results"]).ended_with(0).stdout;
    assert!(report.contains("Claims: 4 reproduced"), "{report}");
    // Without the contradicted one there is nothing to fail for.
    let lab = Lab::bare();
    example.manifest.claims.retain(|claim| claim.id != "loss");
    example.write(&lab.folder().join("results"));
    lab.loadlab(&[&command[..], &["--fail-if", "contradicted"]].concat()).ended_with(0);
}

#[test]
fn a_run_without_claims_says_what_to_do() {
    let lab = Lab::bare();
    unlogged(1).write(&lab.folder().join("results"));
    lab.loadlab(&["claims", "--results", "results"])
        .ended_with(2)
        .complained(&["has no claims", "unlogged.yaml"]);
}

/// A run that is to stop when its intervals are tight looks at what its claims compare, not at effects nobody asks about.
#[test]
fn what_is_in_question_are_the_comparisons_of_the_claims() {
    let example = unlogged(8);
    let design = &example.manifest.design;
    let asked = |claims: &[Claim]| in_question(&example.records, design, claims, &facts());
    let of_claims = asked(&[ratio("gain", 1, 1.6), claims().remove(8)]);
    assert!(of_claims.of_claims);
    let judged = judged(&example, ratio("gain", 1, 1.6));
    let found = judged.comparisons[0].ratio.unwrap();
    assert_eq!(of_claims.intervals.len(), 1, "a claim that cannot be judged here asks nothing");
    assert!((of_claims.intervals[0].0 - found.ratio).abs() < 1e-12);
    for without in [asked(&[]), asked(&[claims().remove(8)])] {
        assert!(!without.of_claims && without.intervals.len() > 1, "every effect of every factor");
    }
}
