//! Files into stores and back, and what is wrong with files.

use std::fs;

use polars::prelude::{Column, DataFrame, IntoColumn, NamedFrom, ParquetWriter, Series, TimeUnit, TimeZone};

use super::*;
use crate::data::value::{Scratch, Value};

const CSV: CsvFormat = CsvFormat { header: true, delimiter: b',', quote: b'"', null: String::new() };

fn wanted(columns: &[(&str, ColumnType)]) -> Vec<Wanted> {
    let one = |(name, kind): &(&str, ColumnType)| Wanted {
        name: (*name).to_owned(),
        kind: kind.clone(),
        sql_type: format!("{kind:?}"),
        not_null: *name == "id",
    };
    columns.iter().map(one).collect()
}

struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn convert(
        &self,
        text: &[u8],
        format: RowFormat,
        wanted: &[Wanted],
    ) -> Result<Converted, Vec<FileProblem>> {
        let path = self.folder.path().join("file");
        fs::write(&path, text).unwrap();
        convert(&RowFile { path, format }, wanted, self.folder.path())
    }

    fn csv(&self, text: &str, wanted: &[Wanted]) -> Result<Converted, Vec<FileProblem>> {
        self.convert(text.as_bytes(), RowFormat::Csv(CSV), wanted)
    }
}

/// A row as text.
fn row(store: &RowStore, number: u64, wanted: &[Wanted], scratch: &mut Scratch) -> Vec<String> {
    let one = |(index, column): (usize, &Wanted)| match store.value(number, index, &column.kind, scratch) {
        Value::Text(text) => text.to_owned(),
        other => format!("{other:?}"),
    };
    wanted.iter().enumerate().map(one).collect()
}

#[test]
fn rows_come_back_in_any_order_and_a_reader_holds_one_page() {
    let lab = Lab::new();
    let wanted = wanted(&[("id", ColumnType::Int8), ("note", ColumnType::Text)]);
    let lines =
        (0..20_000).map(|id| if id % 7 == 0 { format!(",{id}\n") } else { format!("\"n\"\"{id}\",{id}\n") });
    let text = std::iter::once("note,id\n".to_owned()).chain(lines).collect::<String>();
    let made = lab.csv(&text, &wanted).unwrap();
    assert_eq!(made.rows, 20_000);
    assert!((made.widths[1].nulls - 2858.0 / 20_000.0).abs() < 1e-9);
    assert_eq!((made.widths[1].most, made.widths[0].most), (7, 8));
    let store = RowStore::open(&made.folder).unwrap();
    let mut scratch = Scratch::default();
    let expected = |id: u64| {
        let note = if id.is_multiple_of(7) { "Null".to_owned() } else { format!("n\"{id}") };
        vec![format!("Int({id})"), note]
    };
    let orders = (0..20_000).chain([19_999, 0, 5, 4, 3, 10_000, 10_001, 10_000, 9_999, 1]);
    for id in orders {
        assert_eq!(row(&store, id, &wanted, &mut scratch), expected(id));
    }
    assert!(scratch.cursor().held() < 256 * 1024, "{}", scratch.cursor().held());
}

#[test]
fn a_store_is_made_once_and_again_when_anything_differs() {
    let lab = Lab::new();
    let as_int = wanted(&[("id", ColumnType::Int8)]);
    let first = lab.csv("id\n1\n", &as_int).unwrap();
    let made = fs::metadata(first.folder.join("rows")).unwrap().modified().unwrap();
    assert_eq!(lab.csv("id\n1\n", &as_int).unwrap(), first);
    assert_eq!(fs::metadata(first.folder.join("rows")).unwrap().modified().unwrap(), made);
    assert_ne!(lab.csv("id\n2\n", &as_int).unwrap().folder, first.folder);
    assert_ne!(lab.csv("id\n1\n", &wanted(&[("id", ColumnType::Int4)])).unwrap().folder, first.folder);
    let cut = first.folder.join("rows");
    fs::write(&cut, b"x").unwrap();
    assert!(RowStore::open(&first.folder).is_err(), "a store that is cut is not read");
    assert_eq!(lab.csv("id\n", &as_int).unwrap().rows, 0);
}

#[test]
fn every_mistake_of_a_file_has_its_line_and_column() {
    let lab = Lab::new();
    let columns = wanted(&[("id", ColumnType::Int2), ("name", ColumnType::Varchar(Some(3)))]);
    let problems = lab.csv("id,name\n1,abc\n40000,abcd\n,x\n3\n4,\"a\nb\"\n5,x,y\n", &columns).unwrap_err();
    let told: Vec<(&str, Option<&str>)> =
        problems.iter().map(|problem| (problem.place.as_str(), problem.column.as_deref())).collect();
    let expected = [
        ("line 3", Some("id")),
        ("line 3", Some("name")),
        ("line 4", Some("id")),
        ("line 5", None),
        ("line 8", None),
    ];
    assert_eq!(told, expected, "{problems:#?}");
    let header = lab.csv("id,nme,id\n", &columns).unwrap_err();
    assert_eq!(header.len(), 3, "{header:#?}");
    assert_eq!(header[0].unknown.as_deref(), Some("nme"));
    let many = (0..100).map(|_| "x,y\n").collect::<String>();
    assert_eq!(lab.csv(&format!("id,name\n{many}"), &columns).unwrap_err().len(), MOST_PROBLEMS);
    let bytes = lab.convert(b"id,name\n1,\xff\n", RowFormat::Csv(CSV), &columns).unwrap_err();
    assert_eq!((bytes[0].place.as_str(), bytes.len()), ("line 2", 1));
    assert!(
        fs::read_dir(lab.folder.path().join("rows")).unwrap().next().is_none(),
        "nothing is left of bad files"
    );
}

