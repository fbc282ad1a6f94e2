//! Loads by duration and at a rate against real servers, some of them paused on purpose.

use std::collections::BTreeMap;
use std::time::Duration;

use loadlab::model::{Measurement, Outcome, Phase, Sample, TrialRecord};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::lab::{Lab, Server, step};

/// Ways to load for a short time, with the clients and copies of the table.
const WAYS: &str = "
experiment: by_duration
question: Is everything there that was acknowledged?
environment: postgres
design:
  blocks: 1
  factors:
    way:
      one row a commit: {clients: 1, copies: 1, rows: 1, kind: insert}
      several clients on one table: {clients: 3, copies: 1, rows: 40, kind: insert}
      several tables: {clients: 4, copies: 3, rows: 20, kind: insert}
      copy to one table: {clients: 2, copies: 1, rows: 70, kind: copy}
      copy to several tables: {clients: 3, copies: 2, rows: 70, kind: copy}
      unnest to several tables: {clients: 3, copies: 2, rows: 60, kind: unnest}
tables:
  t:
    ddl: 'CREATE TABLE {{ table }} (id bigint PRIMARY KEY, name text, made timestamptz)'
    copies: '{{ way.copies }}'
    rows: 900_001
    values: {id: {sequence: {start: 1}}}
steps:
  - create: t
  - load:
      {name: load, when: \"{{ way.kind == 'insert' }}\", table: t, clients: '{{ way.clients }}',
       method: {insert: {rows_per_batch: '{{ way.rows }}', rows_per_commit: '{{ way.rows * 2 if way.rows > 1 else 1 }}'}},
       duration: {warm_up: 300ms, measure: 700ms, sample_every: 50ms}}
  - load:
      {name: load, when: \"{{ way.kind == 'copy' }}\", table: t, clients: '{{ way.clients }}',
       method: {copy: {rows_per_commit: '{{ way.rows }}'}},
       duration: {warm_up: 300ms, measure: 700ms, sample_every: 50ms}, until: settled}
  - load:
      {name: load, when: \"{{ way.kind == 'unnest' }}\", table: t, clients: '{{ way.clients }}',
       method: {unnest: {rows_per_batch: '{{ way.rows }}', rows_per_commit: 150}},
       duration: {warm_up: 300ms, measure: 700ms, sample_every: 50ms}}
  - read: {table: t, clients: '{{ way.copies }}', method: {select: {mode: {portal: {fetch_size: 50}}}}, decode: values}
";

/// One client, one row a commit.
fn paced(load: &str) -> String {
    format!(
        "
experiment: paced
question: What does a pause do?
environment: postgres
design: {{blocks: 1}}
tables: {{t: {{ddl: 'CREATE TABLE t (id bigint)', rows: 5_000_000, values: {{id: {{sequence: {{start: 1}}}}}}}}}}
steps:
  - create: t
  - load: {{table: t, method: {{insert: {{rows_per_commit: 1}}}}, {load}}}
"
    )
}

/// Rows of a phase by its samples: of each client, the last less the first of the measured phase.
fn rows_by_samples(samples: &[Sample], phase: Phase) -> u64 {
    let mut clients: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for sample in samples.iter().filter(|sample| sample.phase == phase) {
        clients.entry(sample.client).or_insert((sample.rows, sample.rows)).1 = sample.rows;
    }
    // Before the warm-up there was nothing, so its last point is its sum.
    let of = |(first, last): &(u64, u64)| if phase == Phase::WarmUp { *last } else { last - first };
    clients.values().map(of).sum()
}

