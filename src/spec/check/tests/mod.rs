//! Tests of the rules over whole trials.

mod reads;
mod settings;

use std::time::Duration;

use indexmap::IndexMap;

use super::*;
use crate::model::{
    By, Cache, Checksums, Column, ColumnType, ConnectionPath, Copy, CopyFormat, CopySource, Decode,
    EnvironmentSpec, FreshMethod, Generator, InitOptions, Insert, Limits, Load, LoadMethod, Needs,
    Persistence, Read, ReadMethod, SameTransaction, Scalar, SelectMode, State, Step, StepKind, Storage,
    Table, TableCopy, TextOrBinary, TextShape, Until, Verify, VersionRange,
};

fn environment() -> EnvironmentSpec {
    EnvironmentSpec {
        name: "postgres-15".to_owned(),
        versions: VersionRange { min: 15, max: 15 },
        image: "postgres:15".to_owned(),
        binaries: None,
        block_size: None,
        builder: None,
        init: InitOptions { checksums: Checksums::Off, ..InitOptions::default() },
        settings: IndexMap::new(),
        limits: Limits::default(),
        storage: Storage::Layer,
        fresh: FreshMethod::Auto,
        connection: ConnectionPath::Socket,
        client_cpuset: None,
        url_variable: "LOADLAB_URL".to_owned(),
    }
}

fn column(number: usize) -> Column {
    Column {
        name: format!("c{number}"),
        kind: ColumnType::Int4,
        sql_type: "integer".to_owned(),
        not_null: false,
        nulls: 0.0,
        generator: Generator::Sequence { start: Scalar::Int(0), step: 1.0 },
    }
}

fn table(columns: usize) -> Table {
    let copy = TableCopy { name: "t".to_owned(), ddl: vec!["CREATE TABLE t ()".to_owned()], indexes: vec![] };
    Table {
        name: "t".to_owned(),
        copies: vec![copy],
        columns: (0..columns).map(column).collect(),
        persistence: Persistence::Logged,
        partitioned: false,
        rows: 1000,
        seed: 1,
    }
}

fn step(name: &str, kind: StepKind) -> Step {
    Step { name: name.to_owned(), repeat: 1, timeout: Duration::from_mins(10), kind }
}

fn insert() -> Insert {
    Insert { rows_per_statement: 1, rows_per_batch: 100, rows_per_commit: None, prepared: true }
}

fn copy() -> Copy {
    Copy {
        format: CopyFormat::Binary,
        freeze: false,
        source: CopySource::Client,
        same_transaction: SameTransaction::None,
        rows_per_commit: None,
        chunk_bytes: 64 * 1024,
        header: false,
    }
}

fn frozen() -> Copy {
    Copy { freeze: true, same_transaction: SameTransaction::Truncate, ..copy() }
}

fn load(method: LoadMethod) -> StepKind {
    let (table, clients, duration, rate) = (0, 1, None, None);
    let (until, verify) = (Until::Committed, Verify::Now);
    StepKind::Load(Load { table, method, clients, until, verify, duration, rate })
}

fn read() -> Read {
    Read {
        table: 0,
        columns: vec!["c0".to_owned()],
        method: ReadMethod::Select { mode: SelectMode::Streamed, format: TextOrBinary::Binary },
        decode: Decode::None,
        clients: 1,
        by: By::Pages,
        cache: Cache::AsIs,
        state: State::AsLoaded,
    }
}

fn create() -> StepKind {
    StepKind::Create { table: 0, with_indexes: true }
}

/// create, load, with the method given.
fn trial(method: LoadMethod) -> BoundTrial {
    let steps = vec![step("create", create()), step("load", load(method))];
    BoundTrial { environment: environment(), needs: Needs::default(), tables: vec![table(3)], steps }
}

fn with_steps(kinds: Vec<StepKind>) -> BoundTrial {
    let steps = (0..).zip(kinds).map(|(number, kind)| step(&format!("step {number}"), kind)).collect();
    BoundTrial { environment: environment(), needs: Needs::default(), tables: vec![table(3)], steps }
}

fn with_settings(settings: &[(&str, Scalar)]) -> BoundTrial {
    let mut trial = trial(LoadMethod::Copy(copy()));
    trial.environment.settings =
        settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    trial
}

fn text(value: &str) -> Scalar {
    Scalar::Text(value.to_owned())
}

fn set_clients(trial: &mut BoundTrial, clients: u32) {
    for step in &mut trial.steps {
        if let StepKind::Load(load) = &mut step.kind {
            load.clients = clients;
        }
    }
}

/// `pointer: message` of every finding.
fn found(trial: &BoundTrial) -> Vec<String> {
    check_trial(trial)
        .into_iter()
        .map(|finding| format!("{}: {}", finding.pointer, finding.message))
        .collect()
}

#[track_caller]
fn assert_one(trial: &BoundTrial, pointer: &str, part: &str) {
    let findings = found(trial);
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].starts_with(pointer) && findings[0].contains(part), "{findings:?}");
}

#[track_caller]
fn assert_fine(trial: &BoundTrial) {
    assert_eq!(found(trial), Vec::<String>::new());
}

