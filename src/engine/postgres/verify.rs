//! Is the data really there: rows and content of a table against what the generator says.
//!
//! The table is read back in binary by COPY and hashed here, so the check needs no function of the
//! server and sees exactly the values that are stored.

use futures_util::TryStreamExt;
use tokio_postgres::Client;

use super::encode::ContentReader;
use super::load::WorkError;
use super::quote_ident;
use crate::data::Content;
use crate::model::Table;

/// Rows and checksum of all copies of a table, as the server has them.
pub async fn stored_content(client: &Client, table: &Table) -> Result<Content, WorkError> {
    let mut total = Content::default();
    for copy in &table.copies {
        let columns = table.columns.iter().map(|column| quote_ident(&column.name)).collect::<Vec<_>>();
        // A query, not the bare table: COPY refuses partitioned tables.
        let sql = format!(
            "COPY (SELECT {} FROM {}) TO STDOUT (FORMAT binary)",
            columns.join(", "),
            quote_ident(&copy.name)
        );
        let mut stream = std::pin::pin!(client.copy_out(&sql).await?);
        let mut reader = ContentReader::new();
        while let Some(chunk) = stream.try_next().await? {
            reader.push(&chunk)?;
        }
        total = total.merge(reader.finish()?);
    }
    Ok(total)
}
