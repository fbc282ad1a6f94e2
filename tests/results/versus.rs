//! `loadlab compare`: two runs, or two treatments of one, from made-up records.

use loadlab::compare::{Reading, Side, versus_group, versus_run};
use loadlab::model::Group;

use super::fixture::{Example, unlogged};
use crate::lab::Lab;

fn side(example: &Example) -> Side<'_> {
    Side { records: &example.records, design: &example.manifest.design }
}

/// The run again, later, with every insert taking `times` as long and other noise.
fn later(times: f64) -> Example {
    let mut example = unlogged(8);
    "20170609-101530-bbbbbb".clone_into(&mut example.manifest.run);
    let mut noise = 0.0;
    for step in example.records.iter_mut().flat_map(|record| &mut record.measurements) {
        noise = (noise + 0.382) % 1.0;
        step.spans.seconds *= times * (1.0 + 0.02 * (noise - 0.5));
    }
    example
}

#[test]
fn a_slower_run_is_shown_and_an_equal_one_is_not() {
    let first = unlogged(8);
    for (times, reading) in [(1.10, Reading::Slower), (1.0, Reading::Unclear), (0.8, Reading::Faster)] {
        let second = later(times);
        let lines = versus_run(side(&first), side(&second));
        // All treatments together, and each of the four.
        assert_eq!(lines.len(), 5, "{lines:?}");
        let all = &lines[0];
        assert_eq!((all.step.as_str(), &all.treatment, all.reading), ("insert", &None, reading), "{all:?}");
        assert!((all.ratio * times - 1.0).abs() < 0.02, "{all:?}");
        assert!(lines.iter().all(|line| !line.identical));
        let (narrow, wide) = (all.interval.unwrap(), all.together.unwrap());
        assert!(wide.0 < narrow.0 && narrow.1 < wide.1);
    }
}

#[test]
fn a_copy_of_a_run_is_noticed() {
    let first = unlogged(8);
    assert!(versus_run(side(&first), side(&first)).iter().all(|line| line.identical));
}

#[test]
fn treatments_of_one_run_are_compared_in_pairs() {
    let example = unlogged(8);
    let group = |storage| Group { levels: vec![(0, storage), (1, 1)] };
    let lines = versus_group(side(&example), &group(0), &group(1));
    assert_eq!((lines.len(), lines[0].blocks, lines[0].reading), (1, (6, 6), Reading::Faster));
    assert!((lines[0].ratio / 1.6 - 1.0).abs() < 0.05, "{}", lines[0].ratio);
}

/// Two runs, the second 10 % slower, on the disk.
fn written(change: impl Fn(&mut Example)) -> Lab {
    let lab = Lab::bare();
    let results = lab.folder().join("results");
    unlogged(8).write(&results);
    let mut second = later(1.10);
    change(&mut second);
    second.write(&results);
    lab
}

const FIRST: &str = "results/unlogged/20170608-101530-aaaaaa";
const SECOND: &str = "results/unlogged/20170609-101530-bbbbbb";

#[test]
fn a_regression_ends_with_4_when_asked() {
    let lab = written(|second| second.manifest.tool.version = "9.9.9".to_owned());
    let said = lab.loadlab(&["compare", FIRST, SECOND]).ended_with(0);
    assert!(said.stdout.contains("differs: loadlab: 0.1.0 (unknown) / 9.9.9 (unknown)"), "{}", said.stdout);
    assert!(said.stdout.contains("slower") && said.stdout.contains("different times"), "{}", said.stdout);
    lab.loadlab(&["compare", FIRST, SECOND, "--fail-if", "slower=5%"]).ended_with(4);
    lab.loadlab(&["compare", FIRST, SECOND, "--fail-if", "slower=20%"]).ended_with(0);
    lab.loadlab(&["compare", SECOND, FIRST, "--fail-if", "slower=5%"]).ended_with(0);
    lab.loadlab(&["compare", FIRST, SECOND, "--fail-if", "slower=5"]).ended_with(2);
    let json = lab.loadlab(&["compare", FIRST, SECOND, "--format", "json"]).ended_with(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["lines"][0]["reading"], "slower");
}

#[test]
fn runs_of_two_machines_are_compared_only_when_insisted_on() {
    let lab = written(|second| second.manifest.host.cores = Some(64));
    lab.loadlab(&["compare", FIRST, SECOND]).ended_with(2).complained(&[
        "different machines",
        "CPUs: 2 / 64",
        "--anyway",
    ]);
    let said = lab.loadlab(&["compare", FIRST, SECOND, "--anyway"]).ended_with(0);
    assert!(said.stdout.starts_with("differs: CPUs: 2 / 64"), "{}", said.stdout);
}

#[test]
fn places_on_one_machine_must_be_equal_and_what_is_unknown_is_said() {
    let lab = written(|second| {
        second.manifest.host.turbo = Some(true);
        second.manifest.host.swap_bytes = Some(0);
        for server in second.records.iter_mut().filter_map(|record| record.server.as_mut()) {
            server.durable = false;
            server.sync_seconds = Some(0.000_03);
        }
    });
    let refused = lab.loadlab(&["compare", FIRST, SECOND]).ended_with(2);
    let refused = refused.complained(&["durable: yes / no", "--anyway"]);
    assert!(!refused.stderr.contains("turbo"), "{}", refused.stderr);
    let said = lab.loadlab(&["compare", FIRST, SECOND, "--anyway"]).ended_with(0).stdout;
    let differences: Vec<&str> = said.lines().take_while(|line| line.starts_with("differs: ")).collect();
    let expected = [
        "differs: durable: yes / no",
        "differs: turbo: unknown / yes",
        "differs: swap space: unknown / 0",
        "differs: what a sync takes: 300 us / 30 us",
    ];
    assert_eq!(differences, expected, "those of the machine come first");

    let lab = written(|second| second.manifest.host.turbo = Some(true));
    let said = lab.loadlab(&["compare", FIRST, SECOND]).ended_with(0).stdout;
    assert!(said.starts_with("differs: turbo: unknown / yes"), "{said}");
}

#[test]
fn smoke_runs_and_a_run_with_itself_are_refused() {
    let lab = written(|second| second.manifest.smoke = true);
    lab.loadlab(&["compare", FIRST, SECOND]).ended_with(2).complained(&["smoke run"]);
    lab.loadlab(&["compare", FIRST, FIRST]).ended_with(2).complained(&["both are the run"]);
}

#[test]
fn levels_on_the_command_line_are_looked_up() {
    let lab = written(|_| ());
    let compare = |first: &str, second: &str| lab.loadlab(&["compare", first, second, "--run", FIRST]);
    let said = compare("storage=logged,batch=500", "storage=unlogged,batch=500").ended_with(0);
    assert!(said.stdout.contains("faster"), "{}", said.stdout);
    compare("storage=logged", "storage=unloged")
        .ended_with(2)
        .complained(&["no level `unloged`", "logged, unlogged"]);
    compare("sotrage=logged", "storage=unlogged").ended_with(2).complained(&["no factor `sotrage`"]);
}
