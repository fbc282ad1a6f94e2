//! Controls on real servers: which runs have them, what they leave, and that a killed run completes the same plan.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use loadlab::model::Ceiling;
use loadlab::store::Event;
use nix::sys::signal::Signal;

use crate::lab::{Lab, Run, Server};

/// Two ways of loading and a claim about them; `design` has the blocks.
fn experiment(blocks: u32, claims: bool) -> String {
    let claims = if claims {
        "sources: {page: {title: A page}}
claims:
  - id: copy-is-faster
    source: page
    metric: load.rows_per_second
    ratio: {of: {way: copy}, to: {way: insert}}
    published: 5
"
    } else {
        ""
    };
    format!(
        "experiment: controlled
question: Is COPY faster?
environment: postgres
design: {{factors: {{way: [insert, copy]}}, blocks: {blocks}, seed: 3}}
tables: {{t: {{ddl: 'CREATE TABLE t (id bigint, name text)', rows: 2_000, values: {{id: {{sequence: {{start: 1}}}}}}}}}}
{claims}steps:
  - create: t
  - load: {{name: load, table: t, method: '{{{{ way }}}}'}}
"
    )
}

fn numbers(run: &Run, file: &str, column: &str) -> BTreeSet<i64> {
    let frame = run.parquet(file);
    let column = frame.column(column).unwrap().i64().unwrap();
    column.iter().flatten().collect()
}

fn exists(run: &Run, file: &str) -> bool {
    run.stored.path.join(format!("{file}.parquet")).exists()
}

fn ceilings(run: &Run) -> Vec<Ceiling> {
    run.stored.manifest.controls.as_ref().map(|controls| controls.ceilings.clone()).unwrap_or_default()
}

fn a_run_that_judges_claims_has_controls(server: Server) {
    if !server.is_here() {
        return;
    }
    let lab = Lab::new();
    lab.experiment(&experiment(2, true));
    let planned = lab.loadlab(&["plan", "experiment.yaml", "--environments", server.word()]).ended_with(0);
    for words in ["4 and 2 control trials", "way=insert a second time in each block", "way=insert (control)"]
    {
        assert!(planned.stdout.contains(words), "{words}: {}", planned.stdout);
    }
    let said = lab.run(server, &[]).ended_with(0);
    for words in [
        "all 4 trials and 2 control trials",
        "4 trials in 2 blocks; all ok",
        "The machine's noise floor: the same treatment against itself differs by",
        "the client without a server, its ceiling",
    ] {
        let text = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ").replace(" * ", " ");
        assert!(text.contains(words), "{words}: {}", said.stdout);
    }
    let run = lab.newest();
    let controls: BTreeSet<i64> = run
        .records()
        .iter()
        .filter(|record| record.trial.control)
        .map(|record| i64::try_from(record.trial.number).unwrap())
        .collect();
    assert_eq!((run.records().len(), controls.len(), run.stored.manifest.trials_planned), (6, 2, 6));
    let measured = numbers(&run, "measurements", "trial");
    assert_eq!((measured.len(), measured.intersection(&controls).count()), (4, 0));
    assert_eq!(numbers(&run, "controls", "trial"), controls);
    let columns = |file: &str| run.parquet(file).get_column_names_owned();
    assert_eq!(columns("controls"), columns("measurements"));
    for file in ["samples", "settings"] {
        assert_eq!(numbers(&run, file, "trial").intersection(&controls).count(), 0, "{file}");
    }
    assert_eq!(run.parquet("ceilings").height(), 2, "one way of loading for each treatment");
    for ceiling in ceilings(&run) {
        assert!(ceiling.rows_per_second() > Some(0.0) && ceiling.payload_bytes > 0, "{ceiling:?}");
        assert!(ceiling.range.0 <= ceiling.range.1 && ceiling.repetitions > 0, "{ceiling:?}");
    }
    for format in ["markdown", "json"] {
        let said = lab.loadlab(&["report", "--format", format]).ended_with(0).stdout;
        for words in [if format == "json" { "noise_floor" } else { "noise floor" }, "ceiling"] {
            assert!(said.contains(words), "{format}: {said}");
        }
    }
}

#[test]
fn a_run_that_judges_claims_has_controls_on_a_local_server() {
    a_run_that_judges_claims_has_controls(Server::Local);
}

#[test]
fn a_run_that_judges_claims_has_controls_in_a_container() {
    a_run_that_judges_claims_has_controls(Server::Container);
}

