//! What a trial will take: rows, disk, time. Rough on purpose.

#![expect(clippy::cast_precision_loss, reason = "sizes are estimates")]

use super::rates::RATES;
use super::width::{index_entry_bytes, row_bytes, text_row_bytes};
use crate::model::{
    BoundTrial, Cache, Column, Copy, CopySource, Decode, Dump, Insert, Load, LoadMethod, Persistence, Read,
    Restore, SameTransaction, Scalar, State, StepKind, Table, Unnest, Until,
};

/// A fresh cluster, its WAL segments included.
const CLUSTER_BYTES: f64 = 56e6;
/// What WAL adds to each row or index entry.
const WAL_RECORD: f64 = 30.0;
/// `max_wal_size` where it is not asked for.
const DEFAULT_MAX_WAL: f64 = 1_073_741_824.0;

/// What one trial will take.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Estimate {
    /// Rows loaded.
    pub rows: u64,
    /// Most bytes on the server's disk at one time.
    pub bytes_on_disk: u64,
    /// Wall time, the server's start and removal included.
    pub seconds: f64,
}

/// Estimates a trial from its tables and steps. Nothing overflows: numbers saturate.
#[must_use]
pub fn estimate(trial: &BoundTrial) -> Estimate {
    let shapes: Vec<Shape> = trial.tables.iter().map(Shape::of).collect();
    let mut total = Running {
        trial,
        indexed: vec![false; shapes.len()],
        shapes,
        seconds: RATES.server,
        wal: 0.0,
        files: 0.0,
        rows: 0,
    };
    for step in &trial.steps {
        // Repetitions read; none makes anything grow.
        for _ in 0..step.repeat {
            total.add(&step.kind);
        }
    }
    let tables: f64 = total.shapes.iter().map(|shape| shape.heap + shape.index).sum();
    let bytes = CLUSTER_BYTES + tables + total.wal.min(max_wal(trial)) + total.files;
    Estimate { rows: total.rows, bytes_on_disk: whole(bytes), seconds: total.seconds }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and is not negative")]
fn whole(bytes: f64) -> u64 {
    bytes as u64
}

fn max_wal(trial: &BoundTrial) -> f64 {
    let asked = trial.environment.settings.get("max_wal_size").map(Scalar::to_string);
    let units = [("kB", 1024.0), ("MB", 1_048_576.0), ("GB", 1_073_741_824.0), ("TB", 1_099_511_627_776.0)];
    let read = |text: String| -> Option<f64> {
        let unit = units.iter().find(|unit| text.ends_with(unit.0));
        let (digits, size) =
            unit.map_or((text.as_str(), 1_048_576.0), |unit| (text.trim_end_matches(unit.0), unit.1));
        digits.trim().parse::<f64>().ok().map(|number| number * size)
    };
    asked.and_then(read).unwrap_or(DEFAULT_MAX_WAL)
}

/// Sizes of a table over all copies.
struct Shape {
    rows: f64,
    row: f64,
    text_row: f64,
    heap: f64,
    index: f64,
    indexes: f64,
}

impl Shape {
    fn of(table: &Table) -> Self {
        let rows = table.rows as f64;
        let row = row_bytes(&table.columns);
        let entries = index_entries(table);
        Self {
            rows,
            row,
            text_row: text_row_bytes(&table.columns),
            heap: rows * row,
            index: rows * entries.iter().sum::<f64>(),
            indexes: entries.len() as f64,
        }
    }

    /// With a part of the rows, 0 to 1.
    fn part(&self, part: f64) -> Self {
        Self { rows: self.rows * part, heap: self.heap * part, index: self.index * part, ..*self }
    }
}

/// Seconds of a load whose rows would take `all` seconds as fast as they can.
fn clock_seconds(load: &Load, rows: f64, all: f64) -> f64 {
    match (&load.duration, load.rate) {
        (Some(window), _) => window.end().as_secs_f64(),
        (None, Some(rate)) => all.max(rows / rate.max(1) as f64),
        (None, None) => all,
    }
}

/// Part of a table's rows that a load reaches, 0 to 1.
fn part_loaded(load: &Load, rows: f64, all: f64) -> f64 {
    let Some(window) = &load.duration else { return 1.0 };
    let seconds = window.end().as_secs_f64();
    let paced = load.rate.map_or(f64::INFINITY, |rate| seconds * rate as f64 / rows.max(1.0));
    let fast = if all > 0.0 { seconds / all } else { 1.0 };
    fast.min(paced).min(1.0)
}

/// Bytes per row of each index. The statements are only looked through for words: this is an estimate.
fn index_entries(table: &Table) -> Vec<f64> {
    let Some(copy) = table.copies.first() else { return Vec::new() };
    let makes_index = |sql: &&String| {
        let upper = sql.to_ascii_uppercase();
        ["PRIMARY KEY", "UNIQUE", "INDEX"].iter().any(|word| upper.contains(word))
    };
    let statements =
        copy.indexes.iter().map(|sql| (sql, true)).chain(copy.ddl.iter().map(|sql| (sql, false)));
    statements
        .filter(|(sql, _)| makes_index(sql))
        .map(|(sql, of_its_own)| {
            let keys: Vec<&Column> = if of_its_own {
                named_columns(sql, &table.columns)
            } else {
                table.columns.iter().take(1).collect()
            };
            index_entry_bytes(&keys)
        })
        .collect()
}

fn named_columns<'a>(sql: &str, columns: &'a [Column]) -> Vec<&'a Column> {
    let words: Vec<&str> = sql.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    columns.iter().filter(|column| words.iter().any(|word| word.eq_ignore_ascii_case(&column.name))).collect()
}

