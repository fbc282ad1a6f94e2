//! COPY (SELECT ...) TO STDOUT.

use std::time::Instant;

use futures_util::TryStreamExt;

use super::{Task, WorkDone, WorkError};
use crate::engine::postgres::Session;
use crate::engine::postgres::decode::{Decoder, csv_row, text_row};
use crate::engine::postgres::encode::CopyRows;
use crate::model::CopyFormat;

/// Reads all rows of `sql`.
pub(super) async fn read(
    session: &Session,
    task: &Task,
    sql: &str,
    format: CopyFormat,
    start: Instant,
) -> Result<WorkDone, WorkError> {
    let mut done = WorkDone::default();
    let statement = format!("COPY ({sql}) TO STDOUT (FORMAT {})", format.sql());
    let mut stream = std::pin::pin!(session.client.copy_out(&statement).await?);
    let mut decoder = task.decoder();
    let mut rows = CopyRows::default();
    let mut messages: u64 = 0;
    while let Some(chunk) = stream.try_next().await? {
        if done.first_row.is_none() {
            done.first_row = Some(start.elapsed());
        }
        messages += 1;
        done.payload_bytes += chunk.len() as u64;
        if !decoder.is_idle() {
            match format {
                CopyFormat::Text => text_row(&mut decoder, &chunk)?,
                CopyFormat::Csv => csv_row(&mut decoder, &chunk)?,
                CopyFormat::Binary => binary_rows(&mut rows, &mut decoder, &chunk)?,
            }
        }
        if messages.is_multiple_of(1024) {
            task.progress.set(task.client, messages);
        }
    }
    if format == CopyFormat::Binary && !decoder.is_idle() {
        rows.finish()?;
    }
    // The server sends one message per row; binary adds a header to the first and a trailer of its own.
    done.rows = if format == CopyFormat::Binary { messages.saturating_sub(1) } else { messages };
    if done.rows == 0 {
        // What came was a header only.
        done.first_row = None;
    }
    done.content = decoder.content();
    task.progress.set(task.client, done.rows);
    Ok(done)
}

fn binary_rows(rows: &mut CopyRows, decoder: &mut Decoder, chunk: &[u8]) -> Result<(), WorkError> {
    let mut first_error = Ok(());
    rows.push(chunk, |body| {
        if first_error.is_ok() {
            first_error = decoder.binary_row(body);
        }
    })?;
    first_error
}