#[test]
fn parquet_and_csv_of_the_same_rows_are_the_same_rows() {
    let lab = Lab::new();
    let stamp = Series::new("at".into(), [Some(1_767_225_600_000_001_i64), None])
        .cast(&polars::prelude::DataType::Datetime(TimeUnit::Microseconds, Some(TimeZone::UTC)))
        .unwrap();
    let list =
        Series::new("tags".into(), [Series::new("".into(), ["a", "b\"c"]), Series::new("".into(), [""])]);
    let columns: Vec<Column> = vec![
        stamp.into_column(),
        Series::new("id".into(), [1_i64, -2]).into_column(),
        Series::new("real".into(), [Some(0.1_f64), Some(f64::NAN)]).into_column(),
        Series::new("raw".into(), [Some(&b"\x00\xff"[..]), None]).into_column(),
        Series::new("ok".into(), [true, false]).into_column(),
        list.into_column(),
    ];
    let mut frame = DataFrame::new(2, columns).unwrap();
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes).finish(&mut frame).unwrap();
    let wanted = wanted(&[
        ("id", ColumnType::Int8),
        ("at", ColumnType::Timestamptz),
        ("real", ColumnType::Float8),
        ("raw", ColumnType::Bytea),
        ("ok", ColumnType::Bool),
        ("tags", ColumnType::Array(Box::new(ColumnType::Text))),
    ]);
    let parquet = lab.convert(&bytes, RowFormat::Parquet, &wanted).unwrap();
    let text = "id,at,real,raw,ok,tags\n1,2026-01-01 00:00:00.000001+00,0.1,\\x00ff,t,\"{a,\"\"b\\\"\"c\"\"}\"\n-2,,NaN,,f,\"{\"\"\"\"}\"\n";
    let csv = lab.csv(text, &wanted).unwrap();
    for file in ["rows", "pages"] {
        let same = fs::read(parquet.folder.join(file)).unwrap() == fs::read(csv.folder.join(file)).unwrap();
        assert!(same, "{file} differ");
    }
    let damaged = lab.convert(&bytes[..bytes.len() - 9], RowFormat::Parquet, &wanted).unwrap_err();
    assert!(damaged[0].message.contains("cannot be read as Parquet"), "{damaged:?}");
    let missing = lab.convert(&bytes, RowFormat::Parquet, &wanted[1..]).unwrap_err();
    assert_eq!(missing[0].unknown.as_deref(), Some("id"));
}

#[test]
fn decimals_and_short_integers_of_parquet_are_read() {
    use polars::prelude::DataType;
    let lab = Lab::new();
    let amounts = Series::new("amount".into(), ["-1.50", "0.05"]).cast(&DataType::Decimal(10, 2)).unwrap();
    let tiny = Series::new("tiny".into(), [-7_i32, 7]).cast(&DataType::Int8).unwrap();
    let short = Series::new("short".into(), [-300_i32, 300]).cast(&DataType::Int16).unwrap();
    let columns = vec![amounts.into_column(), tiny.into_column(), short.into_column()];
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes).finish(&mut DataFrame::new(2, columns).unwrap()).unwrap();
    let wanted = wanted(&[
        ("amount", ColumnType::Numeric { precision: Some(10), scale: 2 }),
        ("tiny", ColumnType::Int2),
        ("short", ColumnType::Int2),
    ]);
    let parquet = lab.convert(&bytes, RowFormat::Parquet, &wanted).unwrap();
    let csv = lab.csv("amount,tiny,short\n-1.50,-7,-300\n0.05,7,300\n", &wanted).unwrap();
    let same = fs::read(parquet.folder.join("rows")).unwrap() == fs::read(csv.folder.join("rows")).unwrap();
    assert!(same, "the rows differ");
}

#[test]
fn a_number_with_more_digits_than_its_column_is_refused_not_rounded() {
    let lab = Lab::new();
    let wanted = wanted(&[("amount", ColumnType::Numeric { precision: Some(10), scale: 2 })]);
    let problems = lab.csv("amount\n1.00\n1.005\n", &wanted).unwrap_err();
    assert_eq!((problems.len(), problems[0].place.as_str()), (1, "line 3"));
    assert!(problems[0].message.contains("rounded"), "{problems:?}");
}