/// The sums while steps are gone through.
struct Running<'a> {
    trial: &'a BoundTrial,
    shapes: Vec<Shape>,
    indexed: Vec<bool>,
    seconds: f64,
    wal: f64,
    files: f64,
    rows: u64,
}

impl Running<'_> {
    fn add(&mut self, step: &StepKind) {
        self.seconds += RATES.step;
        match step {
            StepKind::Create { table, with_indexes } => self.mark(*table, *with_indexes),
            StepKind::Index { table } => {
                self.mark(*table, true);
                if let Some(shape) = self.shapes.get(*table) {
                    self.seconds += shape.rows * shape.indexes * RATES.built_entry;
                }
            }
            StepKind::Sql { statements, .. } => self.seconds += statements.len() as f64 * RATES.round_trip,
            StepKind::Command(_) => self.seconds += RATES.command,
            StepKind::Load(load) => self.load(load),
            StepKind::Read(read) => self.read(read),
            StepKind::Dump(dump) => self.dump(dump),
            StepKind::Restore(restore) => self.restore(restore),
        }
    }

    fn dump(&mut self, dump: &Dump) {
        for shape in dump.tables.iter().filter_map(|table| self.shapes.get(*table)) {
            self.seconds += 2.0 * (shape.rows * RATES.read_row + shape.heap * RATES.byte);
            self.files += shape.rows * shape.text_row;
        }
        if dump.drop {
            dump.tables.iter().for_each(|table| self.indexed[*table] = false);
        }
    }

    fn restore(&mut self, restore: &Restore) {
        for table in &restore.tables {
            let Some(shape) = self.shapes.get(*table) else { continue };
            let entries = if restore.with_indexes { shape.rows * shape.indexes } else { 0.0 };
            let wal = shape.heap + if restore.with_indexes { shape.index } else { 0.0 };
            self.seconds += shape.rows * (RATES.copied_row + shape.row * RATES.byte + RATES.verified_row)
                + entries * RATES.built_entry
                + wal * RATES.wal_byte;
            self.wal += wal;
            self.indexed[*table] = restore.with_indexes;
        }
    }

    fn mark(&mut self, table: usize, indexed: bool) {
        if let Some(mark) = self.indexed.get_mut(table) {
            *mark |= indexed;
        }
    }

    fn load(&mut self, load: &Load) {
        let (Some(shape), Some(table)) = (self.shapes.get(load.table), self.trial.tables.get(load.table))
        else {
            return;
        };
        let entries = if self.indexed[load.table] { shape.rows * shape.indexes } else { 0.0 };
        let wal = if self.is_logged(load) {
            shape.heap + shape.index + (shape.rows + entries) * WAL_RECORD
        } else {
            0.0
        };
        let work = match &load.method {
            LoadMethod::Insert(insert) => insert_seconds(insert, shape, load.clients),
            LoadMethod::Copy(copy) => copy_seconds(copy, shape, load.clients),
            LoadMethod::Unnest(unnest) => unnest_seconds(unnest, shape, load.clients),
            LoadMethod::Generate(generate) => {
                server_seconds(RATES.generated_row, generate.rows_per_commit, shape, load.clients)
            }
            LoadMethod::Procedure(procedure) => {
                server_seconds(RATES.looped_row, procedure.rows_per_commit, shape, load.clients)
            }
        };
        let written = entries * RATES.index_entry + wal * RATES.wal_byte;
        let all = (work + written) / parallel(load.clients);
        self.seconds += clock_seconds(load, shape.rows, all);
        // What is loaded by duration is a part of the table.
        let part = part_loaded(load, shape.rows, all);
        let rows = if part < 1.0 { whole(shape.rows * part) } else { table.rows };
        let shape = shape.part(part);
        self.seconds += shape.rows * RATES.verified_row + until_seconds(load.until, shape.heap + shape.index);
        if matches!(&load.method, LoadMethod::Copy(copy) if copy.source == CopySource::Server) {
            self.files += shape.rows * shape.text_row;
            self.seconds += shape.rows * shape.text_row * RATES.byte;
        }
        self.shapes[load.table] = shape;
        self.wal += wal * part;
        self.rows = self.rows.saturating_add(rows);
    }

    /// Whether the rows go through WAL: not for unlogged tables, nor under `wal_level: minimal` for a table
    /// made or emptied in the same transaction.
    fn is_logged(&self, load: &Load) -> bool {
        let fresh =
            matches!(&load.method, LoadMethod::Copy(copy) if copy.same_transaction != SameTransaction::None);
        let level = self.trial.environment.settings.get("wal_level").map(Scalar::to_string);
        let minimal = level.is_some_and(|level| level.eq_ignore_ascii_case("minimal"));
        self.trial.tables[load.table].persistence == Persistence::Logged && !(fresh && minimal)
    }

    fn read(&mut self, read: &Read) {
        let Some(shape) = self.shapes.get(read.table) else { return };
        let once = shape.rows * RATES.read_row + shape.heap * RATES.byte;
        let decoded = if read.decode == Decode::None { 0.0 } else { shape.row * RATES.decoded_byte };
        self.seconds += (once + shape.rows * decoded) / parallel(read.clients);
        self.seconds += match read.cache {
            Cache::AsIs => 0.0,
            Cache::Warm => once,
            Cache::Cold => RATES.restart,
        };
        if read.state == State::Settled {
            self.seconds += shape.heap * (RATES.vacuum_byte + RATES.checkpoint_byte);
        }
    }
}

