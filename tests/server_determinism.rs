//! What a server is really told: the same statements with the same parameters by every process.

use std::fs;

use crate::lab::Lab;

/// Treatment, step, rows and checksums: found and expected.
type Content = (String, String, Option<u64>, Option<String>, Option<String>);

/// What the clients that make, load and index the tables say, in their order. Those that look at the server do so by the
/// clock.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    loads: Vec<String>,
    /// Treatment, step, rows, checksum by the generator and of the table.
    contents: Vec<Content>,
}

/// The server's log lies beside the folders that a program is told of.
const KEEP: &str = "cat \"$PGHOST/../server.log\" > log/$(printf %03d $LOADLAB_TRIAL)";

fn told(variables: [(&str, &str); 3]) -> Told {
    let [a, b, c] = variables;
    let lab = Lab::new().variable(a.0, a.1).variable(b.0, b.1).variable(c.0, c.1);
    let log = lab.folder().join("log");
    fs::create_dir(&log).unwrap();
    let environment = "environment: that tells what it is told\nengine: postgres\nversions: \"14-18\"\n";
    let settings = "settings: {log_statement: all, log_line_prefix: '%a|'}\n";
    lab.write("environments/postgres.yaml", &format!("{environment}{settings}"));
    let golden = format!("{}/tests/cases/golden/every-method.yaml", env!("CARGO_MANIFEST_DIR"));
    let golden = fs::read_to_string(golden).unwrap();
    lab.experiment(&format!("{golden}  - command: {{name: keep, run: [sh, -c, '{KEEP}']}}\n"));
    let fixed = ["--environments", "environments", "--on", "local", "--offline", "--allow-commands"];
    lab.loadlab(
        &[&["run", "experiment.yaml", "--set", "design.blocks=1", "--only", "order=index last"], &fixed[..]]
            .concat(),
    )
    .ended_with(0);
    let mut files: Vec<_> = fs::read_dir(&log).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let log: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    let loads = statements(&log);
    let mut contents = Vec::new();
    for record in lab.newest().records() {
        for step in record.measurements {
            contents.push((
                record.treatment.clone(),
                step.step,
                step.rows,
                step.checksum_expected,
                step.checksum,
            ));
        }
    }
    Told { loads, contents }
}

fn statements(log: &str) -> Vec<String> {
    // A statement of several lines goes on behind a tab.
    let log = log.replace("\n\t", " ");
    let mut loads = Vec::new();
    for line in log.lines() {
        let Some(rest) = line.strip_prefix("loadlab worker|") else { continue };
        // Prepared statements have numbers, which connections take as they come.
        let executed = rest.strip_prefix("LOG:  execute ").and_then(|rest| Some(rest.split_once(": ")?.1));
        let known = ["LOG:  statement: ", "DETAIL:  parameters: "];
        let said = executed.or_else(|| known.iter().find_map(|word| rest.strip_prefix(word)));
        loads.extend(said.map(str::to_owned));
    }
    loads
}

#[test]
fn two_processes_tell_the_server_the_same() {
    let one = told([("LC_ALL", "C"), ("TZ", "UTC"), ("TOKIO_WORKER_THREADS", "1")]);
    let other = told([("LC_ALL", "tr_TR.UTF-8"), ("TZ", "Asia/Kathmandu"), ("TOKIO_WORKER_THREADS", "6")]);
    let loads = one.loads.join("\n");
    let all = ["INSERT INTO", "COPY", "unnest", "FORMAT binary", "$1 = '1'", "it''s 3", "generate_series"];
    for part in all.into_iter().chain(["CREATE TABLE t", "CREATE INDEX ON t (kind)"]) {
        assert!(loads.contains(part), "{part} is not in {loads}");
    }
    assert_eq!(one.loads, other.loads);
    assert_eq!(one.contents, other.contents);
    assert!(one.contents.iter().filter(|content| content.3.is_some()).count() >= 8, "{:#?}", one.contents);
}
