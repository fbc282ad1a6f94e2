//! Values of a row decoded into Rust values, as a client would.

use std::error::Error;
use std::hint::black_box;

use tokio_postgres::types::{FromSql, Type};

/// Decodes one value in PostgreSQL's binary format; the result is thrown away but not optimised away.
/// Types without a plain Rust value (numeric, uuid, dates) are decoded to their bytes.
pub(super) fn decode(kind: &Type, raw: &[u8]) -> Result<(), Box<dyn Error + Sync + Send>> {
    match *kind {
        Type::BOOL => drop(black_box(bool::from_sql(kind, raw)?)),
        Type::INT2 => drop(black_box(i16::from_sql(kind, raw)?)),
        Type::INT4 => drop(black_box(i32::from_sql(kind, raw)?)),
        Type::INT8 => drop(black_box(i64::from_sql(kind, raw)?)),
        Type::FLOAT4 => drop(black_box(f32::from_sql(kind, raw)?)),
        Type::FLOAT8 => drop(black_box(f64::from_sql(kind, raw)?)),
        Type::TEXT | Type::VARCHAR | Type::BPCHAR => drop(black_box(String::from_sql(kind, raw)?)),
        Type::FLOAT4_ARRAY => drop(black_box(Vec::<Option<f32>>::from_sql(kind, raw)?)),
        Type::FLOAT8_ARRAY => drop(black_box(Vec::<Option<f64>>::from_sql(kind, raw)?)),
        Type::INT4_ARRAY => drop(black_box(Vec::<Option<i32>>::from_sql(kind, raw)?)),
        Type::INT8_ARRAY => drop(black_box(Vec::<Option<i64>>::from_sql(kind, raw)?)),
        _ => drop(black_box(raw.to_vec())),
    }
    Ok(())
}