/// What is true of every load by duration that went well.
fn holds(record: &TrialRecord, load: &Measurement) {
    let way = &record.treatment;
    assert_eq!(record.outcome, Outcome::Ok, "{way}: {:?}", record.error);
    let outside = load.outside.expect("a load by duration");
    let rows = load.rows.expect("rows");
    assert_eq!(load.rows_in_table, Some(outside.rows_warm_up + rows + outside.rows_after), "{way}");
    assert!(load.checksum.is_some() && load.checksum == load.checksum_expected, "{way}");
    let samples: Vec<Sample> =
        record.samples.iter().filter(|sample| sample.step == load.step).cloned().collect();
    assert_eq!(rows_by_samples(&samples, Phase::Measure), rows, "{way}");
    assert_eq!(rows_by_samples(&samples, Phase::WarmUp), outside.rows_warm_up, "{way}");
    assert!(load.longest_gap.is_some_and(|gap| (0.0..=load.spans.seconds).contains(&gap)), "{way}: {load:?}");
}

fn every_way(server: Server) {
    if !server.is_here() {
        return;
    }
    let lab = Lab::new();
    lab.experiment(WAYS);
    let said = lab.run(server, &[]);
    let run = lab.newest();
    assert_eq!(run.records().len(), 6);
    for record in run.records() {
        let load = step(&record, "load");
        holds(&record, load);
        assert_eq!((load.spans.seconds, load.rows_expected), (0.7, None));
        assert!(load.rows > Some(0), "{}", record.treatment);
        assert!(load.counters.wal_bytes > Some(1000), "{:?}", load.counters);
        // 7 points of the warm-up with the edge, 15 of the window with both.
        let of_first = record.samples.iter().filter(|sample| sample.step == "load" && sample.client == 0);
        assert_eq!(of_first.count(), 6 + 15, "{}", record.treatment);
        let read = step(&record, "select");
        assert_eq!(read.rows, load.rows_in_table);
        assert_eq!(read.rows_expected, read.rows);
        assert!(read.longest_gap.is_some(), "a portal has fetches: {read:?}");
    }
    said.ended_with(0);
    let samples = run.parquet("samples");
    let phases = samples.column("phase").unwrap().str().unwrap();
    let of = |word| phases.iter().filter(|phase| *phase == Some(word)).count();
    assert!(of("warm_up") > 0 && of("measure") > of("warm_up"));
}

#[test]
fn what_was_acknowledged_by_duration_is_there_on_a_local_server() {
    every_way(Server::Local);
}

#[test]
fn what_was_acknowledged_by_duration_is_there_in_a_container() {
    every_way(Server::Container);
}

/// Runs an experiment in a lab of its own and stops the server's working process a while after it began to insert.
fn with_a_pause(lab: &Lab, load: &str, after: Duration, pause: Duration) -> TrialRecord {
    lab.experiment(&paced(load));
    let running = lab.start(Server::Local, &[]);
    let process = lab.wait_for_backend(Server::Local, running.pid(), "INSERT");
    std::thread::sleep(after);
    kill(Pid::from_raw(process), Signal::SIGSTOP).unwrap();
    std::thread::sleep(pause);
    kill(Pid::from_raw(process), Signal::SIGCONT).unwrap();
    running.end().ended_with(0);
    lab.newest().record()
}

/// T14, sysbench 167 and 408: a server that is paused during the warm-up and at its end, with a rate.
#[test]
fn what_the_warm_up_was_behind_with_is_not_measured() {
    let lab = Lab::alone();
    let load = "rate: 200, duration: {warm_up: 3s, measure: 2s, sample_every: 100ms}";
    let record = with_a_pause(&lab, load, Duration::from_millis(300), Duration::from_secs(3));
    let load = step(&record, "insert");
    holds(&record, load);
    // 400 are due in the window. The hundreds that the warm-up could not begin would come on top.
    assert!(load.rows <= Some(400 + 1), "{load:?}");
    assert!(load.outside.unwrap().rows_warm_up < 580, "the pause was in the warm-up: {load:?}");
    assert!(load.scheduled_latency.unwrap().count <= 400, "{load:?}");
    let phases: Vec<Phase> = record.samples.iter().map(|sample| sample.phase).collect();
    assert!(phases.contains(&Phase::WarmUp) && phases.contains(&Phase::Measure));
}

