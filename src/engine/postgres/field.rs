//! Values of a row as they came over the wire, decoded into Rust values when a client would do so.

use std::error::Error;
use std::hint::black_box;

use tokio_postgres::types::{FromSql, Type};

use super::load::WorkError;

/// One field of any type, in PostgreSQL's binary format; `None` is NULL.
pub(super) struct RawField<'a> {
    bytes: Option<&'a [u8]>,
    kind: Type,
}

impl<'a> FromSql<'a> for RawField<'a> {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self { bytes: Some(raw), kind: kind.clone() })
    }

    fn from_sql_null(kind: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self { bytes: None, kind: kind.clone() })
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl<'a> RawField<'a> {
    /// Decodes the value as a client would, and gives its bytes back for the checksum. Types without a
    /// plain Rust value (numeric, uuid, dates) are decoded to their bytes.
    pub(super) fn decoded(&self) -> Result<Option<&'a [u8]>, WorkError> {
        let Some(raw) = self.bytes else { return Ok(None) };
        decode(&self.kind, raw)
            .map_err(|error| WorkError::Protocol(format!("cannot decode a value of type {}: {error}", self.kind)))?;
        Ok(Some(raw))
    }
}

fn decode(kind: &Type, raw: &[u8]) -> Result<(), Box<dyn Error + Sync + Send>> {
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
