//! Rules for read steps.

use super::{assert_fine, assert_one, copy, create, load, read, set_clients, with_steps};
use crate::model::{
    By, Cache, ColumnType, CopyFormat, Decode, LoadMethod, Read, ReadMethod, Scalar, SelectMode, StepKind,
    Storage, TableCopy, TextOrBinary,
};

#[test]
fn reads_name_columns_that_exist() {
    let with = |read: Read| with_steps(vec![create(), load(LoadMethod::Copy(copy())), StepKind::Read(read)]);
    assert_fine(&with(read()));
    let unknown = Read { columns: vec!["c0".to_owned(), "d1".to_owned()], ..read() };
    assert_one(&with(unknown), "steps.2.read.columns.1", "no column `d1`");
    assert_one(&with(Read { columns: vec![], ..read() }), "steps.2.read.columns", "no column is read");
    let method =
        ReadMethod::Select { mode: SelectMode::Portal { fetch_size: 0 }, format: TextOrBinary::Binary };
    assert_one(&with(Read { method, ..read() }), "steps.2.read.method.select", "0 rows");
}

#[test]
fn clients_share_by_an_integer_key_and_decode_what_is_there() {
    let with = |read: Read| with_steps(vec![create(), load(LoadMethod::Copy(copy())), StepKind::Read(read)]);
    let by = |column: &str| By::Key { column: column.to_owned() };
    assert_fine(&with(Read { by: by("c0"), ..read() }));
    assert_one(&with(Read { by: by("d1"), ..read() }), "steps.2.read.key", "no column `d1`");
    let mut text = with(Read { by: by("c0"), ..read() });
    text.tables[0].columns[0].kind = ColumnType::Text;
    assert_one(&text, "steps.2.read.key", "not of an integer type");
    let scan = Read { method: ReadMethod::Scan, ..read() };
    assert_fine(&with(scan.clone()));
    assert_one(&with(Read { decode: Decode::Values, ..scan }), "steps.2.read.decode", "no rows travel");
    assert_one(&with(Read { decode: Decode::Floats, ..read() }), "steps.2.read.decode", "holds floats");
}

#[test]
fn memory_is_never_cold_and_lossy_text_is_never_decoded() {
    let with = |read: Read| with_steps(vec![create(), load(LoadMethod::Copy(copy())), StepKind::Read(read)]);
    let mut cold = with(Read { cache: Cache::Cold, ..read() });
    assert_fine(&cold);
    cold.environment.storage = Storage::Tmpfs;
    assert_one(&cold, "steps.2.read.cache", "never cold");
    let method = ReadMethod::CopyOut { format: CopyFormat::Text };
    let mut lossy = with(Read { method, decode: Decode::Values, ..read() });
    assert_fine(&lossy);
    lossy.environment.settings.insert("extra_float_digits".to_owned(), Scalar::Int(0));
    assert_one(&lossy, "steps.2.read.decode", "extra_float_digits");
}

#[test]
fn every_copy_of_a_table_is_read() {
    let mut trial = with_steps(vec![create(), load(LoadMethod::Copy(copy())), StepKind::Read(read())]);
    let copy = trial.tables[0].copies[0].clone();
    trial.tables[0].copies.push(TableCopy { name: "other".to_owned(), ..copy });
    set_clients(&mut trial, 2);
    assert_one(&trial, "steps.2.read.clients", "1 client cannot read 2 copies");
}
