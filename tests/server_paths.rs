//! Content is the same by every path: tables made up at random, loaded by every method, read by every method, and brought
//! back from a dump. A failure names its seed; add it to [`REGRESSIONS`], and it is tried first for ever.

use std::sync::Arc;
use std::time::Instant;

use loadlab::data::Content;
use loadlab::engine::postgres::encode::{expected_content, quote_ident};
use loadlab::engine::postgres::load;
use loadlab::engine::postgres::read::{self, Parking, ReadRequest};
use loadlab::engine::postgres::verify::{first_difference, stored_content};
use loadlab::engine::postgres::work::{Progress, WorkDone};
use loadlab::engine::postgres::{DATABASE, Role, Session};
use loadlab::environment::ledger::Ledger;
use loadlab::environment::local::LocalProvider;
use loadlab::environment::program::{Pipeline, Program};
use loadlab::environment::{Instance, Launch, Provider};
use loadlab::model::{
    By, Cache, Column, ColumnType, Copy, CopyFormat, CopySource, Decode, FreshMethod, Generate, Generator,
    Insert, Load, LoadMethod, Persistence, Procedure, Read, ReadMethod, SameTransaction, Scalar, SelectMode,
    State, Table, TableCopy, TemplatePart, TextOrBinary, Unnest, Until, Verify,
};

use crate::server_encode::{Case, composites, moments, numbers, texts};
use crate::server_local::environment;

/// Seeds that once failed.
const REGRESSIONS: &[u64] = &[9];
/// Tables of these further seeds; `LOADLAB_SEEDS=200` tries so many instead, for a search that takes its time.
const SEEDS: std::ops::Range<u64> = 1..9;
/// Pieces that random texts are put together from.
const PIECES: &[&str] = &[
    "a",
    "\\",
    "'",
    "\"",
    "\t",
    "\n",
    "\r",
    ",",
    "\\.",
    "\\N",
    "{",
    "}",
    "é",
    "\u{1f600}",
    " ",
    "NULL",
    "$1",
    "\u{1}",
    "%",
    ";",
    "--",
    "\u{2028}",
    "$loadlab$",
    "|",
    "\\x",
    "E'",
    "0",
];

