//! SELECT: all rows at once, streamed, or by portals of a fetch size; binary or text values.

use std::time::Instant;

use futures_util::{StreamExt, TryStreamExt};
use tokio_postgres::{Row, SimpleQueryMessage};

use super::{Task, WorkDone, WorkError};
use crate::engine::postgres::Session;
use crate::engine::postgres::decode::Decoder;
use crate::engine::postgres::encode::RawField;
use crate::model::{SelectMode, TextOrBinary};

/// Rows after which the progress is told.
const TELL_EVERY: u64 = 1024;

/// Counts, and where asked decodes, the rows that arrive.
struct Sink<'a> {
    task: &'a Task,
    start: Instant,
    done: WorkDone,
    decoder: Decoder,
}

impl<'a> Sink<'a> {
    fn new(task: &'a Task, start: Instant) -> Self {
        Self { task, start, done: WorkDone::default(), decoder: task.decoder() }
    }

    fn row(&mut self, row: &Row) -> Result<(), WorkError> {
        self.count(row.raw_size_bytes());
        if self.decoder.is_idle() {
            return Ok(());
        }
        for index in 0..row.len() {
            let field: RawField<'_> = row.try_get(index)?;
            self.decoder.binary(field.0)?;
        }
        self.decoder.end_row()
    }

    fn text_row(&mut self, message: &SimpleQueryMessage) -> Result<(), WorkError> {
        let SimpleQueryMessage::Row(row) = message else { return Ok(()) };
        let bytes = (0..row.len()).map(|column| row.get(column).map_or(0, str::len)).sum();
        self.count(bytes);
        if self.decoder.is_idle() {
            return Ok(());
        }
        for index in 0..row.len() {
            self.decoder.text(row.get(index).map(str::as_bytes))?;
        }
        self.decoder.end_row()
    }

    fn count(&mut self, bytes: usize) {
        if self.done.first_row.is_none() {
            self.done.first_row = Some(self.start.elapsed());
        }
        self.done.rows += 1;
        self.done.payload_bytes += bytes as u64;
        if self.done.rows.is_multiple_of(TELL_EVERY) {
            self.task.progress.set(self.task.client, self.done.rows);
        }
    }

    fn finish(mut self) -> WorkDone {
        self.task.progress.set(self.task.client, self.done.rows);
        self.done.content = self.decoder.content();
        self.done
    }
}

/// Reads all rows of `sql`.
pub(super) async fn read(
    session: &mut Session,
    task: &Task,
    sql: &str,
    mode: SelectMode,
    format: TextOrBinary,
    start: Instant,
) -> Result<WorkDone, WorkError> {
    let mut sink = Sink::new(task, start);
    match (format, mode) {
        (TextOrBinary::Text, SelectMode::All) => {
            for message in session.client.simple_query(sql).await? {
                sink.text_row(&message)?;
            }
        }
        (TextOrBinary::Text, _) => {
            let mut rows = std::pin::pin!(session.client.simple_query_raw(sql).await?);
            while let Some(message) = rows.try_next().await? {
                sink.text_row(&message)?;
            }
        }
        (TextOrBinary::Binary, SelectMode::All) => {
            // The first row can be looked at only when the last has arrived.
            for row in session.client.query(sql, &[]).await? {
                sink.row(&row)?;
            }
        }
        (TextOrBinary::Binary, SelectMode::Streamed) => {
            let none: [&str; 0] = [];
            let mut rows = std::pin::pin!(session.client.query_raw(sql, none).await?);
            while let Some(row) = rows.next().await {
                sink.row(&row?)?;
            }
        }
        (TextOrBinary::Binary, SelectMode::Portal { fetch_size }) => {
            portal(session, &mut sink, sql, fetch_size).await?;
        }
    }
    Ok(sink.finish())
}

/// A portal lives in a transaction; each round trip takes `fetch_size` rows, as a driver's fetch size does.
async fn portal(
    session: &mut Session,
    sink: &mut Sink<'_>,
    sql: &str,
    fetch_size: u32,
) -> Result<(), WorkError> {
    let transaction = session.client.transaction().await?;
    let portal = transaction.bind(sql, &[]).await?;
    let size = i32::try_from(fetch_size).unwrap_or(i32::MAX);
    loop {
        let start = Instant::now();
        let rows = transaction.query_portal(&portal, size).await?;
        sink.done.batches.add(start.elapsed());
        sink.task.progress.acknowledged(rows.len() as u64);
        for row in &rows {
            sink.row(row)?;
        }
        if rows.len() < fetch_size as usize {
            break;
        }
    }
    transaction.commit().await?;
    Ok(())
}