fn parallel(clients: u32) -> f64 {
    f64::from(clients.clamp(1, RATES.useful_clients))
}

fn commits(rows: f64, rows_per_commit: Option<u64>, clients: u32) -> f64 {
    f64::from(clients) + rows_per_commit.map_or(0.0, |per| rows / per.max(1) as f64)
}

fn insert_seconds(insert: &Insert, shape: &Shape, clients: u32) -> f64 {
    let per = |rows: u64| shape.rows / rows.max(1) as f64;
    let statement = if insert.prepared { RATES.prepared_statement } else { RATES.text_statement };
    shape.rows * (RATES.inserted_row + shape.row * RATES.byte)
        + per(insert.rows_per_statement) * statement
        + per(insert.rows_per_batch) * RATES.round_trip
        + commits(shape.rows, insert.rows_per_commit, clients) * RATES.commit
}

fn copy_seconds(copy: &Copy, shape: &Shape, clients: u32) -> f64 {
    shape.rows * (RATES.copied_row + shape.row * RATES.byte)
        + commits(shape.rows, copy.rows_per_commit, clients) * RATES.commit
}

fn unnest_seconds(unnest: &Unnest, shape: &Shape, clients: u32) -> f64 {
    let batches = shape.rows / unnest.rows_per_batch.max(1) as f64;
    shape.rows * (RATES.unnested_row + shape.row * RATES.byte)
        + batches * (RATES.prepared_statement + RATES.round_trip)
        + commits(shape.rows, unnest.rows_per_commit, clients) * RATES.commit
}

fn server_seconds(row: f64, rows_per_commit: Option<u64>, shape: &Shape, clients: u32) -> f64 {
    shape.rows * (row + shape.row * RATES.byte) + commits(shape.rows, rows_per_commit, clients) * RATES.commit
}