/// Steele, Lea and Flood's splitmix64 (2014).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.bits() % end as u64).unwrap()
    }

    fn text(&mut self, most: usize) -> String {
        (0..self.below(most + 1)).map(|_| PIECES[self.below(PIECES.len())]).collect()
    }

    fn digits(&mut self, most: usize) -> String {
        let digits: String = (0..=self.below(most))
            .map(|_| char::from(b'0' + u8::try_from(self.below(10)).unwrap()))
            .collect();
        digits
    }

    fn several(&mut self, mut one: impl FnMut(&mut Self) -> String) -> Generator {
        let values = (0..=self.below(6)).map(|_| Scalar::Text(one(self))).collect();
        Generator::Choice { values, weights: Vec::new() }
    }

    /// A day, and its era to stand behind a time.
    fn day(&mut self) -> (String, &'static str) {
        let (year, month) = (1 + self.below(294_000), 1 + self.below(12));
        let era = if year < 4713 && self.below(3) == 0 { " BC" } else { "" };
        (format!("{year:04}-{month:02}-{:02}", 1 + self.below(28)), era)
    }

    /// A column of a type with values that were never written down.
    fn fresh(&mut self) -> Case {
        match self.below(11) {
            0 => ("text", ColumnType::Text, self.several(|random| random.text(9))),
            1 => ("char(40)", ColumnType::Char(40), self.several(|random| random.text(4))),
            2 => ("bigint", ColumnType::Int8, self.several(|random| random.bits().cast_signed().to_string())),
            3 => (
                "double precision",
                ColumnType::Float8,
                self.several(|random| {
                    let number = f64::from_bits(random.bits());
                    if number.is_nan() {
                        "NaN".to_owned()
                    } else {
                        format!("{number:e}").replace("inf", "Infinity")
                    }
                }),
            ),
            4 => (
                "real",
                ColumnType::Float4,
                self.several(|random| {
                    let number = f32::from_bits(u32::try_from(random.bits() >> 32).unwrap());
                    if number.is_nan() {
                        "NaN".to_owned()
                    } else {
                        format!("{number:e}").replace("inf", "Infinity")
                    }
                }),
            ),
            5 => (
                "numeric",
                ColumnType::Numeric { precision: None, scale: 0 },
                self.several(|random| {
                    let sign = if random.below(2) == 0 { "-" } else { "" };
                    format!("{sign}{}.{}", random.digits(40), random.digits(40))
                }),
            ),
            6 => (
                "bytea",
                ColumnType::Bytea,
                self.several(|random| {
                    let bytes: String = (0..random.below(20))
                        .map(|_| ["00", "5c", "27", "ff", "0a"][random.below(5)])
                        .collect();
                    format!("\\x{bytes}")
                }),
            ),
            7 => (
                "date",
                ColumnType::Date,
                self.several(|random| {
                    let (day, era) = random.day();
                    format!("{day}{era}")
                }),
            ),
            8 => (
                "timestamptz",
                ColumnType::Timestamptz,
                self.several(|random| {
                    let (day, era) = random.day();
                    let clock = random.below(86_400);
                    let clock = format!("{:02}:{:02}:{:02}", clock / 3600, clock / 60 % 60, clock % 60);
                    format!("{day} {clock}.{:06}{era}", random.below(1_000_000))
                }),
            ),
            9 => (
                "jsonb",
                ColumnType::Jsonb,
                self.several(|random| {
                    let (key, value) = (random.text(3), random.text(5));
                    serde_json::json!({key: [value, random.below(1000), null_or(random)]}).to_string()
                }),
            ),
            _ => {
                let element = self.several(|random| random.text(4));
                let array = Generator::Array { min: 0, max: 5, element: Box::new(element) };
                ("text[]", ColumnType::Array(Box::new(ColumnType::Text)), array)
            }
        }
    }

    /// A column that the server can compute.
    fn computable(&mut self) -> Case {
        let part = |random: &mut Self| match random.below(2) {
            0 => TemplatePart::Text(random.text(4)),
            _ => TemplatePart::Row {
                divide: 1 + random.bits() % 20,
                modulo: random.bits() % 30,
                multiply: i64::try_from(random.below(9)).unwrap() - 4,
                add: i64::try_from(random.below(2001)).unwrap() - 1000,
                pad: u8::try_from(random.below(8)).unwrap(),
            },
        };
        let sequence = |start: String, step: f64| Generator::Sequence { start: Scalar::Text(start), step };
        let step = [1.0, -1.0, 3.0, 1000.0, -77.0][self.below(5)];
        match self.below(9) {
            0 => {
                let parts = (0..=self.below(4)).map(|_| part(self)).collect();
                ("text", ColumnType::Text, Generator::Template(parts))
            }
            1 => ("integer", ColumnType::Int4, sequence((self.below(1 << 30)).to_string(), step)),
            2 => (
                "bigint",
                ColumnType::Int8,
                sequence((self.bits().cast_signed() / 2).to_string(), step * 1e9),
            ),
            3 => {
                let kind = ColumnType::Numeric { precision: Some(30), scale: 6 };
                ("numeric(30,6)", kind, sequence(format!("-{}.5", self.digits(12)), step / 8.0))
            }
            4 => ("date", ColumnType::Date, sequence(format!("{:04}-02-28", 1 + self.below(9000)), step)),
            5 => (
                "timestamp",
                ColumnType::Timestamp,
                sequence(format!("{:04}-02-28", 1 + self.below(9000)), step * 1e6 + 0.5),
            ),
            6 => (
                "double precision",
                ColumnType::Float8,
                sequence(format!("{:e}", f64::from_bits(self.bits() >> 2)), step / 3.0),
            ),
            7 => {
                let (sql, kind, generator) = self.fresh();
                match generator {
                    Generator::Choice { values, .. } => (sql, kind, Generator::Constant(values[0].clone())),
                    _ => ("text", ColumnType::Text, Generator::Constant(Scalar::Text(self.text(9)))),
                }
            }
            _ => {
                let member =
                    (self.text(3).replace('\0', ""), ColumnType::Text, Generator::Template(vec![part(self)]));
                let number = ("n".repeat(9), ColumnType::Int8, sequence("5".to_owned(), step));
                ("jsonb", ColumnType::Jsonb, Generator::Object(vec![member, number]))
            }
        }
    }
}

fn null_or(random: &mut Random) -> serde_json::Value {
    if random.below(2) == 0 { serde_json::Value::Null } else { serde_json::json!(random.text(2)) }
}

