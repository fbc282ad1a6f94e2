//! Rows spelled by our own encoders come back with the checksum of the values.

use std::sync::Arc;

use bytes::BytesMut;

use super::*;
use crate::data::tests::{choice, column, every_generator, table};
use crate::data::{TableGenerator, floats_of_rows};
use crate::engine::postgres::encode::{CopyEncoder, content_of};
use crate::model::{By, Cache, Column, CopyFormat, Generator, ReadMethod, Scalar, State};

const ROWS: u64 = 300;

fn read(table: &Table, decode: Decode, format: CopyFormat) -> Read {
    Read {
        table: 0,
        columns: table.columns.iter().map(|column| column.name.clone()).collect(),
        method: ReadMethod::CopyOut { format },
        decode,
        clients: 1,
        by: By::Pages,
        cache: Cache::AsIs,
        state: State::AsLoaded,
    }
}

fn decoded(table: &Table, decode: Decode, format: CopyFormat) -> Content {
    let generator = Arc::new(TableGenerator::new(table).expect("valid"));
    let mut encoder = CopyEncoder::new(format, generator);
    let mut decoder = Decoder::new(decode, columns_of(table, &read(table, decode, format)));
    for row in 0..ROWS {
        let mut line = BytesMut::new();
        encoder.row(row, &mut line);
        match format {
            CopyFormat::Text => text_row(&mut decoder, &line),
            CopyFormat::Csv => csv_row(&mut decoder, &line),
            CopyFormat::Binary => decoder.binary_row(&line[2..]),
        }
        .unwrap_or_else(|error| panic!("row {row} as {format:?}: {error}"));
    }
    decoder.content().expect("decoded")
}

const FORMATS: [CopyFormat; 3] = [CopyFormat::Text, CopyFormat::Csv, CopyFormat::Binary];

#[test]
fn one_checksum_in_every_format() {
    let table = every_generator(ROWS);
    let expected = content_of(&Arc::new(TableGenerator::new(&table).expect("valid")), 0..ROWS);
    for format in FORMATS {
        assert_eq!(decoded(&table, Decode::Values, format), expected, "{format:?}");
    }
}

#[test]
fn awkward_values_come_back() {
    let of = |kind: ColumnType| ColumnType::Array(Box::new(kind));
    let words =
        ["", "\\.", "\\N", "a\tb\n\r", "say \"hi\"", "back\\", "NULL", "{}", "\u{8}\u{b}\u{c}", "a,b"];
    let columns: Vec<Column> = vec![
        column("text", ColumnType::Text, choice(&words)),
        column("char", ColumnType::Char(12), choice(&words)),
        column("texts", of(ColumnType::Text), choice(&["{}", "{NULL}", r#"{a,NULL,"NULL","","b\"c\\}"}"#])),
        column("float8", ColumnType::Float8, choice(&["NaN", "-Infinity", "-0", "5e-324"])),
        column("float4", ColumnType::Float4, choice(&["NaN", "Infinity", "3.4028235e38", "0.1"])),
        column("bytea", ColumnType::Bytea, choice(&["\\x", "\\x005c22ff"])),
        column("date", ColumnType::Date, choice(&["0001-12-31 BC", "infinity", "5874897-12-31"])),
        column(
            "moment",
            ColumnType::Timestamptz,
            choice(&["4714-11-24 00:00:00 BC", "-infinity", "2000-01-01"]),
        ),
        column("null", ColumnType::Int4, Generator::Constant(Scalar::Null)),
    ];
    let table = table(columns, ROWS);
    let expected = content_of(&Arc::new(TableGenerator::new(&table).expect("valid")), 0..ROWS);
    for format in FORMATS {
        assert_eq!(decoded(&table, Decode::Values, format), expected, "{format:?}");
    }
}

#[test]
fn floats_are_the_same_in_every_format_and_storage() {
    let element = Generator::Normal { mean: 0.0, deviation: 1e9 };
    for kind in [ColumnType::Float4, ColumnType::Float8] {
        let array = Generator::Array { min: 0, max: 6, element: Box::new(element.clone()) };
        let mut numbers = column("n", ColumnType::Array(Box::new(kind)), array);
        numbers.nulls = 0.2;
        let label = column("id", ColumnType::Int4, Generator::Sequence { start: Scalar::Int(0), step: 1.0 });
        let arrays = table(vec![label.clone(), numbers.clone()], ROWS);
        let only = TableGenerator::select(&arrays, &["n".to_owned()]).expect("valid");
        let expected = floats_of_rows(&only, 0..ROWS);
        let mut bytes = table(
            vec![label, numbers, column("b", ColumnType::Bytea, Generator::FloatsOf("n".to_owned()))],
            ROWS,
        );
        for format in FORMATS {
            assert_eq!(decoded(&arrays, Decode::Floats, format), expected, "{format:?}");
            // Both storages in one row: every number twice.
            let both = decoded(&bytes, Decode::Floats, format);
            assert_eq!(both.checksum, expected.checksum.wrapping_mul(2), "{format:?}");
        }
        bytes.columns[2].generator = Generator::Constant(Scalar::Text("\\x00".to_owned()));
        assert_eq!(decoded(&bytes, Decode::Floats, CopyFormat::Text), expected, "other bytea is left alone");
    }
}

#[test]
fn damage_is_an_error_with_the_column() {
    let numbers = || {
        let columns = vec![column("n", ColumnType::Int2, Generator::Constant(Scalar::Int(1)))];
        let table = table(columns, 1);
        Decoder::new(Decode::Values, columns_of(&table, &read(&table, Decode::Values, CopyFormat::Text)))
    };
    for line in ["40000\n", "x\n", "1\t2\n", "1", "1e0\n"] {
        assert!(text_row(&mut numbers(), line.as_bytes()).is_err(), "{line:?}");
    }
    let error = text_row(&mut numbers(), b"x\n").expect_err("no number").to_string();
    assert!(error.contains("column n"), "{error}");
}

#[test]
fn bytea_is_read_in_either_spelling() {
    let of = |text: &[u8]| {
        let mut bytes = Vec::new();
        text::bytea(text, |byte| bytes.push(byte)).then_some(bytes)
    };
    assert_eq!(of(b"\\x00ff5C"), Some(vec![0, 255, 92]));
    assert_eq!(of(b"a\\\\\\000\\377"), Some(vec![b'a', b'\\', 0, 255]));
    assert_eq!(of(b"\\x0"), None);
    assert_eq!(of(b"\\9"), None);
}
