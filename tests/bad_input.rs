//! Bad input on the command line: the exit code, a clear sentence, quickly, and nothing left behind. No server is needed.
//!
//! The words of single diagnostics are the business of `invalid.rs`.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::lab::{Lab, Said};

/// From the start of the program to its message; with room for a machine under load.
const QUICK: Duration = Duration::from_secs(30);

/// No engine, no programs, nothing in the environment.
const NOWHERE: [(&str, &str); 3] =
    [("DOCKER_HOST", "unix:///nowhere/docker.sock"), ("PATH", "/nowhere"), ("HOME", "/nowhere")];

const HEAD: &str = "experiment: bad\nquestion: Is it refused?\nenvironment: postgres\n";
const DESIGN: &str = "design: {blocks: 1}\n";
const TABLE: &str = "tables: {t: {ddl: 'CREATE TABLE t (id bigint)', rows: 10}}\n";
const STEPS: &str = "steps: [{create: t}, {load: {table: t, method: {copy: {}}}}]\n";

fn good() -> String {
    format!("{HEAD}{DESIGN}{TABLE}{STEPS}")
}

/// A lab on a machine that has nothing, not even a cache.
fn lab() -> Lab {
    NOWHERE.into_iter().fold(Lab::bare(), |lab, (name, value)| lab.variable(name, value))
}

/// Runs `arguments`, which have to be refused with this exit code and these words, and leave no file.
#[track_caller]
fn refused(lab: &Lab, arguments: &[&str], code: i32, words: &[&str]) -> Said {
    let before = lab.files();
    let said = lab.loadlab(arguments).ended_with(code).complained(words).within(QUICK);
    assert_eq!(lab.files(), before, "something was left behind");
    assert!(said.stderr.starts_with("error"), "{}", said.stderr);
    said
}

/// `loadlab run` of a text, with more options.
#[track_caller]
fn run_refused(text: &str, more: &[&str], code: i32, words: &[&str]) {
    let lab = lab();
    lab.experiment(text);
    let start = ["run", "experiment.yaml", "--environments", "local", "--results", "results"];
    refused(&lab, &[&start, more].concat(), code, words);
}

#[test]
fn without_engine_and_binaries_it_is_said_why_and_what_to_do() {
    // A major that this machine does not have; where it has all of them, nothing can be missing.
    let lab = lab();
    let there = lab.loadlab(&["env", "list"]).stdout;
    let Some(absent) = (14..=18).rev().find(|major| !there.contains(&format!("PostgreSQL {major}."))) else {
        return;
    };
    lab.write("local/postgres.yaml", &format!("environment: none\nengine: postgres\nversions: {absent}\n"));
    lab.experiment(&good());
    let run = ["run", "experiment.yaml", "--environments", "local", "--results", "results", "--offline"];
    let words =
        ["nothing here can run", "no container engine answers", "no PostgreSQL", "what to do:", "env doctor"];
    refused(&lab, &run, 3, &words);
    refused(
        &lab,
        &[&run[..], &["--on", "local"]].concat(),
        3,
        &["no PostgreSQL", "what to do:", "env install"],
    );
}