/// Every third table holds only what the server can compute.
fn table(seed: u64) -> Table {
    let mut random = Random(seed);
    let computed = seed.is_multiple_of(3);
    let known: Vec<Case> = [numbers(), texts(), moments(), composites()].concat();
    let columns = (0..=random.below(14)).map(|number| {
        let (sql_type, kind, generator) = match random.below(2) {
            _ if computed => random.computable(),
            0 => known[random.below(known.len())].clone(),
            _ => random.fresh(),
        };
        let nulls = if computed { 0.0 } else { [0.0, 0.0, 0.3, 1.0][random.below(4)] };
        let name = format!("c{number} {}", ["", "\"q\"", "é", "select"][random.below(4)]);
        Column { name, kind, sql_type: sql_type.to_owned(), not_null: false, nulls, generator }
    });
    let columns: Vec<Column> = columns.collect();
    let definitions: Vec<String> =
        columns.iter().map(|column| format!("{} {}", quote_ident(&column.name), column.sql_type)).collect();
    let name = format!("Table \"{seed}\"");
    let ddl = vec![format!("CREATE TABLE {} ({})", quote_ident(&name), definitions.join(", "))];
    Table {
        name: name.clone(),
        copies: vec![TableCopy { name, ddl, indexes: Vec::new() }],
        columns,
        persistence: Persistence::Logged,
        partitioned: false,
        rows: 60 + random.bits() % 150,
        seed,
    }
}

/// The ways into a table that are legal for it.
fn ways(table: &Table) -> Vec<(LoadMethod, u32)> {
    let insert = |rows_per_statement: u64, rows_per_batch, prepared| {
        LoadMethod::Insert(Insert { rows_per_statement, rows_per_batch, rows_per_commit: Some(60), prepared })
    };
    let copy = |format, source, header| {
        LoadMethod::Copy(Copy {
            format,
            freeze: false,
            source,
            same_transaction: SameTransaction::None,
            rows_per_commit: None,
            chunk_bytes: 1000,
            header,
        })
    };
    let mut ways = vec![
        (insert(1, 20, true), 2),
        (insert(7, 14, true), 1),
        (insert(1, 1, false), 1),
        (insert(9, 27, false), 2),
    ];
    for source in [CopySource::Client, CopySource::Server] {
        for (format, header) in [
            (CopyFormat::Text, false),
            (CopyFormat::Csv, true),
            (CopyFormat::Csv, false),
            (CopyFormat::Binary, false),
        ] {
            ways.push((copy(format, source, header), 2));
        }
    }
    if !table.columns.iter().any(|column| matches!(column.kind, ColumnType::Array(_))) {
        ways.push((LoadMethod::Unnest(Unnest { rows_per_batch: 37, rows_per_commit: Some(74) }), 2));
    }
    if table.columns.iter().all(|column| column.computable().is_ok()) {
        ways.push((LoadMethod::Generate(Generate { rows_per_commit: Some(50), ..Generate::default() }), 2));
        ways.push((
            LoadMethod::Procedure(Procedure { rows_per_commit: Some(50), ..Procedure::default() }),
            2,
        ));
    }
    ways
}

/// A server with one table, and what that has to hold.
struct Paths<'a> {
    instance: &'a Instance,
    session: &'a Session,
    table: Arc<Table>,
    expected: Content,
}

