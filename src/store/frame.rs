//! Tables of values as polars data frames. Every column is made with its type, also when it has no row or only nulls.

use polars::prelude::{
    Column as Series, DataFrame, Int64Chunked, IntoColumn, IntoSeries, ListBuilderTrait,
    ListStringChunkedBuilder, NamedFrom, NewChunkedArray, PolarsResult, Series as PolarsSeries, TimeUnit,
    TimeZone,
};

use super::schema::{Column, Kind, Value};

/// A frame of the given columns, one row per `rows`.
pub(super) fn frame<'c, R, V: Fn(&R) -> Value + 'c>(
    columns: impl Iterator<Item = &'c Column<V>>,
    rows: &[R],
) -> PolarsResult<DataFrame> {
    let series = columns.map(|column| {
        let values = rows.iter().map(&column.value).collect::<Vec<_>>();
        series(column.name, column.kind, &values)
    });
    DataFrame::new(rows.len(), series.collect())
}

/// A column of one kind. A value of another kind is a mistake in the schema's table; it becomes null, and a test of the table
/// finds it.
pub(super) fn series(name: &str, kind: Kind, values: &[Value]) -> Series {
    let series = match kind {
        Kind::Bool => numbers(name, values, |value| if let Value::Bool(v) = value { Some(*v) } else { None }),
        Kind::Int => numbers(name, values, |value| if let Value::Int(v) = value { Some(*v) } else { None }),
        Kind::Unsigned => {
            numbers(name, values, |value| if let Value::Unsigned(v) = value { Some(*v) } else { None })
        }
        Kind::Float => {
            numbers(name, values, |value| if let Value::Float(v) = value { Some(*v) } else { None })
        }
        Kind::Text => {
            numbers(name, values, |value| if let Value::Text(v) = value { Some(v.as_str()) } else { None })
        }
        Kind::Time => times(name, values),
        Kind::Texts => texts(name, values),
    };
    series.into_column()
}

fn numbers<'v, T>(name: &str, values: &'v [Value], get: fn(&'v Value) -> Option<T>) -> PolarsSeries
where
    PolarsSeries: NamedFrom<Vec<Option<T>>, [Option<T>]>,
{
    PolarsSeries::new(name.into(), values.iter().map(get).collect::<Vec<_>>())
}

/// Not a cast, which forgets the time zone of a column without rows.
fn times(name: &str, values: &[Value]) -> PolarsSeries {
    let micros =
        values.iter().map(|value| if let Value::Time(v) = value { Some(v.as_microsecond()) } else { None });
    let chunked = Int64Chunked::from_iter_options(name.into(), micros);
    chunked.into_datetime(TimeUnit::Microseconds, Some(TimeZone::UTC)).into_series()
}

fn texts(name: &str, values: &[Value]) -> PolarsSeries {
    let mut builder = ListStringChunkedBuilder::new(name.into(), values.len(), values.len());
    for value in values {
        match value {
            Value::Texts(items) => builder.append_values_iter(items.iter().map(String::as_str)),
            _ => builder.append_null(),
        }
    }
    builder.finish().into_series()
}
