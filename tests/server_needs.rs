//! What an experiment needs, what initdb is told, and which majors and builders there are: whole runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use loadlab::model::{Outcome, TrialRecord};

use crate::lab::{Lab, Run, Server, step};

/// An experiment with these lines before its table and steps.
fn experiment(lines: &str) -> String {
    format!(
        "experiment: needs\nquestion: Does it run here?\n{lines}\n\
         tables:\n  t: {{ddl: 'CREATE TABLE t (id bigint PRIMARY KEY, name text)', rows: 500}}\n\
         steps:\n  - create: t\n  - load: {{name: load, table: t, method: copy}}\n  \
         - read: {{table: t, method: select, decode: values}}\n"
    )
}

fn outcomes(run: &Run) -> Vec<(String, Outcome)> {
    let mut outcomes: Vec<_> =
        run.records().into_iter().map(|record| (record.treatment, record.outcome)).collect();
    outcomes.sort_by(|a, b| a.0.cmp(&b.0));
    outcomes
}

fn texts(run: &Run, column: &str) -> Vec<Option<String>> {
    let frame = run.parquet("measurements");
    let column = frame.column(column).unwrap().str().unwrap();
    (0..column.len()).map(|row| column.get(row).map(str::to_owned)).collect()
}

const NEEDS: &str = "environment: postgres
design: {factors: {cores: [1, 100000]}, blocks: 2}
needs: {cores: '>= {{ cores }}', memory: '>= 1MB', disk: 1MB, tools: [sh], version: '>= 14'}";

fn a_treatment_without_its_needs_is_left_out(server: Server) {
    if !server.is_here() {
        return;
    }
    let lab = Lab::new();
    lab.experiment(&experiment(NEEDS));
    let said = lab.run(server, &[]).ended_with(0);
    let why = "it needs CPUs >= 100000, here it is";
    assert!(said.stderr.contains(&format!("note: cores=100000: not run here: {why}")), "{}", said.stderr);
    assert!(said.stdout.contains("4 trials in 2 blocks; 2 not run here, the others ok"), "{}", said.stdout);
    assert!(said.stdout.contains(why), "{}", said.stdout);
    let run = lab.newest();
    let expected = [("cores=1", Outcome::Ok), ("cores=100000", Outcome::NotRun)];
    let expected: Vec<_> =
        expected.iter().flat_map(|pair| [pair, pair]).map(|(t, o)| ((*t).to_owned(), *o)).collect();
    assert_eq!(outcomes(&run), expected);
    let not_run = texts(&run, "trial_outcome").iter().filter(|o| o.as_deref() == Some("not_run")).count();
    assert_eq!(not_run, 2);
    let errors = texts(&run, "trial_error");
    assert!(errors.iter().flatten().all(|error| error.contains(why)), "{errors:?}");
    let again = lab.run(server, &["--resume"]).ended_with(0);
    assert!(again.stderr.contains("nothing is left to resume"), "{}", again.stderr);
}

#[test]
fn a_treatment_without_its_needs_is_left_out_on_local_servers() {
    a_treatment_without_its_needs_is_left_out(Server::Local);
}

#[test]
fn a_treatment_without_its_needs_is_left_out_in_containers() {
    a_treatment_without_its_needs_is_left_out(Server::Container);
}

#[test]
fn a_plan_says_what_would_not_run_and_a_check_does_not_look_at_the_machine() {
    let lab = Lab::bare();
    lab.experiment(&experiment(NEEDS));
    let words = ["experiment.yaml", "--environments", "local"];
    let plan = lab.loadlab(&[&["plan"], words.as_slice(), &["--on", "local"]].concat()).ended_with(0).stdout;
    assert!(plan.contains("needs       cores=100000: not run here: it needs CPUs >= 100000"), "{plan}");
    let json = lab.loadlab(&[&["plan", "--format", "json"], words.as_slice()].concat()).ended_with(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["not_run"].as_array().map(Vec::len), Some(1), "{json}");
    let check = lab.loadlab(&[&["check"], words.as_slice()].concat()).ended_with(0).stdout;
    assert!(!check.contains("not run"), "{check}");
    assert!(lab.left(&[]).is_empty(), "a plan leaves nothing");
}

/// 14 is on no machine of ours, and nothing may be fetched.
const MISSING: &str = "environment: [postgres, missing]\ndesign: {blocks: 1}";

fn with_missing() -> Lab {
    let lab = Lab::bare();
    lab.write("local/missing.yaml", "environment: missing\nengine: postgres\nversions: 14\nbuilder: npm\n");
    lab
}