#[test]
fn ordinary_trials_are_fine() {
    assert_fine(&trial(LoadMethod::Copy(copy())));
    assert_fine(&trial(LoadMethod::Insert(insert())));
    assert_fine(&trial(LoadMethod::Copy(frozen())));
    let mut unlogged = trial(LoadMethod::Copy(frozen()));
    unlogged.tables[0].persistence = Persistence::Unlogged;
    assert_fine(&unlogged);
    let mut empty = trial(LoadMethod::Copy(copy()));
    empty.tables[0].rows = 0;
    assert_fine(&empty);
}

#[test]
fn bind_parameters_end_at_65535() {
    let with = |rows: u64, columns: usize| {
        let method = Insert { rows_per_statement: rows, rows_per_batch: rows, ..insert() };
        let mut trial = trial(LoadMethod::Insert(method));
        trial.tables[0] = table(columns);
        trial
    };
    assert_fine(&with(65_535, 1));
    assert_one(&with(65_536, 1), "steps.1.load.method.insert.rows_per_statement", "65536 bind parameters");
    assert_fine(&with(21_845, 3));
    let findings = check_trial(&with(1000, 66));
    assert!(findings[0].hint.as_ref().unwrap().contains("is 992;"), "{findings:?}");
    // u64::MAX rows do not overflow.
    assert!(!found(&with(u64::MAX, 66)).is_empty());
}

#[test]
fn unprepared_statements_have_no_parameters_but_a_longest_message() {
    let with = |rows: u64| {
        let method = Insert { rows_per_statement: rows, rows_per_batch: rows, prepared: false, ..insert() };
        trial(LoadMethod::Insert(method))
    };
    assert_fine(&with(100_000));
    assert_one(&with(100_000_000), "steps.1.load.method.insert.rows_per_statement", "1 GiB");
}

#[test]
fn batches_are_made_of_whole_statements_and_commits_of_whole_batches() {
    let method = Insert { rows_per_statement: 30, rows_per_batch: 100, ..insert() };
    assert_one(
        &trial(LoadMethod::Insert(method)),
        "steps.1.load.method.insert.rows_per_batch",
        "statements of 30",
    );
    let method = Insert { rows_per_commit: Some(99), ..insert() };
    assert_one(
        &trial(LoadMethod::Insert(method)),
        "steps.1.load.method.insert.rows_per_commit",
        "every 99 rows",
    );
    for method in [
        Insert { rows_per_statement: 0, ..insert() },
        Insert { rows_per_batch: 0, ..insert() },
        Insert { rows_per_commit: Some(0), ..insert() },
    ] {
        assert_one(&trial(LoadMethod::Insert(method)), "steps.1.load.method.insert", "cannot be 0");
    }
}

#[test]
fn freeze_needs_its_own_transaction() {
    let freeze = "steps.1.load.method.copy.freeze";
    let alone = Copy { freeze: true, ..copy() };
    assert_one(&trial(LoadMethod::Copy(alone.clone())), freeze, "created or truncated");
    assert!(check_trial(&trial(LoadMethod::Copy(alone)))[0].hint.as_ref().unwrap().contains("documentation"));

    let mut workers = trial(LoadMethod::Copy(frozen()));
    set_clients(&mut workers, 4);
    assert_one(&workers, freeze, "4 clients would load 1 table");

    let mut partitioned = trial(LoadMethod::Copy(frozen()));
    partitioned.tables[0].partitioned = true;
    assert_one(&partitioned, freeze, "partitioned");

    let commits = Copy { rows_per_commit: Some(100), ..frozen() };
    assert_one(&trial(LoadMethod::Copy(commits)), freeze, "rows_per_commit");
}

#[test]
fn a_table_is_created_once() {
    let creating = Copy { freeze: true, same_transaction: SameTransaction::Create, ..copy() };
    assert_fine(&with_steps(vec![load(LoadMethod::Copy(creating.clone()))]));
    assert_one(
        &trial(LoadMethod::Copy(creating.clone())),
        "steps.1.load.method.copy.same_transaction",
        "has created it",
    );
    let mut clients = with_steps(vec![load(LoadMethod::Copy(Copy { freeze: false, ..creating }))]);
    set_clients(&mut clients, 2);
    assert_one(&clients, "steps.0.load.method.copy.same_transaction", "one client per table");
    let twice = with_steps(vec![create(), create(), load(LoadMethod::Copy(copy()))]);
    assert_one(&twice, "steps.1.create", "already");
}

#[test]
fn tables_exist_before_they_are_used() {
    assert_one(&with_steps(vec![load(LoadMethod::Copy(copy()))]), "steps.0.load.table", "does not exist yet");
    let late = with_steps(vec![StepKind::Index { table: 0 }, load(LoadMethod::Copy(copy()))]);
    assert_one(&late, "steps.0.index", "does not exist yet");
    let unread = with_steps(vec![create(), StepKind::Read(read()), load(LoadMethod::Copy(copy()))]);
    assert_one(&unread, "steps.1.read.table", "no step before has loaded it");
}