#[test]
fn a_stall_shows_in_the_gap_and_in_the_latency_from_the_intended_start() {
    let lab = Lab::alone();
    let load = "rate: 200, duration: {measure: 5s, sample_every: 1m}";
    let record = with_a_pause(&lab, load, Duration::from_millis(500), Duration::from_millis(1500));
    let load = step(&record, "insert");
    holds(&record, load);
    assert!(load.longest_gap >= Some(1.4), "{load:?}");
    assert!(load.stalled_share >= Some(0.2), "{load:?}");
    let (scheduled, batch) = (load.scheduled_latency.unwrap(), load.batch_latency.unwrap());
    // A third of the batches were due in the pause; only one of them was at work.
    assert!(scheduled.p90 > 0.3, "{scheduled:?}");
    assert!(batch.p90 < scheduled.p90, "{batch:?} {scheduled:?}");
    assert!(load.rows <= Some(1000 + 1), "{load:?}");
    let said = lab.loadlab(&["report", "--results", "results"]).ended_with(0).stdout;
    assert!(said.contains("STALLS: insert"), "{said}");
}

#[test]
fn a_rate_is_neither_exceeded_nor_forgotten() {
    let lab = Lab::new();
    lab.experiment(&paced("rate: 100, clients: 2, duration: {warm_up: 200ms, measure: 2s}"));
    lab.run(Server::Local, &[]).ended_with(0);
    let record = lab.newest().record();
    let load = step(&record, "insert");
    holds(&record, load);
    assert!((Some(100)..=Some(202)).contains(&load.rows), "{load:?}");
    // Without a duration the rate holds as well: the last of 60 rows is due after 0.59 s.
    let text = paced("rate: 100").replace("5_000_000", "60");
    lab.experiment(&text);
    lab.run(Server::Local, &[]).ended_with(0);
    let record = lab.newest().record();
    let load = step(&record, "insert");
    assert_eq!((load.rows, load.rows_in_table), (Some(60), Some(60)));
    assert!(load.spans.seconds > 0.58, "{load:?}");
    assert_eq!(load.scheduled_latency.map(|latency| latency.count), Some(60));
    assert!(load.outside.is_none() && load.longest_gap > Some(0.0), "{load:?}");
}

#[test]
fn rows_that_are_used_up_fail_the_trial_and_say_what_to_raise() {
    let lab = Lab::new();
    lab.experiment(&paced("duration: {measure: 20s}").replace("5_000_000", "50"));
    let said = lab.run(Server::Local, &[]);
    let record = lab.newest().record();
    assert_eq!(record.outcome, Outcome::Failed);
    let error = record.error.clone().unwrap();
    assert!(error.starts_with("step insert: all 50 rows of table t were loaded"), "{error}");
    assert!(error.contains("raise `rows` of the table"), "{error}");
    assert!(step(&record, "insert").rows_per_second().is_none());
    assert_ne!(said.code, Some(0));
}

#[test]
fn smoke_makes_durations_short() {
    let lab = Lab::new();
    lab.experiment(&paced("duration: {warm_up: 5m, measure: 30m}"));
    lab.run(Server::Local, &["--smoke"]).ended_with(0);
    let record = lab.newest().record();
    let load = step(&record, "insert");
    holds(&record, load);
    assert_eq!((load.spans.seconds, load.outside.unwrap().warm_up), (0.5, 0.1));
}

#[test]
fn ctrl_c_ends_a_load_by_duration() {
    let lab = Lab::alone();
    lab.experiment(&paced("duration: {measure: 10m}"));
    let running = lab.start(Server::Local, &[]);
    let run = running.pid();
    lab.wait_for_backend(Server::Local, run, "INSERT");
    running.interrupt();
    running.end().ended_with(130);
    lab.assert_nothing_left_soon(&[run]);
}
