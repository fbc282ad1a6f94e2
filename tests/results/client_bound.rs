//! Numbers that are the client's: what may be said of them.

use loadlab::compare::{Side, Verdict, judge, summarise, versus_group, versus_run};
use loadlab::model::{Contrast, Group, Guard, Statement};
use loadlab::report::{markdown, versus_table};

use super::claims::{claim, facts};
use super::fixture::{Example, unlogged};

fn group(levels: &[(usize, usize)]) -> Group {
    Group { levels: levels.to_vec() }
}

/// Unlogged against logged in batches of 500; the client's work is the same.
fn storage() -> Contrast {
    Contrast { of: group(&[(0, 1), (1, 1)]), to: group(&[(0, 0), (1, 1)]) }
}

/// Batches of 500 against single rows; the client works in another way.
fn batch() -> Contrast {
    Contrast { of: group(&[(0, 1), (1, 1)]), to: group(&[(0, 1), (1, 0)]) }
}

/// The client is the narrow place in so many blocks of unlogged loads by batches of 500.
fn bound(blocks: u32) -> Example {
    let mut example = unlogged(8);
    for record in &mut example.records {
        let batch = [1, 500][record.trial.treatment.levels[1]];
        let limited = record.trial.treatment.levels == [1, 1] && record.trial.block < blocks;
        for insert in record.measurements.iter_mut().filter(|found| found.step == "insert") {
            insert.parameters = format!("{{\"batch\":{batch}}}");
            if limited && insert.guards.is_empty() {
                insert.guards = vec![Guard::ClientBound];
            }
        }
    }
    example
}

fn side(example: &Example) -> Side<'_> {
    Side { records: &example.records, design: &example.manifest.design }
}

fn ruled(example: &Example, metric: &str, statement: Statement) -> (Option<Verdict>, String) {
    let claim = claim("c", metric, statement, Some(if metric.contains("wal") { 0.0133 } else { 1.6 }));
    let judgement = judge(&[claim], &example.records, &example.manifest.design, &facts()).remove(0);
    (judgement.verdict, judgement.reason)
}

#[test]
fn a_client_at_its_limit_says_nothing_about_a_setting_of_the_server() {
    let rate = "insert.rows_per_second";
    let (verdict, reason) = ruled(&bound(8), rate, Statement::Ratio(storage()));
    assert_eq!(verdict, Some(Verdict::Inconclusive));
    assert!(reason.contains("loadlab itself was the narrow place"), "{reason}");
    assert!(reason.contains("says nothing about the server"), "{reason}");
    // Two sides at the same limit look alike, which is no evidence either.
    let alike = Statement::NoDifference { contrast: storage(), margin: 9.0 };
    assert_eq!(ruled(&bound(8), rate, alike).0, Some(Verdict::Inconclusive));
    let order = Statement::Order(vec![storage().of, storage().to]);
    assert_eq!(ruled(&bound(8), rate, order).0, Some(Verdict::Inconclusive));
    // Without the guard, and with few trials that tripped it, the verdict stands.
    for blocks in [0, 2] {
        assert_eq!(ruled(&bound(blocks), rate, Statement::Ratio(storage())).0, Some(Verdict::Reproduced));
    }
}

#[test]
fn ways_of_the_client_and_counters_are_judged_all_the_same() {
    let slower = Statement::Order(vec![batch().of, batch().to]);
    assert_eq!(ruled(&bound(8), "insert.rows_per_second", slower).0, Some(Verdict::Reproduced));
    assert_eq!(
        ruled(&bound(8), "insert.wal_bytes", Statement::Ratio(storage())).0,
        Some(Verdict::Reproduced)
    );
}

#[test]
fn effects_and_comparisons_say_it() {
    let example = bound(8);
    let design = &example.manifest.design;
    let summary = summarise(&example.records, design);
    let effects = &summary.steps.iter().find(|step| step.step == "insert").unwrap().contrasts;
    let client_bound: Vec<(&str, bool)> =
        effects.iter().map(|effect| (effect.factor.as_str(), effect.levels[0].client_bound)).collect();
    // The effect of storage is an average with a pair that says nothing.
    assert_eq!(client_bound, [("storage", true), ("batch", false)]);
    let text = markdown(&summary, &example.manifest);
    assert!(text.contains("CLIENT-BOUND: insert by storage=unlogged."), "{text}");
    let quiet = bound(0);
    assert!(!markdown(&summarise(&quiet.records, design), &quiet.manifest).contains("CLIENT-BOUND"));

    let lines = versus_group(side(&example), &storage().to, &storage().of);
    assert!(lines[0].client_bound);
    assert!(versus_table(&lines, false, 120).contains("CLIENT-BOUND: loadlab itself"));
    assert!(!versus_group(side(&example), &batch().to, &batch().of)[0].client_bound);
    let lines = versus_run(side(&example), side(&quiet));
    let of_batches =
        lines.iter().filter(|line| line.client_bound).filter_map(|line| line.treatment.as_deref());
    assert_eq!(of_batches.collect::<Vec<_>>(), ["storage=unlogged batch=500"]);
    assert!(lines[0].client_bound && lines[0].treatment.is_none(), "and the average with it");
}
