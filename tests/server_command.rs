//! Client programs as steps: what they are told, what they must not learn, and that nothing of them stays.

use std::fs;
use std::time::{Duration, Instant};

use loadlab::model::{Outcome, Stream, Unit};

use crate::lab::{Lab, Run, Server, step};

/// An experiment with one table of ten rows and these steps after its load.
fn experiment(steps: &str) -> String {
    format!(
        "
experiment: commands
question: What do programs do?
environment: postgres
design: {{blocks: 1, factors: {{batch: [7]}}}}
tables: {{t: {{ddl: 'CREATE TABLE t (id bigint, name text)', rows: 10, values: {{id: {{sequence: {{start: 1}}}}}}}}}}
steps:
  - create: t
  - load: {{table: t, method: {{copy: {{}}}}}}
{steps}"
    )
}

/// A step that runs a shell script.
fn shell(script: &str, more: &str) -> String {
    format!("  - command: {{run: [sh, -c, {}]{more}}}\n", serde_json::to_string(script).unwrap())
}

fn run(lab: &Lab, server: Server, steps: &str, code: i32) -> Run {
    lab.experiment(&experiment(steps)).run(server, &["--allow-commands"]).ended_with(code);
    lab.newest()
}

fn output(run: &Run, stream: Stream) -> String {
    let name = step(&run.record(), "command").output.clone().expect("kept");
    fs::read_to_string(run.stored.path.join(format!("{name}.{}", stream.name()))).unwrap()
}

/// Processes whose command line is exactly this.
fn processes(line: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines
        .filter(|text| String::from_utf8_lossy(text).trim_end_matches('\0').replace('\0', " ") == line)
        .count()
}

