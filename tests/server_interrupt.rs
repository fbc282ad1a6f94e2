//! Interruption: whatever ends a run, the machine is left as it was and the run can be completed.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use loadlab::model::Outcome;
use loadlab::store::{Event, Journal};
use nix::sys::signal::Signal;

use crate::lab::{Lab, Running, Server};
use crate::server_container::{IMAGE, docker};

/// Two blocks of a trial that takes its time in one statement of its load and of its read.
const SLOW: &str = "
experiment: slow
question: Is it completed?
environment: postgres
design: {blocks: 2}
tables: {t: {ddl: 'CREATE TABLE t (id bigint, name text)', rows: 150_000, values: {id: {sequence: {start: 1}}}}}
steps:
  - create: t
  - load: {table: t, method: {copy: {chunk: 1kB}}}
  - read: {table: t, method: {select: {mode: streamed}}, decode: values}
";

/// Six short trials.
const SHORT: &str = "
experiment: short
question: Is it completed?
environment: postgres
design: {blocks: 3, factors: {size: [10, 20]}, seed: 9}
tables: {t: {ddl: 'CREATE TABLE t (id bigint)', rows: '{{ size }}'}}
steps:
  - create: t
  - load: {table: t, method: {copy: {}}}
";

/// One trial that sleeps.
const SLEEPING: &str = "
experiment: sleeping
question: Is it ended?
environment: postgres
design: {blocks: 1}
tables: {t: {ddl: 'CREATE TABLE t (id bigint)', rows: 10}}
steps:
  - create: t
  - sql: SELECT pg_sleep(300)
";

/// Somebody else's container; removed at the end.
struct Foreign(Option<String>);

impl Foreign {
    fn beside(server: Server) -> Self {
        let name = format!("foreign-{}-{:?}", std::process::id(), Instant::now());
        let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        if server == Server::Local {
            return Self(None);
        }
        docker(&["run", "-d", "--name", &name, "--entrypoint", "sleep", IMAGE, "600"]);
        Self(Some(name))
    }

