//! Where a table is just before a read: its files, its pages in shared buffers, its visibility map.
//!
//! What only an extension of the server's own distribution can say is asked in a transaction that is rolled back, so
//! that the extension is not there afterwards.

use tokio_postgres::{Client, Row};

use super::SessionError;

/// Tables with their partitions, TOAST tables and all indexes: the relations of names in `$1`.
const RELATIONS: &str = "WITH tables AS (SELECT to_regclass(name)::oid AS oid FROM unnest($1::text[]) name UNION \
     SELECT relid::oid FROM unnest($1::text[]) name, pg_partition_tree(to_regclass(name))), \
     heaps AS (SELECT oid FROM tables UNION SELECT reltoastrelid FROM pg_class WHERE oid IN (SELECT oid FROM tables)), \
     relations AS (SELECT oid FROM heaps UNION SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM heaps))";

/// Files of the relations of tables (quoted names), relative to the data directory; each may have further segments.
///
/// # Errors
/// When the server refuses.
pub async fn files(admin: &Client, tables: &[String]) -> Result<Vec<String>, SessionError> {
    let sql = format!(
        "{RELATIONS} SELECT path FROM (SELECT pg_relation_filepath(oid) FROM relations) AS file(path) \
         WHERE path IS NOT NULL"
    );
    Ok(admin.query(&sql, &[&tables]).await?.iter().map(|row| row.get(0)).collect())
}

/// Which share of the pages of tables (quoted names) lies in shared buffers, 0 to 1; `None` where the server's
/// distribution does not have `pg_buffercache` or the role may not use it.
pub async fn buffered_share(admin: &Client, tables: &[String]) -> Option<f64> {
    let sql = format!(
        "{RELATIONS} SELECT (SELECT count(*) FROM pg_buffercache WHERE relforknumber = 0 AND reldatabase = \
         (SELECT oid FROM pg_database WHERE datname = current_database()) AND relfilenode IN \
         (SELECT pg_relation_filenode(oid) FROM heaps))::float8, \
         (SELECT sum(pg_relation_size(oid)) FROM heaps)::float8 / current_setting('block_size')::float8"
    );
    let row = with_extension(admin, "pg_buffercache", &sql, tables).await?;
    share(row.get(0), row.get(1))
}

/// Shares of the pages of tables (quoted names) that the visibility map says are all-visible and all-frozen, 0 to 1;
/// `None` where the server's distribution does not have `pg_visibility` or the role may not use it.
pub async fn map_shares(admin: &Client, tables: &[String]) -> Option<(f64, f64)> {
    let sql = format!(
        "{RELATIONS} SELECT sum(all_visible)::float8, sum(all_frozen)::float8, \
         sum(pg_relation_size(oid))::float8 / current_setting('block_size')::float8 \
         FROM (SELECT oid FROM pg_class WHERE relkind = 'r' AND oid IN (SELECT oid FROM tables)) AS heap, \
         pg_visibility_map_summary(heap.oid)"
    );
    let row = with_extension(admin, "pg_visibility", &sql, tables).await?;
    let pages: Option<f64> = row.get(2);
    share(row.get(0), pages).zip(share(row.get(1), pages))
}

/// The one row of a query that needs an extension. Whatever goes wrong, the answer is not known.
async fn with_extension(admin: &Client, extension: &str, sql: &str, tables: &[String]) -> Option<Row> {
    let begin =
        format!("BEGIN; SET LOCAL client_min_messages = warning; CREATE EXTENSION IF NOT EXISTS {extension}");
    let row = match admin.batch_execute(&begin).await {
        Ok(()) => admin.query_one(sql, &[&tables]).await.ok(),
        Err(_) => None,
    };
    admin.batch_execute("ROLLBACK").await.ok()?;
    row
}

fn share(part: Option<f64>, of: Option<f64>) -> Option<f64> {
    let (part, of) = part.zip(of)?;
    Some(if of > 0.0 { (part / of).min(1.0) } else { 0.0 })
}