fn wait_for(what: &str, condition: impl Fn() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn programs_run_only_when_allowed() {
    let lab = Lab::new();
    lab.experiment(&experiment(&shell("touch was-here", "")));
    lab.run(Server::Local, &[])
        .ended_with(2)
        .complained(&["--allow-commands", "command: sh -c 'touch was-here'"]);
    assert!(lab.find().is_none() && !lab.folder().join("was-here").exists());
    let plan = lab.loadlab(&["plan", "experiment.yaml", "--environments", "local"]).ended_with(0);
    assert!(
        plan.stdout.contains("command: sh -c 'touch was-here' (needs --allow-commands)"),
        "{}",
        plan.stdout
    );
    let run = run(&lab, Server::Local, &shell("touch was-here", ""), 0);
    assert!(lab.folder().join("was-here").exists(), "programs work in the experiment's folder");
    assert!(step(&run.record(), "command").client_cpu_seconds.is_some());
}

fn the_server_is_reached_and_no_secret_told(server: Server) {
    if !server.is_here() {
        return;
    }
    let lab = Lab::new().variable("MY_TOKEN", "canary-token").variable("PGPASSWORD", "canary-password");
    let script = "env; ls -l $PGPASSFILE; cat $PGPASSFILE; ls -d $LOADLAB_SCRATCH; \
        psql -X -A -t -c 'SELECT count(*) AS n FROM t' && echo said >&2";
    let steps = shell(script, ", captures: {found: {regex: '^(\\d+)$', unit: rows}}");
    let run = run(&lab, server, &steps, 0);
    let command = step(&run.record(), "command").clone();
    assert_eq!((command.captures[0].value, command.captures[0].unit), (10.0, Unit::Rows));
    let text = output(&run, Stream::Stdout);
    assert!(text.contains("LOADLAB_FACTOR_BATCH=7\n") && text.contains("LOADLAB_ROWS_T=10\n"), "{text}");
    assert!(text.contains("-rw------- "), "{text}");
    assert!(!text.contains("canary"), "a secret of the host: {text}");
    assert_eq!(output(&run, Stream::Stderr), "said\n");
    let password = text.lines().find_map(|line| line.strip_prefix("*:*:*:*:"));
    assert!(password.is_none_or(|password| password == "***"), "{text}");
    let scratch = text.lines().find_map(|line| line.strip_prefix("LOADLAB_SCRATCH=")).expect("told");
    let file = text.lines().find_map(|line| line.strip_prefix("PGPASSFILE=")).expect("told");
    assert!(!fs::exists(scratch).unwrap() && !fs::exists(file).unwrap(), "removed afterwards");
    let captures = run.parquet("captures");
    assert_eq!(captures.height(), 1);
    assert_eq!(captures.column("name").unwrap().get(0).unwrap().get_str(), Some("found"));
    assert_eq!(captures.column("unit").unwrap().get(0).unwrap().get_str(), Some("rows"));
}

#[test]
fn a_local_server_is_reached_and_no_secret_told() {
    the_server_is_reached_and_no_secret_told(Server::Local);
}

#[test]
fn a_server_in_a_container_is_reached_and_no_secret_told() {
    the_server_is_reached_and_no_secret_told(Server::Container);
}

#[test]
fn an_external_tool_that_changes_its_text_fails_the_trial() {
    let lab = Lab::new();
    let tps = ", captures: {tps: {regex: 'tps = ([0-9.]+)', unit: per_second}}";
    let found = run(&lab, Server::Local, &shell("echo tps = 12.5", tps), 0);
    let value = step(&found.record(), "command").captures.first().map(|captured| captured.value);
    assert_eq!(value, Some(12.5));
    let missing = run(&lab, Server::Local, &shell("echo 12.5 tps", tps), 1).record();
    assert_eq!(missing.outcome, Outcome::Failed);
    let error = missing.error.expect("told");
    assert!(error.contains("the capture `tps` is missing in stdout"), "{error}");
}

#[test]
fn an_exit_code_fails_the_trial_with_the_last_words() {
    let lab = Lab::new();
    let failed =
        run(&lab, Server::Local, &shell("echo first >&2; echo the reason >&2; exit 3", ""), 1).record();
    let error = failed.error.expect("told");
    assert!(error.contains("`sh` ended with exit code 3") && error.contains("the reason"), "{error}");
    let missing = run(&lab, Server::Local, "  - command: {run: [no-such-program]}\n", 1).record();
    assert!(missing.error.is_some_and(|error| error.contains("cannot start `no-such-program`")));
}

#[test]
fn a_program_that_hangs_is_ended_with_all_it_started() {
    let lab = Lab::alone();
    let script = "echo begun; setsid sleep 86371 & sleep 86372 & sleep 86373";
    let run = run(&lab, Server::Local, &shell(script, ", timeout: 2s"), 1);
    assert_eq!(run.record().outcome, Outcome::TimedOut);
    assert_eq!(output(&run, Stream::Stdout), "begun\n", "what it had said is kept");
    for seconds in [86371, 86372, 86373] {
        assert_eq!(processes(&format!("sleep {seconds}")), 0);
    }
    lab.assert_nothing_left_soon(&[]);
}

#[test]
fn children_that_outlive_their_program_are_ended_and_not_waited_for() {
    let lab = Lab::new();
    let run = run(&lab, Server::Local, &shell("setsid sleep 86374 & sleep 86375 & echo done", ""), 0);
    assert_eq!(output(&run, Stream::Stdout), "done\n");
    assert_eq!(processes("sleep 86374") + processes("sleep 86375"), 0);
}

#[test]
fn a_gigabyte_of_output_is_cut_and_the_numbers_at_its_end_are_found() {
    let lab = Lab::new();
    let script = "head -c 1000000000 /dev/zero | tr '\\0' x; echo; echo tps = 4";
    let run = run(
        &lab,
        Server::Local,
        &shell(script, ", captures: {tps: {regex: '^tps = (.*)$', unit: per_second}}"),
        0,
    );
    let text = output(&run, Stream::Stdout);
    assert!(text.len() < 5 << 20 && text.contains("bytes left out]"), "{}", text.len());
}

#[test]
fn ctrl_c_ends_the_program_too() {
    let lab = Lab::alone();
    lab.experiment(&experiment(&shell("trap '' INT TERM; setsid sleep 86376 & sleep 86377", "")));
    let running = lab.start(Server::Local, &["--allow-commands"]);
    let pid = running.pid();
    wait_for("both sleep", || processes("sleep 86376") + processes("sleep 86377") == 2);
    running.interrupt();
    running.end().ended_with(130);
    assert_eq!(processes("sleep 86376") + processes("sleep 86377"), 0);
    lab.assert_nothing_left_soon(&[pid]);
}

#[test]
fn a_killed_run_leaves_no_program_to_go_on() {
    let lab = Lab::alone();
    lab.experiment(&experiment(&shell("setsid sleep 86378 & sleep 86379", "")));
    let running = lab.start(Server::Local, &["--allow-commands"]);
    let pid = running.pid();
    wait_for("both sleep", || processes("sleep 86378") + processes("sleep 86379") == 2);
    running.signal(nix::sys::signal::Signal::SIGKILL);
    drop(running.end());
    wait_for("the reaper ends them", || processes("sleep 86378") + processes("sleep 86379") == 0);
    lab.assert_nothing_left_soon(&[pid]);
}