    fn assert_untouched(&self) {
        if let Some(name) = &self.0 {
            assert_eq!(docker(&["inspect", "--format", "{{.State.Running}}", name]), "true");
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        if let Some(name) = &self.0 {
            drop(Command::new("docker").args(["rm", "-fv", name]).output());
        }
    }
}

fn started_trials(lab: &Lab) -> usize {
    let Some(run) = lab.find() else { return 0 };
    run.stored.journal.events.iter().filter(|event| matches!(event, Event::Started { .. })).count()
}

fn wait_for_trial(lab: &Lab, number: usize) {
    let begin = Instant::now();
    while started_trials(lab) < number {
        assert!(begin.elapsed() < Duration::from_mins(1), "trial {number} never began");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Kills it as nobody can prevent, and waits until the machine is clean.
fn kill_hard(lab: &Lab, running: Running) {
    let run = running.pid();
    running.signal(Signal::SIGKILL);
    assert_eq!(running.end().code, None);
    lab.assert_nothing_left_soon(&[run]);
    if let Some(run) = lab.find() {
        assert!(run.stored.journal.damaged_lines.is_empty(), "{:?}", run.stored.journal.complaints());
    }
}

/// Every planned trial ended well, exactly once, in the planned order.
fn assert_complete(lab: &Lab, order: &str) -> Journal {
    let run = lab.newest();
    let journal = run.stored.journal.clone();
    let mut ended: BTreeMap<u64, u32> = BTreeMap::new();
    for event in &journal.events {
        if let Event::Finished(record) = event {
            assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
            *ended.entry(record.trial.number).or_default() += 1;
        }
    }
    let planned: BTreeMap<u64, u32> =
        (0..run.stored.manifest.trials_planned).map(|number| (number, 1)).collect();
    assert_eq!(ended, planned);
    assert_eq!(run.stored.manifest.order_digest, order);
    assert!(journal.lost().is_empty());
    let frame = run.parquet("measurements");
    let trials = frame.column("trial").unwrap().n_unique().unwrap();
    assert_eq!(trials as u64, run.stored.manifest.trials_planned);
    journal
}

fn killed_in_every_phase(server: Server) {
    if !server.is_here() {
        return;
    }
    let foreign = Foreign::beside(server);
    let lab = Lab::alone();
    lab.experiment(SLOW);

    let running = lab.start(server, &[]);
    wait_for_trial(&lab, 1);
    kill_hard(&lab, running);
    let order = lab.newest().stored.manifest.order_digest;

    for word in ["COPY", "SELECT"] {
        let running = lab.start(server, &["--resume"]);
        lab.wait_for_backend(server, running.pid(), word);
        kill_hard(&lab, running);
    }

    let running = lab.start(server, &["--resume"]);
    let last = running.pid();
    running.end().ended_with(0).complained(&["trial 1 was cut short by a kill; it is done again"]);
    assert_eq!(lab.left(&[last]), Vec::<String>::new());
    let journal = assert_complete(&lab, &order);
    let cut_short: Vec<(u64, u32)> = journal
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Lost { trial, attempt } => Some((*trial, *attempt)),
            _ => None,
        })
        .collect();
    assert_eq!(cut_short, [(0, 0), (0, 1), (0, 2)]);
    let attempts: Vec<u32> = lab.newest().records().iter().map(|record| record.attempt).collect();
    assert_eq!(attempts, [3, 0]);
    foreign.assert_untouched();
}

#[test]
fn a_kill_in_any_phase_leaves_nothing_of_a_local_server() {
    killed_in_every_phase(Server::Local);
}

#[test]
fn a_kill_in_any_phase_leaves_nothing_of_a_container() {
    killed_in_every_phase(Server::Container);
}

/// Kills at times that fall anywhere: the preparation, a start, a step, between trials, the writing of results.
fn killed_at_any_time(server: Server) {
    if !server.is_here() {
        return;
    }
    let foreign = Foreign::beside(server);
    let lab = Lab::alone();
    lab.experiment(SHORT);
    let mut order = None;
    for number in 0..12_u64 {
        // Spread over the first two seconds by a step that shares no factor with them.
        let delay = Duration::from_millis(20 + number * 911 % 2000);
        let resume = lab.find().is_some();
        let mut running = lab.start(server, if resume { &["--resume"] } else { &[] });
        std::thread::sleep(delay);
        if !running.runs() {
            running.end().ended_with(0);
            break;
        }
        kill_hard(&lab, running);
        if let Some(run) = lab.find() {
            let digest = run.stored.manifest.order_digest;
            assert_eq!(*order.get_or_insert_with(|| digest.clone()), digest);
        }
    }
    let said = lab.run(server, if order.is_some() { &["--resume"] } else { &[] }).ended_with(0);
    assert!(said.stdout.contains("6 trials in 3 blocks; all ok"), "{}", said.stdout);
    let order = order.unwrap_or_else(|| lab.newest().stored.manifest.order_digest);
    assert_complete(&lab, &order);
    assert_eq!(fs::read_dir(lab.folder().join("results/short")).unwrap().count(), 1, "one run all along");
    foreign.assert_untouched();
}

#[test]
fn kills_at_any_time_lose_no_trial_on_a_local_server() {
    killed_at_any_time(Server::Local);
}

#[test]
fn kills_at_any_time_lose_no_trial_in_a_container() {
    killed_at_any_time(Server::Container);
}

/// Starts the sleeping trial and waits until it sleeps.
fn sleeping(lab: &Lab, server: Server) -> Running {
    lab.experiment(SLEEPING);
    let running = lab.start(server, &[]);
    lab.wait_for_backend(server, running.pid(), "SELECT");
    running
}

#[test]
fn ctrl_c_or_a_polite_end_removes_the_server_and_says_how_to_resume() {
    for server in [Server::Local, Server::Container].into_iter().filter(|server| server.is_here()) {
        for polite in [false, true] {
            let lab = Lab::alone();
            let running = sleeping(&lab, server);
            let (run, begin) = (running.pid(), Instant::now());
            if polite {
                running.signal(Signal::SIGTERM);
            } else {
                running.interrupt();
            }
            running.end().ended_with(130).complained(&["ending:", "--resume"]);
            assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
            assert_eq!(lab.left(&[run]), Vec::<String>::new(), "when the program has ended, all is gone");
            let run = lab.newest();
            assert!(run.records().is_empty(), "a trial that was given up is no result");
            assert!(
                run.stored
                    .journal
                    .events
                    .iter()
                    .any(|event| matches!(event, Event::Cancelled { trial: 0, attempt: 0 }))
            );
            assert_eq!(run.stored.journal.next_attempt(0), 1);
            run.parquet("measurements");
        }
    }
}

#[test]
fn ctrl_c_twice_ends_at_once() {
    for server in [Server::Local, Server::Container].into_iter().filter(|server| server.is_here()) {
        let lab = Lab::alone();
        let running = sleeping(&lab, server);
        let run = running.pid();
        running.interrupt();
        std::thread::sleep(Duration::from_millis(10));
        let begin = Instant::now();
        running.interrupt();
        running.end().ended_with(130).complained(&["--resume"]);
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
        lab.assert_nothing_left_soon(&[run]);
    }
}

#[test]
fn ctrl_c_before_the_first_trial_is_no_different() {
    for delay in [30, 300, 900] {
        let lab = Lab::alone();
        lab.experiment(SLEEPING);
        let running = lab.start(Server::Local, &[]);
        let run = running.pid();
        std::thread::sleep(Duration::from_millis(delay));
        running.interrupt();
        let said = running.end();
        // Before the program has begun to listen, the signal ends it as it ends any program.
        assert!(said.code == Some(130) || (delay == 30 && said.code.is_none()), "{delay} ms: {said:?}");
        lab.assert_nothing_left_soon(&[run]);
    }
}

#[test]
fn a_changed_file_is_not_resumed() {
    let lab = Lab::alone();
    let running = sleeping(&lab, Server::Local);
    running.interrupt();
    running.end().ended_with(130);
    let before = lab.newest().stored;

    lab.experiment(&SLEEPING.replace("rows: 10", "rows: 11"));
    lab.run(Server::Local, &["--resume"]).ended_with(2).complained(&[
        "cannot be resumed",
        "changed",
        "start a new run",
    ]);
    lab.experiment(SLEEPING);
    lab.run(Server::Local, &["--resume", "--set", "tables.t.rows=12"])
        .ended_with(2)
        .complained(&["cannot be resumed"]);
    assert_eq!(lab.newest().stored, before, "nothing was written");
}

#[test]
fn two_resumes_of_one_run_are_not_possible_and_two_runs_are() {
    let lab = Lab::alone();
    let running = sleeping(&lab, Server::Local);
    running.interrupt();
    running.end().ended_with(130);
    let first = lab.start(Server::Local, &["--resume"]);
    lab.wait_for_backend(Server::Local, first.pid(), "SELECT");
    let owner = format!("in use by process {}", first.pid());
    let second = lab.run(Server::Local, &["--resume"]).ended_with(3);
    assert!(second.stderr.contains(&owner), "{}", second.stderr);

    // A run beside it, in the same results and cache, disturbs neither.
    lab.experiment(SHORT);
    let (one, two) = (lab.start(Server::Local, &[]), lab.start(Server::Local, &[]));
    one.end().ended_with(0);
    two.end().ended_with(0);
    assert_eq!(fs::read_dir(lab.folder().join("results/short")).unwrap().count(), 2);
    let run = first.pid();
    lab.wait_for_backend(Server::Local, run, "SELECT");
    first.interrupt();
    first.end().ended_with(130);
    assert_eq!(lab.left(&[run]), Vec::<String>::new());
}
