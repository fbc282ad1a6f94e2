//! Every type with its awkward values, by every way into a real PostgreSQL and back: always the same content.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use futures_util::{SinkExt, TryStreamExt};
use loadlab::data::{Content, TableGenerator};
use loadlab::engine::postgres::encode::{
    ContentReader, CopyEncoder, DifferenceFinder, LiteralEncoder, Parameters, RawField, RowHasher,
    column_list, expected_content, quote_ident,
};
use loadlab::engine::postgres::read::{Parking, ReadRequest, prepare};
use loadlab::engine::postgres::work::Progress;
use loadlab::engine::postgres::{Endpoint, Role, Session};
use loadlab::environment::ledger::Ledger;
use loadlab::environment::local::LocalProvider;
use loadlab::environment::{Launch, Provider};
use loadlab::model::{
    By, Cache, Column, ColumnType, CopyFormat, Decode, FreshMethod, Generator, Persistence, Read, ReadMethod,
    Scalar, SelectMode, State, Table, TableCopy, TemplatePart, TextOrBinary, TextShape,
};
use tokio_postgres::Client;

use crate::server_local::environment;

const ROWS: u64 = 500;
/// Rows of a statement: 54 columns times this stay below 65,536 parameters.
const ROWS_OF_STATEMENT: u64 = 50;

/// Texts that break encoders.
const WORDS: &[&str] = &[
    "",
    "\\.",
    "\\N",
    "a\tb",
    "a\nb",
    "a\r\nb",
    "\r",
    "it's",
    "say \"hi\"",
    "back\\slash",
    "\\",
    "\u{1f600} \u{e9}",
    "NULL",
    "null",
    " lead",
    "trail ",
    "a,b",
    "{x}",
    "\u{1}\u{7f}",
    "\\x41",
    "\u{8}\u{b}\u{c}",
    "$1",
    "\\\n",
    "\"\"",
    "'",
];

fn text(text: &str) -> Scalar {
    Scalar::Text(text.to_owned())
}

fn choice(values: &[&str]) -> Generator {
    Generator::Choice { values: values.iter().map(|value| text(value)).collect(), weights: Vec::new() }
}

fn uniform(min: &str, max: &str) -> Generator {
    Generator::Uniform { min: text(min), max: text(max) }
}

fn sequence(start: &str, step: f64) -> Generator {
    Generator::Sequence { start: text(start), step }
}

fn random(max_length: u32) -> Generator {
    Generator::Random(TextShape { min_length: 0, max_length, compressibility: 0.3 })
}

fn array(element: Generator) -> Generator {
    Generator::Array { min: 0, max: 4, element: Box::new(element) }
}

fn numeric(precision: u32, scale: u32) -> ColumnType {
    ColumnType::Numeric { precision: Some(precision), scale }
}

