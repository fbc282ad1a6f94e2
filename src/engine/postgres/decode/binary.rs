//! Values in binary format decoded into Rust values, as a client would.

use std::error::Error;
use std::hint::black_box;

use tokio_postgres::types::{FromSql, Type};

use crate::model::ColumnType;

/// Decodes one value; the result is thrown away but not optimised away. Types without a plain Rust value (numeric,
/// uuid, dates) are decoded to their bytes.
pub(super) fn decode(kind: &ColumnType, raw: &[u8]) -> Result<(), Box<dyn Error + Sync + Send>> {
    match kind {
        ColumnType::Bool => drop(black_box(bool::from_sql(&Type::BOOL, raw)?)),
        ColumnType::Int2 => drop(black_box(i16::from_sql(&Type::INT2, raw)?)),
        ColumnType::Int4 => drop(black_box(i32::from_sql(&Type::INT4, raw)?)),
        ColumnType::Int8 => drop(black_box(i64::from_sql(&Type::INT8, raw)?)),
        ColumnType::Float4 => drop(black_box(f32::from_sql(&Type::FLOAT4, raw)?)),
        ColumnType::Float8 => drop(black_box(f64::from_sql(&Type::FLOAT8, raw)?)),
        ColumnType::Text | ColumnType::Varchar(_) | ColumnType::Char(_) => {
            drop(black_box(String::from_sql(&Type::TEXT, raw)?));
        }
        ColumnType::Array(element) => match **element {
            ColumnType::Float4 => {
                drop(black_box(Vec::<Option<f32>>::from_sql(&Type::FLOAT4_ARRAY, raw)?));
            }
            ColumnType::Float8 => {
                drop(black_box(Vec::<Option<f64>>::from_sql(&Type::FLOAT8_ARRAY, raw)?));
            }
            ColumnType::Int4 => drop(black_box(Vec::<Option<i32>>::from_sql(&Type::INT4_ARRAY, raw)?)),
            ColumnType::Int8 => drop(black_box(Vec::<Option<i64>>::from_sql(&Type::INT8_ARRAY, raw)?)),
            _ => drop(black_box(raw.to_vec())),
        },
        _ => drop(black_box(raw.to_vec())),
    }
    Ok(())
}