#[test]
fn a_dead_engine_is_told_and_not_replaced_by_something_else() {
    run_refused(
        &good(),
        &["--on", "container"],
        3,
        &[
            "no container engine answers at DOCKER_HOST=unix:///nowhere/docker.sock",
            "what to do:",
            "--on local",
        ],
    );
    // Somebody listens and never answers.
    let lab = lab();
    let socket = lab.folder().join("silent.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let lab = lab.variable("DOCKER_HOST", &format!("unix://{}", socket.display()));
    lab.experiment(&good());
    let run = ["run", "experiment.yaml", "--environments", "local", "--on", "container"];
    refused(&lab, &run, 3, &["no answer"]);
}

#[test]
fn an_external_server_needs_a_url() {
    run_refused(&good(), &["--on", "external"], 3, &["LOADLAB_URL is not set", "what to do:"]);
}

#[test]
fn results_that_cannot_be_written_are_told_before_any_server_is_made() {
    for results in ["experiment.yaml", "/proc/nowhere/results"] {
        let lab = lab();
        lab.experiment(&good());
        let run = ["run", "experiment.yaml", "--environments", "local", "--results", results];
        refused(&lab, &run, 3, &[results, "--results"]);
    }
}

#[test]
fn an_unknown_version_is_refused() {
    let lab = lab();
    lab.write("local/postgres.yaml", "environment: none\nengine: postgres\nversions: 99\n");
    lab.experiment(&good());
    let run = ["run", "experiment.yaml", "--environments", "local"];
    refused(&lab, &run, 2, &["postgres.yaml:3:11", "14 to 18"]);
}

#[test]
fn files_that_are_none_are_named() {
    let lab = lab();
    lab.write("empty.yaml", "");
    lab.write("list.yaml", "[1, 2]");
    std::fs::write(lab.folder().join("binary.yaml"), b"experiment: \xff\xfe\x00\x01").unwrap();
    lab.write("null.yaml", "experiment: a\0b\n");
    for command in ["run", "check", "plan"] {
        refused(&lab, &[command, "nowhere.yaml"], 2, &["nowhere.yaml", "No such file"]);
        refused(&lab, &[command, "local"], 2, &["local", "not a file"]);
        refused(&lab, &[command, "/dev/zero"], 2, &["/dev/zero"]);
        for file in ["empty.yaml", "list.yaml", "binary.yaml", "null.yaml"] {
            refused(&lab, &[command, file], 2, &[file]);
        }
    }
}

#[test]
fn what_is_wrong_in_a_file_ends_with_2_before_any_server() {
    let column = "c".repeat(70);
    let columns: Vec<String> = (0..1601).map(|number| format!("c{number} int")).collect();
    let with = |table: &str, steps: &str| format!("{HEAD}{DESIGN}{table}{steps}");
    let ddl =
        |ddl: &str, rows: &str| format!("tables: {{t: {{ddl: 'CREATE TABLE t ({ddl})', rows: {rows}}}}}\n");
    let levels = (0..1000).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
    let matrix = format!("design: {{factors: {{a: [{levels}], b: [{levels}], c: [{levels}]}}}}\n");
    let used = "tables: {t: {ddl: 'CREATE TABLE t (id bigint)', rows: '{{ a + b + c }}'}}\n";
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        writeln!(bomb, "a{level}: &a{level} [{}]", vec![format!("*a{}", level - 1); 10].join(", ")).unwrap();
    }
    let factors = "design: {blocks: 1, factors: {storage: [logged, unlogged]}}\n";
    let template = |template: &str| {
        format!(
            "{HEAD}{factors}tables: {{t: {{ddl: \"CREATE TABLE t (id {template})\", rows: 10}}}}\n{STEPS}"
        )
    };
    let cases: Vec<(String, &[&str])> = vec![
        (format!("{}tabels: {{}}\n", good()), &["experiment.yaml:7:1", "tabels", "tables"]),
        (good().replace("method: {copy", "methd: {copy"), &["methd", "method"]),
        (template("{{ 'int' if storge == 'logged' else 'bigint' }}"), &["storge", "storage"]),
        (
            template("{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}"),
            &["experiment.yaml:"],
        ),
        (template("{{ 'x' * 1000000000 }}"), &["experiment.yaml:"]),
        (bomb, &["asks for too much"]),
        ("[".repeat(400_000), &["asks for too much"]),
        (with(&ddl(&format!("{column} int"), "10"), STEPS), &["63"]),
        (with(&ddl(&columns.join(", "), "10"), STEPS), &["1601", "1600"]),
        (with(&ddl("id int", "18446744073709551615"), STEPS), &["18446744073709551615"]),
        (with(&ddl("id int", "-1"), STEPS), &["-1"]),
        (format!("{HEAD}{matrix}{used}{STEPS}"), &["1000000000 combinations"]),
        (
            good().replace("experiment: bad", "experiment: ../../etc/bad"),
            &["experiment.yaml:1:13", "cannot be the name"],
        ),
        (
            good().replace("experiment: bad", "experiment: /etc/bad"),
            &["experiment.yaml:1:13", "cannot be the name"],
        ),
        (
            good().replace("environment: postgres", "environment: ../local/postgres"),
            &["experiment.yaml:3:14"],
        ),
        (good().replace("experiment: bad", "experiment: bad\nexperiment: worse"), &["experiment.yaml:2:1"]),
    ];
    for (text, words) in cases {
        run_refused(&text, &[], 2, words);
    }
}

/// The protocol counts parameters in 16 bits: 65,535 pass, one more does not.
#[test]
fn bind_parameters_have_a_limit() {
    let insert = |columns: u32, rows: u32| {
        let names: Vec<String> = (0..columns).map(|number| format!("c{number} int")).collect();
        format!(
            "{HEAD}{DESIGN}tables: {{t: {{ddl: 'CREATE TABLE t ({})', rows: 10}}}}\n\
             steps: [{{create: t}}, {{load: {{table: t, method: {{insert: {{rows_per_statement: {rows}}}}}}}}}]\n",
            names.join(", ")
        )
    };
    // 65,535 = 15 * 4,369.
    let lab = lab();
    lab.experiment(&insert(15, 4369));
    lab.loadlab(&["check", "experiment.yaml", "--environments", "local"]).ended_with(0).within(QUICK);
    run_refused(&insert(16, 4096), &[], 2, &["65536", "4095"]);
    run_refused(&insert(66, 1000), &[], 2, &["66000", "992"]);
}

