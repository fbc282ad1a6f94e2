//! Tests of whole tables, and the tables that the encoders are tested with.

use crate::model::{
    Column, ColumnType, Generator, Persistence, Scalar, Table, TableCopy, TemplatePart, TextShape,
};

use super::{DataError, Scratch, TableGenerator, Value};

pub(crate) fn text(text: &str) -> Scalar {
    Scalar::Text(text.to_owned())
}

pub(crate) fn choice(values: &[&str]) -> Generator {
    Generator::Choice { values: values.iter().map(|value| text(value)).collect(), weights: Vec::new() }
}

pub(crate) fn column(name: &str, kind: ColumnType, generator: Generator) -> Column {
    let sql_type = format!("{kind:?}");
    Column { name: name.to_owned(), kind, sql_type, not_null: false, nulls: 0.0, generator }
}

pub(crate) fn table(columns: Vec<Column>, rows: u64) -> Table {
    let copy = TableCopy { name: "t".to_owned(), ddl: Vec::new(), indexes: Vec::new() };
    Table {
        name: "t".to_owned(),
        copies: vec![copy],
        columns,
        persistence: Persistence::Logged,
        partitioned: false,
        rows,
        seed: 20_170_608,
    }
}

/// The table of the published UNLOGGED experiment.
pub(crate) fn booking_table(rows: u64) -> Table {
    let row = || TemplatePart::Row { divide: 1, modulo: 0, multiply: 1, add: 0, pad: 0 };
    let piece = |piece: &str| TemplatePart::Text(piece.to_owned());
    let template = vec![piece("boe"), row(), piece("kingdetail"), row()];
    let start = Scalar::Int(1_000_000);
    let columns = vec![
        column("id_h", ColumnType::Int4, Generator::Sequence { start, step: 1.0 }),
        column("source_system_id", ColumnType::Int4, Generator::Constant(Scalar::Int(1))),
        column("organisation_id", ColumnType::Int4, Generator::Constant(Scalar::Int(12))),
        column("load_dts", ColumnType::Timestamptz, Generator::Constant(text("2017-06-08T00:00:00Z"))),
        column("boekingdetailid", ColumnType::Varchar(Some(255)), Generator::Template(template)),
    ];
    table(columns, rows)
}

/// One column for each generator, with NULLs in some.
pub(crate) fn every_generator(rows: u64) -> Table {
    let int = |value| Scalar::Int(value);
    let shape = |min_length, max_length, compressibility| {
        Generator::Random(TextShape { min_length, max_length, compressibility })
    };
    let money = ColumnType::Numeric { precision: Some(10), scale: 2 };
    let members = vec![
        ("name".to_owned(), ColumnType::Text, shape(0, 5, 0.0)),
        ("id".to_owned(), ColumnType::Int8, Generator::Sequence { start: int(0), step: 1.0 }),
    ];
    let digits = Generator::Uniform { min: int(0), max: int(9) };
    let numbers = Generator::Array { min: 0, max: 3, element: Box::new(digits) };
    let weighted = Generator::Choice { values: vec![text("new"), text("done")], weights: vec![1.0, 9.0] };
    let mut columns = vec![
        column("sequence", ColumnType::Date, Generator::Sequence { start: text("2017-06-08"), step: 7.0 }),
        column("shuffle", ColumnType::Int8, Generator::Shuffle { start: int(1) }),
        column("uniform", money, Generator::Uniform { min: text("-9.99"), max: text("9.99") }),
        column("zipf", ColumnType::Int4, Generator::Zipf { start: 1, n: 1000, exponent: 1.1 }),
        column("normal", ColumnType::Float8, Generator::Normal { mean: 10.0, deviation: 2.5 }),
        column("choice", ColumnType::Text, weighted),
        column("letters", ColumnType::Char(8), shape(2, 8, 0.5)),
        column("bytes", ColumnType::Bytea, shape(0, 6, 0.0)),
        column("v4", ColumnType::Uuid, Generator::UuidV4),
        column("v7", ColumnType::Uuid, Generator::UuidV7 { start_ms: 1_496_880_000_000 }),
        column("object", ColumnType::Jsonb, Generator::Object(members)),
        column("array", ColumnType::Array(Box::new(ColumnType::Int2)), numbers),
    ];
    columns[5].nulls = 0.3;
    table(columns, rows)
}