fn until_seconds(until: Until, bytes: f64) -> f64 {
    let checkpoint = bytes * RATES.checkpoint_byte;
    match until {
        Until::Committed => 0.0,
        Until::Durable => checkpoint,
        Until::Settled => checkpoint + bytes * RATES.vacuum_byte,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ColumnType, CopyFormat, Generator, Needs, Step, TableCopy, Verify};
    use crate::plan::width::tests::column;

    fn environment() -> crate::model::EnvironmentSpec {
        let json = serde_json::json!({
            "name": "postgres-15", "versions": {"min": 15, "max": 15}, "image": "postgres:15", "binaries": null,
            "init": {"locale": "C", "encoding": "UTF8", "checksums": "off", "wal_segment_mib": null},
            "settings": {}, "limits": {}, "storage": "layer", "fresh": "auto", "connection": "socket",
            "client_cpuset": null, "url_variable": "LOADLAB_URL",
        });
        serde_json::from_value(json).unwrap()
    }

    fn table(rows: u64, index: bool) -> Table {
        let indexes = if index { vec!["ALTER TABLE t ADD PRIMARY KEY (c)".to_owned()] } else { vec![] };
        let generator = Generator::Sequence { start: Scalar::Int(0), step: 1.0 };
        Table {
            name: "t".to_owned(),
            copies: vec![TableCopy {
                name: "t".to_owned(),
                ddl: vec!["CREATE TABLE t (c bigint)".to_owned()],
                indexes,
            }],
            columns: vec![column(ColumnType::Int8, generator)],
            persistence: Persistence::Logged,
            partitioned: false,
            rows,
            seed: 1,
        }
    }

    fn trial(table: Table, method: LoadMethod) -> BoundTrial {
        let load = Load {
            table: 0,
            method,
            clients: 1,
            until: Until::Committed,
            verify: Verify::Now,
            duration: None,
            rate: None,
        };
        let step = |name: &str, kind| Step {
            name: name.to_owned(),
            repeat: 1,
            timeout: std::time::Duration::from_mins(1),
            kind,
        };
        let steps = vec![
            step("create", StepKind::Create { table: 0, with_indexes: true }),
            step("load", StepKind::Load(load)),
        ];
        BoundTrial { environment: environment(), needs: Needs::default(), tables: vec![table], steps }
    }

    fn copy() -> LoadMethod {
        LoadMethod::Copy(Copy {
            format: CopyFormat::Binary,
            freeze: false,
            source: CopySource::Client,
            same_transaction: SameTransaction::None,
            rows_per_commit: None,
            chunk_bytes: 65_536,
            header: false,
        })
    }

    fn insert(rows_per_batch: u64) -> LoadMethod {
        LoadMethod::Insert(Insert {
            rows_per_statement: 1,
            rows_per_batch,
            rows_per_commit: None,
            prepared: true,
        })
    }

    #[test]
    fn disk_grows_with_rows_indexes_and_wal() {
        let plain = estimate(&trial(table(1_000_000, false), copy()));
        let indexed = estimate(&trial(table(1_000_000, true), copy()));
        assert_eq!(plain.rows, 1_000_000);
        // 36 bytes of heap a row and about as much WAL.
        assert!((120_000_000..200_000_000).contains(&plain.bytes_on_disk), "{plain:?}");
        assert!(indexed.bytes_on_disk > plain.bytes_on_disk + 25_000_000, "{indexed:?}");
        let unlogged = Table { persistence: Persistence::Unlogged, ..table(1_000_000, false) };
        assert!(estimate(&trial(unlogged, copy())).bytes_on_disk < plain.bytes_on_disk);
    }

    #[test]
    fn wal_ends_at_max_wal_size() {
        let mut trial = trial(table(1_000_000_000, false), copy());
        let before = estimate(&trial).bytes_on_disk;
        trial.environment.settings.insert("max_wal_size".to_owned(), Scalar::Text("2GB".to_owned()));
        assert_eq!(estimate(&trial).bytes_on_disk, before + 1_073_741_824);
    }

    #[test]
    fn slower_methods_take_longer() {
        let seconds = |method| estimate(&trial(table(1_000_000, false), method)).seconds;
        assert!(seconds(copy()) < seconds(insert(1000)));
        assert!(seconds(insert(1000)) < seconds(insert(1)));
    }

    fn timed(rows: u64, seconds: u64, rate: Option<u64>) -> Estimate {
        let mut trial = trial(table(rows, false), insert(1));
        let StepKind::Load(load) = &mut trial.steps[1].kind else { panic!("a load") };
        let span = std::time::Duration::from_secs;
        load.duration =
            Some(crate::model::Window { warm_up: span(5), measure: span(seconds), sample_every: span(1) });
        load.rate = rate;
        estimate(&trial)
    }

    #[test]
    fn a_load_by_duration_takes_its_time_and_as_many_rows_as_that_allows() {
        let (minute, hour) = (timed(1_000_000_000, 55, None), timed(1_000_000_000, 3595, None));
        assert!((60.0..70.0).contains(&minute.seconds), "{minute:?}");
        assert!(minute.rows < hour.rows && hour.rows < 1_000_000_000, "{minute:?} {hour:?}");
        assert!(minute.bytes_on_disk < hour.bytes_on_disk);
        assert_eq!(timed(1_000_000_000, 55, Some(100)).rows, 6000);
        assert_eq!(timed(50, 55, None).rows, 50);
    }

    #[test]
    fn absurd_numbers_saturate() {
        let estimate = estimate(&trial(table(u64::MAX, true), copy()));
        assert_eq!((estimate.rows, estimate.bytes_on_disk), (u64::MAX, u64::MAX));
        assert!(estimate.seconds.is_finite());
    }

    #[test]
    fn an_empty_table_costs_a_server() {
        let estimate = estimate(&trial(table(0, true), copy()));
        assert_eq!(estimate.rows, 0);
        assert!(estimate.seconds >= RATES.server);
    }
}