#[test]
fn a_server_that_is_missing_stops_the_run_unless_the_needs_name_it() {
    let lab = with_missing();
    lab.experiment(&experiment(MISSING));
    lab.run(Server::Local, &[]).ended_with(3).complained(&["PostgreSQL 14 from builder `npm`", "--from npm"]);
    assert!(lab.find().is_none(), "no trial was run");

    lab.experiment(&experiment(&format!("{MISSING}\nneeds: {{version: '>= 14'}}")));
    let said = lab.run(Server::Local, &[]).ended_with(0);
    assert!(said.stderr.contains("environment=missing: not run here: no PostgreSQL 14"), "{}", said.stderr);
    let run = lab.newest();
    assert_eq!(run.records().iter().filter(|record| record.outcome == Outcome::NotRun).count(), 1);
    let told = run.records().into_iter().filter_map(|record| record.error).collect::<String>();
    assert!(!told.contains("/bin"), "no path of this machine goes into results: {told}");
}

#[test]
fn a_need_for_a_backend_chooses_it_or_leaves_the_treatment_out() {
    let lab = Lab::new();
    lab.experiment(&experiment(
        "design: {factors: {where: [local, external]}, blocks: 1}\nneeds: {backend: '{{ where }}'}",
    ));
    let said = lab.loadlab(&["run", "experiment.yaml", "--environments", "local", "--offline"]).ended_with(0);
    assert!(said.stderr.contains("local server, as asked for"), "{}", said.stderr);
    assert!(said.stderr.contains("it needs backend external"), "{}", said.stderr);
    let run = lab.newest();
    let local = run.records().into_iter().find(|record| record.outcome == Outcome::Ok).unwrap();
    assert_eq!(local.treatment, "where=local");
}

const INITDB: &str = "environment: postgres
design:
  factors: {checksums: [on, off], segment: [1MB, 64MB], provider: [libc, icu]}
  exclude: [{checksums: off, segment: 64MB}, {provider: icu, segment: 64MB}]
  blocks: 1
server: {initdb: {checksums: '{{ checksums }}', wal_segment_size: '{{ segment }}', locale_provider: '{{ provider }}', icu_locale: en-US}}";

fn options_of_initdb_are_factors(server: Server) {
    if !server.is_here() {
        return;
    }
    let lab = Lab::new();
    // Not every build has ICU; the system's packages do.
    lab.write(
        "local/postgres.yaml",
        "environment: own\nengine: postgres\nversions: \"15-18\"\nbuilder: system\n",
    );
    lab.experiment(&experiment(INITDB));
    lab.run(server, &[]).ended_with(0);
    let records = lab.newest().records();
    assert_eq!(records.len(), 5);
    for record in &records {
        assert_eq!(record.outcome, Outcome::Ok, "{}: {:?}", record.treatment, record.error);
        assert!(step(record, "load").guards.is_empty(), "{}", record.treatment);
        let cluster = record.server.as_ref().unwrap().cluster.clone().unwrap();
        let is = |part: &str| record.treatment.contains(part);
        assert_eq!(cluster.data_checksums, is("checksums=on"), "{}", record.treatment);
        assert_eq!(cluster.wal_segment_size, if is("64MB") { 64 << 20 } else { 1 << 20 });
        let locale = (cluster.locale_provider.as_str(), cluster.locale.as_str());
        assert_eq!(locale, if is("provider=icu") { ("icu", "en-US") } else { ("libc", "C") });
        assert_eq!((cluster.block_size, cluster.encoding.as_str()), (8192, "UTF8"));
    }
    let providers = texts(&lab.newest(), "locale_provider");
    assert!(providers.contains(&Some("icu".to_owned())) && providers.contains(&Some("libc".to_owned())));
}

#[test]
fn options_of_initdb_are_factors_on_local_servers() {
    options_of_initdb_are_factors(Server::Local);
}

#[test]
fn options_of_initdb_are_factors_in_containers() {
    options_of_initdb_are_factors(Server::Container);
}

/// The names of the numbers that a trial has, by step.
fn metrics(record: &TrialRecord) -> Vec<String> {
    let mut names = Vec::new();
    for measurement in &record.measurements {
        let json = serde_json::to_value(measurement.counters).unwrap();
        let counters = json.as_object().unwrap();
        names.extend(counters.keys().map(|name| format!("{}.{name}", measurement.step)));
    }
    names
}