#[test]
fn what_is_wrong_in_the_options_ends_with_2() {
    run_refused(&good(), &["--set", "tables.t.rosw=1"], 2, &["rosw", "rows"]);
    run_refused(&good(), &["--set", "nonsense"], 2, &["nonsense"]);
    run_refused(&good(), &["--set", "tables.t.rows=many"], 2, &["many"]);
    run_refused(&good(), &["--only", "storage=logged"], 2, &["storage"]);
    let factors = good()
        .replace(DESIGN, "design: {blocks: 1, factors: {rows: [10, 20]}}\n")
        .replace("rows: 10}", "rows: '{{ rows }}'}");
    run_refused(&factors, &["--only", "rows=30"], 2, &["30", "10", "20"]);
    run_refused(&good(), &["--profile", "quick"], 2, &["quick"]);
    run_refused(&good(), &["--on", "nonsense"], 2, &["nonsense", "auto, container, local, external"]);
    let lab = lab();
    lab.experiment(&good());
    refused(&lab, &["run", "experiment.yaml", "--environments", "nowhere"], 2, &["nowhere", "not a folder"]);
    run_refused(&good(), &["--resume"], 2, &["no run of bad to resume"]);
    run_refused(&good(), &["--resume", "../../nowhere"], 2, &["no run of bad to resume"]);
    run_refused(&good(), &["--nonsense"], 2, &["--nonsense"]);
    refused(&lab, &["report", "nowhere"], 2, &["nowhere", "run an experiment first"]);
    refused(&lab, &["report", "../nowhere"], 2, &["nowhere", "no folder of a run"]);
}

/// `check` and `plan` ask no server, so their answers for the experiments of this repository are the same everywhere.
#[test]
fn all_experiments_are_checked_and_planned_without_any_server() {
    let lab = lab();
    let root = env!("CARGO_MANIFEST_DIR");
    let folder = Path::new(root).join("experiments");
    let mut names: Vec<String> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "yaml"));
    names.sort();
    assert!(names.len() >= 4, "{names:?}");
    let before = lab.files();
    for name in names {
        let file = folder.join(&name).display().to_string();
        let checked = lab.loadlab(&["check", &file]).ended_with(0).within(QUICK);
        assert_eq!(checked.stderr, "", "no warnings");
        let planned = lab.loadlab(&["plan", &file]).ended_with(0).within(QUICK);
        let text = format!("{}\n{}", checked.stdout.replace(&file, &name), planned.stdout);
        insta::with_settings!({ snapshot_path => "snapshots/experiments", prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!(name.trim_end_matches(".yaml"), text);
        });
    }
    assert_eq!(lab.files(), before);
}

/// A million trials are planned within seconds, in memory that does not grow with them.
#[test]
fn a_plan_of_a_million_trials_is_quick_and_small() {
    let lab = lab();
    let factors: Vec<String> = ["a", "b", "c", "d", "e"]
        .iter()
        .map(|name| format!("{name}: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"))
        .collect();
    let design = format!("design: {{blocks: 10, factors: {{{}}}}}\n", factors.join(", "));
    let table = "tables: {t: {ddl: 'CREATE TABLE t (id bigint)', rows: '{{ 1 + a + b + c + d + e }}'}}\n";
    lab.experiment(&format!("{HEAD}{design}{table}{STEPS}"));
    for (more, lines) in [(None, 50), (Some("--all"), 1_000_000)] {
        let words: Vec<&str> =
            ["plan", "experiment.yaml", "--environments", "local"].into_iter().chain(more).collect();
        let begin = Instant::now();
        // 256 MB of address space in all; the program itself, with its libraries and stacks, takes a part of it.
        let mut limited = Command::new("/bin/sh");
        limited.arg("-c").arg("ulimit -v 262144; exec \"$0\" \"$@\"");
        let program = lab.command(&words);
        limited.arg(program.get_program()).args(program.get_args()).current_dir(lab.folder());
        limited.env("MALLOC_ARENA_MAX", "2").env("TOKIO_WORKER_THREADS", "2");
        let output = limited.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{error}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("1,000,000, each on a fresh server"), "{text}");
        assert!(text.lines().count() >= lines, "{} lines", text.lines().count());
        assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    }
    // Running it has to be asked for.
    refused(
        &lab,
        &["run", "experiment.yaml", "--environments", "local", "--on", "local"],
        2,
        &["1,000,000 trials", "--many"],
    );
}