pub(crate) type Case = (&'static str, ColumnType, Generator);

pub(crate) fn numbers() -> Vec<Case> {
    use ColumnType::{Float4, Float8, Int2, Int4, Int8};
    let any = || ColumnType::Numeric { precision: None, scale: 0 };
    let last = Scalar::Int(i64::MAX - 1_000_000);
    vec![
        ("int4", Int4, sequence("-5", 1.0)),
        ("int8", Int8, Generator::Shuffle { start: last }),
        ("int2", Int2, uniform("-32768", "32767")),
        ("int8", Int8, choice(&["-9223372036854775808", "9223372036854775807", "0", "-1"])),
        ("int4", Int4, Generator::Zipf { start: 1, n: 1000, exponent: 1.1 }),
        ("int4", Int4, Generator::Normal { mean: 0.0, deviation: 1e9 }),
        ("bool", ColumnType::Bool, uniform("false", "true")),
        (
            "float4",
            Float4,
            choice(&["NaN", "Infinity", "-Infinity", "-0", "3.4028235e38", "1e-45", "0.1", "1e15"]),
        ),
        (
            "float8",
            Float8,
            choice(&["NaN", "Infinity", "-Infinity", "-0", "1.7976931348623157e308", "5e-324"]),
        ),
        ("float8", Float8, uniform("-1e300", "1e300")),
        ("float8", Float8, Generator::Normal { mean: 0.0, deviation: 1.0 }),
        ("float8", Float8, sequence("0.1", 0.1)),
        ("numeric(10,2)", numeric(10, 2), uniform("-99999999.99", "99999999.99")),
        ("numeric(10,2)", numeric(10, 2), choice(&["5", "NaN", "-0.001", "10000", "0.05", "100000.5"])),
        ("numeric(38,10)", numeric(38, 10), Generator::Normal { mean: 0.0, deviation: 1e12 }),
        (
            "numeric",
            any(),
            choice(&["NaN", "Infinity", "-Infinity", "0", "-0.0", "0.000000000123", "1e100", "1e-100"]),
        ),
        (
            "numeric",
            any(),
            choice(&["123456789012345678901234567890.12345678901234567890", "10000.0000", "9999"]),
        ),
        ("numeric", any(), sequence("0.5", 0.25)),
    ]
}

pub(crate) fn texts() -> Vec<Case> {
    use ColumnType::{Bytea, Char, Text, Varchar};
    let row = TemplatePart::Row { divide: 3, modulo: 10, multiply: -7, add: 2, pad: 4 };
    let template = Generator::Template(vec![TemplatePart::Text("\u{e9}\\".to_owned()), row]);
    vec![
        ("text", Text, choice(WORDS)),
        ("varchar(255)", Varchar(Some(255)), choice(WORDS)),
        ("char(12)", Char(12), choice(WORDS)),
        ("char(20)", Char(20), template.clone()),
        ("text", Text, template),
        ("varchar", Varchar(None), random(30)),
        ("text", Text, random(3000)),
        ("text", Text, Generator::Constant(text("const\\.\t"))),
        ("bytea", Bytea, random(40)),
        ("bytea", Bytea, choice(&["\\x", "\\x00", "\\x5c2e0a", "\\xff0022275c"])),
        ("int4", ColumnType::Int4, Generator::Constant(Scalar::Null)),
    ]
}

pub(crate) fn moments() -> Vec<Case> {
    use ColumnType::{Date, Timestamp, Timestamptz, Uuid};
    let days = ["infinity", "-infinity", "4714-11-24 BC", "5874897-12-31", "0001-12-31 BC", "2000-02-29"];
    let moments = [
        "infinity",
        "-infinity",
        "4714-11-24 00:00:00 BC",
        "294276-12-31 23:59:59.999999",
        "1999-12-31 23:59:59.5",
    ];
    vec![
        ("date", Date, choice(&days)),
        ("date", Date, uniform("4714-11-24 BC", "5874897-12-31")),
        ("timestamp", Timestamp, choice(&moments)),
        ("timestamp", Timestamp, Generator::Shuffle { start: text("2017-06-08") }),
        ("timestamptz", Timestamptz, choice(&moments)),
        ("timestamptz", Timestamptz, uniform("4714-11-24 00:00:00 BC", "294276-12-31 23:59:59.999999")),
        ("timestamptz", Timestamptz, sequence("2017-06-08", 0.000_001)),
        ("timestamptz", Timestamptz, Generator::Constant(text("2017-06-08T00:00:00+02:00"))),
        ("uuid", Uuid, Generator::UuidV4),
        ("uuid", Uuid, Generator::UuidV7 { start_ms: 1_496_880_000_000 }),
    ]
}

pub(crate) fn composites() -> Vec<Case> {
    use ColumnType::{Bool, Bytea, Char, Date, Float8, Int4, Json, Jsonb, Text, Timestamptz, Uuid};
    let of = |kind: ColumnType| ColumnType::Array(Box::new(kind));
    let document = r#"{"bb":1,"a":[1.50,-0,-0.0,1e3,1E-3],"a":{"z":null,"\u00e9":"\u00e9\n\"\\\/\u0001"}}"#;
    let members = vec![
        ("name".to_owned(), Text, choice(WORDS)),
        ("f".to_owned(), Float8, choice(&["1e300", "1e-10", "-0", "NaN", "0.5"])),
        ("when".to_owned(), Timestamptz, choice(&["2017-06-08", "infinity"])),
        ("list".to_owned(), of(Text), array(choice(WORDS))),
        ("k\"\\".to_owned(), Jsonb, choice(&[r#"{"b":1,"a":2}"#])),
    ];
    vec![
        ("jsonb", Jsonb, choice(&[document, "[]", "{}", "\"\"", "null", "1e2", r#""\ud83d\ude00""#])),
        ("json", Json, choice(&["{\"b\" : 1,\t\"a\":\"\\u00e9\\\\\"}", "[1,\n2]"])),
        ("jsonb", Jsonb, Generator::Object(members)),
        ("int4[]", of(Int4), array(uniform("-9", "9"))),
        ("text[]", of(Text), array(choice(WORDS))),
        ("text[]", of(Text), choice(&["{}", "{NULL}", r#"{a,NULL,"NULL","","b\"c\\"}"#])),
        ("numeric(8,3)[]", of(numeric(8, 3)), array(uniform("-9", "9"))),
        ("timestamptz[]", of(Timestamptz), choice(&["{2017-06-08,infinity}"])),
        ("float8[]", of(Float8), choice(&["{NaN,-0,1e300,Infinity,NULL}"])),
        ("bytea[]", of(Bytea), array(random(5))),
        ("char(5)[]", of(Char(5)), choice(&[r#"{ab,"c d"}"#])),
        ("bool[]", of(Bool), choice(&["{t,f,NULL}"])),
        ("date[]", of(Date), choice(&[r#"{"4714-11-24 BC",infinity}"#])),
        ("uuid[]", of(Uuid), array(Generator::UuidV4)),
        ("jsonb[]", of(Jsonb), choice(&[r#"{"{\"a\": \"x\\\\y\"}"}"#])),
    ]
}

fn table(cases: Vec<Case>) -> Table {
    let column = |(number, (sql_type, kind, generator)): (usize, Case)| Column {
        name: format!("c \"{number}"),
        kind,
        sql_type: sql_type.to_owned(),
        not_null: false,
        nulls: if number % 2 == 1 { 0.2 } else { 0.0 },
        generator,
    };
    Table {
        name: "t".to_owned(),
        copies: vec![TableCopy { name: "t".to_owned(), ddl: Vec::new(), indexes: Vec::new() }],
        columns: cases.into_iter().enumerate().map(column).collect(),
        persistence: Persistence::Logged,
        partitioned: false,
        rows: ROWS,
        seed: 7,
    }
}

/// Ways into the table.
#[derive(Debug, Clone, Copy)]
enum Way {
    Copy(CopyFormat, bool),
    Literals,
    Parameters(u64),
}

const WAYS: [Way; 7] = [
    Way::Copy(CopyFormat::Binary, false),
    Way::Copy(CopyFormat::Text, false),
    Way::Copy(CopyFormat::Csv, false),
    Way::Copy(CopyFormat::Csv, true),
    Way::Literals,
    Way::Parameters(1),
    Way::Parameters(ROWS_OF_STATEMENT),
];

async fn load(client: &Client, generator: &Arc<TableGenerator>, names: &str, way: Way) {
    match way {
        Way::Copy(format, header) => copy(client, generator, names, format, header).await,
        Way::Literals => {
            let mut encoder = LiteralEncoder::new(Arc::clone(generator));
            for rows in batches(ROWS_OF_STATEMENT) {
                let mut sql = format!("INSERT INTO t {names} VALUES ");
                encoder.rows(rows, &mut sql);
                client.batch_execute(&sql).await.expect("literals are taken");
            }
        }
        Way::Parameters(count) => {
            let columns = generator.columns().len() as u64;
            let tuple = |row: u64| {
                let numbers: Vec<String> =
                    (1..=columns).map(|of| format!("${}", row * columns + of)).collect();
                format!("({})", numbers.join(", "))
            };
            let tuples: Vec<String> = (0..count).map(tuple).collect();
            let sql = format!("INSERT INTO t {names} VALUES {}", tuples.join(", "));
            let statement = client.prepare(&sql).await.expect("prepared");
            let mut parameters = Parameters::new(Arc::clone(generator));
            for rows in batches(count) {
                parameters.set_rows(rows);
                client.execute_raw(&statement, parameters.iter()).await.expect("parameters are taken");
            }
        }
    }
}

fn batches(size: u64) -> impl Iterator<Item = Range<u64>> {
    (0..ROWS).step_by(usize::try_from(size).expect("small")).map(move |start| start..(start + size).min(ROWS))
}

async fn copy(client: &Client, table: &Arc<TableGenerator>, names: &str, format: CopyFormat, header: bool) {
    let option = if header { ", HEADER true" } else { "" };
    let sql = format!("COPY t {names} FROM STDIN (FORMAT {}{option})", format.sql());
    let mut encoder = CopyEncoder::new(format, Arc::clone(table));
    let mut buffer = BytesMut::new();
    encoder.begin(header, &mut buffer);
    let mut sink = std::pin::pin!(client.copy_in::<_, Bytes>(&sql).await.expect("COPY begins"));
    let mut rows = 0..ROWS;
    while !rows.is_empty() {
        encoder.fill(&mut rows, 10_000, &mut buffer);
        sink.feed(buffer.split().freeze()).await.expect("rows are taken");
    }
    encoder.end(&mut buffer);
    sink.feed(buffer.freeze()).await.expect("the end is taken");
    sink.finish().await.expect("COPY ends");
}

/// Content by COPY, and what differs row by row.
async fn stored(client: &Client, generator: &Arc<TableGenerator>) -> (Content, String) {
    let sql = "COPY (SELECT * FROM t) TO STDOUT (FORMAT binary)";
    let mut stream = std::pin::pin!(client.copy_out(sql).await.expect("COPY begins"));
    let mut reader = ContentReader::new();
    let mut finder = DifferenceFinder::new(Arc::clone(generator), 0..ROWS).expect("few rows");
    while let Some(chunk) = stream.try_next().await.expect("rows") {
        reader.push(&chunk).expect("a binary stream");
        finder.push(&chunk).expect("a binary stream");
    }
    (reader.finish().expect("a whole stream"), finder.finish().to_string())
}

async fn comes_back_the_same(client: &Client, endpoint: &Endpoint, table: &Table) {
    let generator = Arc::new(TableGenerator::new(table).expect("valid"));
    let expected = expected_content(table, 0).expect("valid");
    let names = column_list(table.columns.iter().map(|column| column.name.as_str()));
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| format!("{} {}", quote_ident(&column.name), column.sql_type))
        .collect();
    let types: Vec<&str> = table.columns.iter().map(|column| column.sql_type.as_str()).collect();
    for way in WAYS {
        let sql = format!("DROP TABLE IF EXISTS t; CREATE TABLE t ({})", columns.join(", "));
        client.batch_execute(&sql).await.expect("created");
        load(client, &generator, &names, way).await;
        let (content, difference) = stored(client, &generator).await;
        assert_eq!(content, expected, "{way:?} of {types:?}: {difference}");
    }
    let mut hasher = RowHasher::new();
    for row in client.query("SELECT * FROM t", &[]).await.expect("rows") {
        hasher.row((0..row.len()).map(|index| row.get::<_, RawField<'_>>(index).0));
    }
    assert_eq!(hasher.content(), expected, "SELECT of {types:?}");
    for method in READS {
        let found = read(endpoint, table, &method).await;
        assert_eq!(found, expected, "{method:?} of {types:?}");
    }
}

/// Every way out of the table; values are decoded, from text as well.
const READS: [ReadMethod; 6] = [
    ReadMethod::Select { mode: SelectMode::All, format: TextOrBinary::Text },
    ReadMethod::Select { mode: SelectMode::Streamed, format: TextOrBinary::Text },
    ReadMethod::Select { mode: SelectMode::Portal { fetch_size: 70 }, format: TextOrBinary::Binary },
    ReadMethod::CopyOut { format: CopyFormat::Text },
    ReadMethod::CopyOut { format: CopyFormat::Csv },
    ReadMethod::CopyOut { format: CopyFormat::Binary },
];

async fn read(endpoint: &Endpoint, table: &Table, method: &ReadMethod) -> Content {
    let read = Read {
        table: 0,
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        method: method.clone(),
        decode: Decode::Values,
        clients: 1,
        by: By::Pages,
        cache: Cache::AsIs,
        state: State::AsLoaded,
    };
    let progress = Progress::new(1);
    let table = Arc::new(table.clone());
    let parking = Parking::default();
    let request = ReadRequest {
        endpoint,
        table: &table,
        read: &read,
        keys: &[],
        settings: &[],
        progress: &progress,
        parking: &parking,
    };
    let (clients, _) = prepare(&request).await.expect("prepared");
    let client = clients.into_iter().next().expect("one client");
    client.work(Instant::now()).await.expect("read").content.expect("decoded")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_is_the_same_by_every_way() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let ledger = Ledger::open(folder.path(), "encode").expect("ledger");
    let spec = environment(FreshMethod::Auto);
    let (provider, _) =
        LocalProvider::find(&spec, folder.path(), true, &ledger).await.expect("PostgreSQL is installed");
    provider.prepare().await.expect("prepared");
    let launch = Launch { run_id: ledger.run_id().to_owned(), trial: 1, environment: spec };
    let instance = provider.start(&launch).await.expect("started");
    let session = Session::open(&instance.endpoint, Role::Owner).await.expect("connection");

    let all: Vec<Case> = [numbers(), texts(), moments(), composites()].concat();
    comes_back_the_same(&session.client, &instance.endpoint, &table(all.clone())).await;
    // Alone in its row a value meets the rules for whole lines, such as `\.`.
    for case in texts() {
        comes_back_the_same(&session.client, &instance.endpoint, &table(vec![case])).await;
    }
    // And it must not depend on the settings of the session.
    let settings = "SET standard_conforming_strings = off; SET escape_string_warning = off; \
                    SET timezone = 'America/New_York'; SET bytea_output = escape";
    session.client.batch_execute(settings).await.expect("set");
    // For the sessions that read as well.
    let roles = "ALTER ROLE CURRENT_USER SET timezone = 'America/New_York'; ALTER ROLE CURRENT_USER SET bytea_output = escape";
    session.client.batch_execute(roles).await.expect("set");
    comes_back_the_same(&session.client, &instance.endpoint, &table(all)).await;
    drop(session);
    instance.running.stop().await.expect("stopped");
}