/// The same names on every major that is here, and what every major has really there. Gives the number of majors.
fn same_metrics(run: &Run) -> usize {
    let records = run.records();
    let ran: Vec<&TrialRecord> = records.iter().filter(|record| record.outcome != Outcome::NotRun).collect();
    let majors: Vec<i32> =
        ran.iter().map(|record| record.server.as_ref().unwrap().version_num / 10_000).collect();
    if majors.len() < records.len() {
        let why = records.iter().find_map(|record| record.error.clone());
        eprintln!("NOT TESTED on all majors, only on {majors:?}: {why:?}");
    }
    for record in &ran {
        assert_eq!(record.outcome, Outcome::Ok, "{}: {:?}", record.treatment, record.error);
        assert_eq!(metrics(record), metrics(ran[0]), "{}", record.treatment);
        let counters = &step(record, "load").counters;
        let there = [
            counters.checkpoints_timed,
            counters.checkpoints_requested,
            counters.wal_bytes,
            counters.wal_records,
        ];
        assert!(there.iter().all(Option::is_some), "{}: {counters:?}", record.treatment);
    }
    assert!(!ran.is_empty());
    ran.len()
}

/// What the servers of a run have said, read again and again while they live: a trial's log goes with its server.
fn logs_of(lab: &Lab, mut running: crate::lab::Running) -> BTreeMap<PathBuf, String> {
    let mut logs = BTreeMap::new();
    while running.runs() {
        std::thread::sleep(Duration::from_millis(100));
        let Some(run) = lab.find().map(|run| run.stored.manifest.run) else { continue };
        for entry in fs::read_dir(lab.cache().join("trials")).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().contains(&run)
                && let Ok(text) = fs::read_to_string(entry.path().join("server.log"))
            {
                logs.insert(entry.path(), text);
            }
        }
    }
    running.end().ended_with(0);
    logs
}

/// Pinned environments of several majors, as one factor.
fn over_majors() -> (Lab, &'static str) {
    let lab = Lab::with_fetched_servers();
    for (server, major) in
        [Server::Local, Server::Container].into_iter().flat_map(|s| [15, 17, 18].map(|m| (s, m)))
    {
        let text = format!("environment: pinned\nengine: postgres\nversions: {major}\n");
        lab.write(&format!("{}/postgres-{major}.yaml", server.word()), &text);
    }
    let lines = "environment: [postgres-15, postgres-17, postgres-18]\ndesign: {blocks: 1}\nneeds: {version: '>= 15'}";
    (lab, lines)
}

#[test]
fn counters_have_the_same_names_on_the_majors_of_all_images() {
    if Server::Container.is_here() {
        let (lab, lines) = over_majors();
        lab.experiment(&experiment(lines));
        lab.run(Server::Container, &[]).ended_with(0);
        same_metrics(&lab.newest());
    }
}

/// Case T12: statistics views were split and renamed between majors; a counter must not vanish with the view.
#[test]
fn counters_have_the_same_names_on_every_major_and_no_query_fails() {
    let (lab, lines) = over_majors();
    lab.experiment(&(experiment(lines) + "  - sql: {name: wait, run: SELECT pg_sleep(1)}\n"));
    // 17 and 18 are fetched into the cache of these tests when they are not there.
    let logs = logs_of(&lab, lab.start_fetching(Server::Local));
    let ran = same_metrics(&lab.newest());
    assert_eq!(logs.len(), ran);
    for text in logs.values() {
        assert!(text.contains("database system is ready"), "{text}");
        // Connections that come too early end with FATAL; a failed query with ERROR.
        let wrong = ["ERROR:", "PANIC:"].iter().any(|level| text.contains(level));
        assert!(!wrong, "{text}");
    }
}

/// ICU is not in every build; the provider of PostgreSQL itself is, from 17.
#[test]
fn locale_providers_are_a_factor_and_a_server_without_icu_is_told() {
    let lab = Lab::with_fetched_servers();
    lab.write(
        "local/newer.yaml",
        "environment: newer\nengine: postgres\nversions: \"15-18\"\nbuilder: pip\n",
    );
    let lines = "environment: newer\ndesign: {factors: {provider: [builtin, icu]}, blocks: 1}\n\
                 needs: {version: '>= 17'}\nserver: {initdb: {locale_provider: '{{ provider }}', \
                 builtin_locale: C.UTF-8, icu_locale: de}}";
    lab.experiment(&experiment(lines));
    let said = lab.start_fetching(Server::Local).end().ended_with(0);
    for record in lab.newest().records() {
        let icu = record.treatment == "provider=icu";
        if record.outcome == Outcome::NotRun {
            let told = record.error.unwrap_or_default();
            let fetched = if icu && told.contains("without ICU") { "ICU" } else { "a server of pip" };
            eprintln!("NOT TESTED without {fetched}: {told}");
            assert!(said.stderr.contains("not run here"), "{}", said.stderr);
            continue;
        }
        assert_eq!(record.outcome, Outcome::Ok, "{:?}", record.error);
        let cluster = record.server.unwrap().cluster.unwrap();
        let locale = (cluster.locale_provider.as_str(), cluster.locale.as_str());
        assert_eq!(locale, if icu { ("icu", "de") } else { ("builtin", "C.UTF-8") });
    }
}