fn column_error(column: Column) -> String {
    match TableGenerator::new(&table(vec![column], 100_000)) {
        Err(DataError::Column { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_selection_has_the_values_of_the_whole() {
    let table = every_generator(50);
    let whole = TableGenerator::new(&table).expect("valid");
    let part = TableGenerator::select(&table, &["v4".to_owned(), "zipf".to_owned()]).expect("known");
    let (mut left, mut right) = (Scratch::default(), Scratch::default());
    for row in 0..50 {
        for (of_part, of_whole) in [(0, 8), (1, 3)] {
            let one = part.columns()[of_part].value(row, &mut left);
            let two = whole.columns()[of_whole].value(row, &mut right);
            assert_eq!(format!("{one:?}"), format!("{two:?}"));
        }
    }
    let unknown = TableGenerator::select(&table, &["zip".to_owned()]).expect_err("unknown");
    assert!(unknown.to_string().starts_with("table t has no column zip (it has sequence, shuffle"));
}

#[test]
fn the_share_of_nulls_and_weights_is_kept() {
    let generator = TableGenerator::new(&every_generator(20_000)).expect("valid");
    let column = &generator.columns()[5];
    let mut scratch = Scratch::default();
    let (mut nulls, mut new) = (0, 0);
    for row in 0..20_000 {
        match column.value(row, &mut scratch) {
            Value::Null => nulls += 1,
            Value::Text("new") => new += 1,
            _ => {}
        }
    }
    assert!((5_700..6_300).contains(&nulls), "{nulls}");
    assert!((1_250..1_550).contains(&new), "{new}");
}

#[test]
fn compressibility_is_the_share_that_repeats() {
    for (compressibility, repeated) in [(0.0, 0), (0.25, 25), (1.0, 100)] {
        let shape = TextShape { min_length: 100, max_length: 100, compressibility };
        let column = column("c", ColumnType::Text, Generator::Random(shape));
        let generator = TableGenerator::new(&table(vec![column], 1)).expect("valid");
        let mut scratch = Scratch::default();
        let Value::Text(text) = generator.columns()[0].value(0, &mut scratch) else { panic!("no text") };
        let last = &text[99..];
        assert_eq!(text.len(), 100);
        assert!(text[100 - repeated..].split(last).all(str::is_empty), "{text}");
    }
}

#[test]
fn constants_are_told_from_the_rest() {
    let mut columns = booking_table(10).columns;
    columns[1].nulls = 0.5;
    columns[0].nulls = 1.0;
    let generator = TableGenerator::new(&table(columns, 10)).expect("valid");
    let constant: Vec<bool> = generator.columns().iter().map(|column| column.constant().is_some()).collect();
    assert_eq!(constant, [true, false, true, true, false]);
}

#[test]
fn what_does_not_fit_its_column_is_refused_with_the_reason() {
    let int = |value| Scalar::Int(value);
    let row = TemplatePart::Row { divide: 1, modulo: 0, multiply: 1, add: 0, pad: 0 };
    for (kind, generator, reason) in [
        (ColumnType::Int2, Generator::Sequence { start: int(0), step: 1.0 }, "values from 0 to 99999 leave"),
        (ColumnType::Int4, Generator::Sequence { start: int(0), step: 0.5 }, "the step 0.5 has more digits"),
        (ColumnType::Int4, Generator::Uniform { min: int(2), max: int(1) }, "min 2 is above max 1"),
        (ColumnType::Uuid, Generator::Zipf { start: 0, n: 1, exponent: 1.0 }, "this type holds no numbers"),
        (ColumnType::Int4, Generator::Zipf { start: 0, n: 0, exponent: 1.0 }, "zipf needs n"),
        (ColumnType::Varchar(Some(4)), Generator::Template(vec![row]), "the template gives up to 5"),
        (
            ColumnType::Date,
            Generator::Sequence { start: text("infinity"), step: 1.0 },
            "\"infinity\" is no number",
        ),
        (ColumnType::Text, Generator::UuidV4, "only a uuid column"),
        (ColumnType::Text, choice(&[]), "a choice needs"),
        (ColumnType::Int4, Generator::Normal { mean: f64::NAN, deviation: 1.0 }, "normal needs"),
        (ColumnType::Int4, Generator::Constant(text("x")), "\"x\" is no whole number"),
    ] {
        let found = column_error(column("c", kind, generator));
        assert!(found.starts_with(reason), "{found}");
    }
    let mut strict = column("c", ColumnType::Int4, Generator::Constant(int(1)));
    (strict.not_null, strict.nulls) = (true, 0.1);
    assert_eq!(column_error(strict.clone()), "NULL is not allowed here");
    strict.nulls = 1.5;
    assert_eq!(column_error(strict), "the share of nulls is 1.5, not within 0 to 1");
}

#[test]
fn row_counts_near_the_limit_do_not_overflow() {
    let sequence = Generator::Sequence { start: Scalar::Int(0), step: 1.0 };
    let wide = ColumnType::Numeric { precision: Some(30), scale: 0 };
    let generator = TableGenerator::new(&table(vec![column("c", wide, sequence.clone())], u64::MAX))
        .expect("30 digits hold it");
    let mut scratch = Scratch::default();
    let Value::Numeric(last) = generator.columns()[0].value(u64::MAX - 1, &mut scratch) else {
        panic!("no numeric")
    };
    assert_eq!(last, "18446744073709551614");
    let narrow = table(vec![column("c", ColumnType::Int8, sequence)], u64::MAX);
    assert!(TableGenerator::new(&narrow).is_err());
}