#[test]
fn controls_are_there_when_asked_for_or_needed_and_never_in_smoke_runs() {
    if !Server::Local.is_here() {
        return;
    }
    let lab = Lab::new();
    let has = |claims: bool, options: &[&str]| {
        lab.experiment(&experiment(1, claims));
        lab.run(Server::Local, options).ended_with(0);
        let run = lab.newest();
        let stored = run.stored.manifest.controls.is_some();
        let control = run.records().iter().any(|record| record.trial.control);
        assert!(
            stored == exists(&run, "controls") && stored == exists(&run, "ceilings") && stored == control
        );
        stored.then(|| ceilings(&run))
    };
    assert!(has(false, &[]).is_none());
    assert!(has(true, &["--no-controls"]).is_none());
    assert_eq!(lab.newest().stored.manifest.spec.options.controls, Some(false));
    assert!(has(true, &["--smoke"]).is_none());
    let asked = has(false, &["--controls"]).unwrap();
    assert_eq!(lab.newest().stored.manifest.spec.options.controls, Some(true));
    let by_claims = has(true, &[]).unwrap();
    assert_eq!(lab.newest().stored.manifest.spec.options.controls, None);
    // No server has a part in a ceiling; the machine and the tests beside this one have.
    for (one, other) in asked.iter().zip(&by_claims) {
        let ratio = one.rows_per_second().unwrap() / other.rows_per_second().unwrap();
        assert!((0.2..5.0).contains(&ratio), "{}: {ratio}", one.words);
    }
    lab.run(Server::Local, &["--smoke", "--controls"]).ended_with(2).complained(&["cannot be used with"]);
}

/// The journal has this many ended trials.
fn wait_for(lab: &Lab, trials: usize) {
    let begin = Instant::now();
    let ended = || {
        let run = lab.find()?;
        let ended = run.stored.journal.events.iter().filter(|event| matches!(event, Event::Finished(_)));
        Some(ended.count())
    };
    while ended() < Some(trials) {
        assert!(begin.elapsed() < Duration::from_mins(1), "{trials} trials never ended");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_run_completes_its_plan_with_its_controls() {
    if !Server::Local.is_here() {
        return;
    }
    let lab = Lab::alone();
    lab.experiment(&experiment(3, true));
    let running = lab.start(Server::Local, &[]);
    let pid = running.pid();
    wait_for(&lab, 2);
    running.signal(Signal::SIGKILL);
    assert_eq!(running.end().code, None);
    lab.assert_nothing_left_soon(&[pid]);
    let before = lab.newest();

    let refused = lab.run(Server::Local, &["--resume", "--no-controls"]).ended_with(2);
    refused.complained(&["was begun with controls"]);
    let said = lab.run(Server::Local, &["--resume"]).ended_with(0);
    assert!(!said.stderr.contains("without a server"), "measured again: {}", said.stderr);
    let after = lab.newest();
    assert_eq!(after.stored.manifest.controls, before.stored.manifest.controls);
    assert_eq!(after.stored.manifest.order_digest, before.stored.manifest.order_digest);
    let controls: Vec<u32> = after
        .records()
        .iter()
        .filter(|record| record.trial.control)
        .map(|record| record.trial.block)
        .collect();
    assert_eq!((after.records().len(), controls), (9, vec![0, 1, 2]));
    assert!(said.stdout.contains("all 6 trials and 3 control trials"), "{}", said.stdout);
}

#[test]
fn the_first_treatment_that_this_machine_can_run_is_the_control() {
    if !Server::Local.is_here() {
        return;
    }
    let lab = Lab::new();
    let text = experiment(1, false)
        .replace("factors: {way: [insert, copy]}", "factors: {way: [copy], cores: [100000, 1]}")
        .replace("environment: postgres\n", "environment: postgres\nneeds: {cores: '>= {{ cores }}'}\n");
    lab.experiment(&text);
    lab.run(Server::Local, &["--controls"]).ended_with(0);
    let run = lab.newest();
    let controls: Vec<String> = run
        .records()
        .into_iter()
        .filter(|record| record.trial.control)
        .map(|record| record.treatment)
        .collect();
    assert_eq!(controls, ["way=copy cores=1"]);
    let steps: Vec<_> = ceilings(&run).into_iter().map(|ceiling| ceiling.steps).collect();
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0]["load"], [1], "only of treatments that are run");
}
