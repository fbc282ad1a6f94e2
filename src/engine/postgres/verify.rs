//! Is the data really there: rows and content of a table against what the generator says.
//!
//! The table is read back in binary by COPY and hashed here, so the check needs no function of the
//! server and sees exactly the values that are stored.

use std::ops::Range;
use std::sync::Arc;

use futures_util::TryStreamExt;
use tokio_postgres::Client;

use super::encode::{ContentReader, Difference, DifferenceFinder, StreamError};
use super::load::WorkError;
use super::quote_ident;
use crate::data::{Content, TableGenerator};
use crate::model::{Table, TableCopy};

/// Rows and checksum of each copy of a table, as the server has them.
pub async fn stored_content(client: &Client, table: &Table) -> Result<Vec<Content>, WorkError> {
    let mut contents = Vec::with_capacity(table.copies.len());
    for copy in &table.copies {
        let mut reader = ContentReader::new();
        each_chunk(client, table, copy, |chunk| reader.push(chunk)).await?;
        contents.push(reader.finish()?);
    }
    Ok(contents)
}

/// Rows of all copies of a table, as the server counts them.
pub async fn count(client: &Client, table: &Table) -> Result<u64, WorkError> {
    let mut rows = 0;
    for copy in &table.copies {
        let sql = format!("SELECT count(*) FROM {}", quote_ident(&copy.name));
        rows += u64::try_from(client.query_one(&sql, &[]).await?.get::<_, i64>(0)).unwrap_or(0);
    }
    Ok(rows)
}

/// Which rows of the first wrong copy are missing or too many, of the `rows` that each copy should hold; `None`
/// when there are too many to compare one by one, or none is wrong any more.
pub async fn first_difference(
    client: &Client,
    table: &Table,
    rows: &[Range<u64>],
) -> Result<Option<(String, Difference)>, WorkError> {
    let generator = Arc::new(TableGenerator::new(table)?);
    for (rows, copy) in rows.iter().zip(&table.copies) {
        let Some(mut finder) = DifferenceFinder::new(Arc::clone(&generator), rows.clone()) else {
            return Ok(None);
        };
        each_chunk(client, table, copy, |chunk| finder.push(chunk)).await?;
        let found = finder.finish();
        if found.missing > 0 || found.extra > 0 {
            return Ok(Some((copy.name.clone(), found)));
        }
    }
    Ok(None)
}

async fn each_chunk(
    client: &Client,
    table: &Table,
    copy: &TableCopy,
    mut take: impl FnMut(&[u8]) -> Result<(), StreamError>,
) -> Result<(), WorkError> {
    let columns = table.columns.iter().map(|column| quote_ident(&column.name)).collect::<Vec<_>>();
    // A query, not the bare table: COPY refuses partitioned tables.
    let sql = format!(
        "COPY (SELECT {} FROM {}) TO STDOUT (FORMAT binary)",
        columns.join(", "),
        quote_ident(&copy.name)
    );
    let mut stream = std::pin::pin!(client.copy_out(&sql).await?);
    while let Some(chunk) = stream.try_next().await? {
        take(&chunk)?;
    }
    Ok(())
}