#[test]
fn rows_are_loaded_once_or_after_truncate() {
    let twice = |second: Copy| {
        with_steps(vec![create(), load(LoadMethod::Copy(copy())), load(LoadMethod::Copy(second))])
    };
    assert_one(&twice(copy()), "steps.2.load.table", "has loaded table `t` already");
    assert_fine(&twice(frozen()));
    let sql = StepKind::Sql { statements: vec!["truncate t".to_owned()], transaction: false };
    assert_fine(&with_steps(vec![
        create(),
        load(LoadMethod::Copy(copy())),
        sql,
        load(LoadMethod::Copy(copy())),
    ]));
}

#[test]
fn indexes_are_made_once() {
    let mut trial = with_steps(vec![create(), load(LoadMethod::Copy(copy())), StepKind::Index { table: 0 }]);
    assert_fine(&trial);
    trial.tables[0].copies[0].indexes = vec!["CREATE INDEX ON t (c0)".to_owned()];
    assert_one(&trial, "steps.2.index", "already");
    trial.steps[0].kind = StepKind::Create { table: 0, with_indexes: false };
    assert_fine(&trial);
}

#[test]
fn clients_have_limits() {
    let with = |clients: u32, copies: usize| {
        let mut trial = trial(LoadMethod::Copy(copy()));
        let original = trial.tables[0].copies[0].clone();
        trial.tables[0].copies =
            (0..copies).map(|number| TableCopy { name: format!("t{number}"), ..original.clone() }).collect();
        set_clients(&mut trial, clients);
        trial
    };
    let pointer = "steps.1.load.clients";
    assert_fine(&with(3, 3));
    assert_fine(&with(95, 1));
    assert_one(&with(2, 3), pointer, "cannot feed 3 copies");
    assert_one(&with(0, 1), pointer, "0 clients");
    assert_one(&with(1001, 1), pointer, "1001 clients");
    assert_one(&with(96, 1), pointer, "max_connections: 100");
    let mut more = with(96, 1);
    more.environment.settings.insert("max_connections".to_owned(), Scalar::Int(200));
    assert_fine(&more);
}

#[test]
fn header_lines_and_chunks_have_rules() {
    let header = Copy { header: true, ..copy() };
    assert_one(
        &trial(LoadMethod::Copy(header.clone())),
        "steps.1.load.method.copy.header",
        "binary has no header",
    );
    assert_fine(&trial(LoadMethod::Copy(Copy { format: CopyFormat::Csv, ..header })));
    for chunk_bytes in [0, 999, 512 * 1024 * 1024 + 1, u32::MAX] {
        let chunk = Copy { chunk_bytes, ..copy() };
        assert_one(&trial(LoadMethod::Copy(chunk)), "steps.1.load.method.copy.chunk", "messages of");
    }
}

#[test]
fn steps_have_names_time_and_a_purpose() {
    let mut same = trial(LoadMethod::Copy(copy()));
    same.steps[1].name = "create".to_owned();
    assert_one(&same, "steps.1.load.name", "named `create`");
    let mut hurried = trial(LoadMethod::Copy(copy()));
    hurried.steps[1].timeout = Duration::ZERO;
    assert_one(&hurried, "steps.1.load.timeout", "no time");
    assert_one(&with_steps(vec![create()]), "steps", "nothing to measure");
    assert_one(&with_steps(vec![]), "steps", "nothing to measure");
}

#[test]
fn tables_have_limits() {
    let with = |change: fn(&mut Table)| {
        let mut trial = trial(LoadMethod::Copy(copy()));
        change(&mut trial.tables[0]);
        trial
    };
    assert_fine(&with(|changed| *changed = table(1600)));
    assert_one(&with(|changed| *changed = table(1601)), "tables.t.columns", "1601 columns");
    assert_one(&with(|changed| *changed = table(0)), "tables.t.columns", "no column");
    assert_fine(&with(|table| table.rows = 1_000_000_000_000));
    assert_one(&with(|table| table.rows = u64::MAX), "tables.t.rows", "EB on disk");
    let wide = with(|table| {
        table.columns = (0..1600)
            .map(|number| Column {
                kind: ColumnType::Text,
                generator: Generator::Random(TextShape {
                    min_length: 8,
                    max_length: 8,
                    compressibility: 0.0,
                }),
                ..column(number)
            })
            .collect();
    });
    // A real server answers "row is too big: size 14424, maximum size 8160".
    assert_one(&wide, "tables.t.values", "take about 14424 bytes");
}

#[test]
fn physical_tables_have_different_names() {
    let mut copies = trial(LoadMethod::Copy(copy()));
    let copy = copies.tables[0].copies[0].clone();
    copies.tables[0].copies = vec![copy; 3];
    set_clients(&mut copies, 3);
    assert_one(&copies, "tables.t.ddl", "same name `t`");
    let mut tables = trial(LoadMethod::Insert(insert()));
    tables.tables.push(Table { name: "u".to_owned(), ..table(2) });
    assert_one(&tables, "tables.u.ddl", "both create `t`");
}