impl Paths<'_> {
    async fn holds(&self, path: &str) {
        let stored = stored_content(&self.session.client, &self.table).await.unwrap();
        if stored != [self.expected] {
            let all = 0..self.table.rows;
            let found = first_difference(&self.session.client, &self.table, &[all]).await.unwrap();
            let words = found.map_or_else(String::new, |(_, difference)| difference.to_string());
            panic!(
                "seed {}: {path} gives other rows: {words}\ntable: {}",
                self.table.seed,
                serde_json::to_string(&*self.table).unwrap()
            );
        }
    }

    async fn load(&self, method: LoadMethod, clients: u32) {
        let path = format!("{method:?} by {clients}");
        let load = Load {
            table: 0,
            method,
            clients,
            duration: None,
            rate: None,
            until: Until::Committed,
            verify: Verify::Now,
        };
        let progress = Progress::new(clients);
        let (endpoint, exchange) = (&self.instance.endpoint, self.instance.exchange.as_ref());
        let made = load::prepare(endpoint, exchange, &self.table, &load, &progress).await;
        let ready = made.unwrap_or_else(|error| panic!("seed {}: {path}: {error}", self.table.seed));
        for client in ready.clients {
            let done = client.work().await;
            done.unwrap_or_else(|error| panic!("seed {}: {path}: {error}", self.table.seed));
        }
        self.holds(&path).await;
    }

    async fn read(&self, method: ReadMethod, clients: u32) {
        let read = Read {
            table: 0,
            columns: self.table.columns.iter().map(|column| column.name.clone()).collect(),
            method,
            decode: Decode::Values,
            clients,
            by: By::Pages,
            cache: Cache::AsIs,
            state: State::AsLoaded,
        };
        let (progress, parking) = (Progress::new(clients), Parking::default());
        let request = ReadRequest {
            endpoint: &self.instance.endpoint,
            table: &self.table,
            read: &read,
            keys: &[],
            settings: &[],
            progress: &progress,
            parking: &parking,
        };
        let (made, _) = read::prepare(&request).await.unwrap();
        let mut done = Vec::new();
        for client in made {
            done.push(client.work(Instant::now()).await.unwrap());
        }
        let seen = WorkDone::together(done).content;
        assert_eq!(seen, Some(self.expected), "seed {}: {:?} by {clients}", self.table.seed, read.method);
    }

    async fn programs(&self, programs: Vec<Program>) {
        let ready = self.instance.running.programs(Pipeline(programs)).await.unwrap();
        ready.await.unwrap_or_else(|error| panic!("seed {}: {error}", self.table.seed));
    }

    async fn dump_and_restore(&self, format: &str, piped: bool) {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
        let file = format!("{}/{}", self.instance.exchange.as_ref().unwrap().server_dir, self.table.seed);
        let name = quote_ident(&self.table.name);
        let arguments = words(&["-F", format, "-f", &file, "-t", &name]);
        self.programs(vec![Program { name: "pg_dump", arguments }]).await;
        self.session.client.batch_execute(&format!("DROP TABLE {name}")).await.unwrap();
        let psql = |more: &[&str]| Program {
            name: "psql",
            arguments: [words(&["-X", "-q", "-v", "ON_ERROR_STOP=1"]), words(more)].concat(),
        };
        let restore = |more: &[&str]| Program {
            name: "pg_restore",
            arguments: [words(&["-O"]), words(more), words(&[&file])].concat(),
        };
        self.programs(match (format, piped) {
            ("p", _) => vec![psql(&["-f", &file])],
            (_, true) => vec![restore(&["-f", "-"]), psql(&[])],
            (_, false) => vec![restore(&["-d", DATABASE, "-j", "2"])],
        })
        .await;
        self.holds(&format!("a dump of format {format}, piped: {piped},")).await;
    }
}

async fn the_same_by_every_path(instance: &Instance, session: &Session, seed: u64) {
    let table = Arc::new(table(seed));
    let expected = expected_content(&table, 0).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    session.client.batch_execute(&table.copies[0].ddl[0]).await.unwrap();
    let paths = Paths { instance, session, table, expected };
    let name = quote_ident(&paths.table.name);
    for (method, clients) in ways(&paths.table) {
        session.client.batch_execute(&format!("TRUNCATE {name}")).await.unwrap();
        paths.load(method, clients).await;
    }
    let (format, piped) =
        [("d", false), ("c", true), ("p", true), ("c", false)][usize::try_from(seed % 4).unwrap()];
    paths.dump_and_restore(format, piped).await;
    for mode in [SelectMode::All, SelectMode::Streamed, SelectMode::Portal { fetch_size: 7 }] {
        paths.read(ReadMethod::Select { mode, format: TextOrBinary::Binary }, 2).await;
    }
    paths.read(ReadMethod::Select { mode: SelectMode::Streamed, format: TextOrBinary::Text }, 1).await;
    for format in [CopyFormat::Text, CopyFormat::Csv, CopyFormat::Binary] {
        paths.read(ReadMethod::CopyOut { format }, 2).await;
    }
    session.client.batch_execute(&format!("DROP TABLE {name}")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn content_is_the_same_by_every_path() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path(), "paths").unwrap();
    let spec = environment(FreshMethod::Auto);
    let (provider, _) = LocalProvider::find(&spec, folder.path(), true, &ledger).await.unwrap();
    provider.prepare().await.unwrap();
    provider.find_programs().await.unwrap();
    let launch = Launch { run_id: ledger.run_id().to_owned(), trial: 1, environment: spec };
    let instance = provider.start(&launch).await.unwrap();
    let session = Session::open(&instance.endpoint, Role::Owner).await.unwrap();
    let many = std::env::var("LOADLAB_SEEDS").ok().and_then(|count| count.parse().ok());
    for seed in REGRESSIONS.iter().copied().chain(many.map_or(SEEDS, |count: u64| 1..count)) {
        the_same_by_every_path(&instance, &session, seed).await;
    }
    drop(session);
    instance.running.stop().await.unwrap();
}

#[test]
fn random_tables_are_different_and_always_the_same() {
    assert_eq!(table(5), table(5));
    assert_ne!(table(5).columns, table(6).columns);
    assert!(
        SEEDS.filter(|seed| table(*seed).columns.iter().all(|column| column.computable().is_ok())).count()
            >= 2
    );
}
