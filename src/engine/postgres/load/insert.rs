//! INSERT with bound parameters or literals; statements of a batch are pipelined in one round trip.
//!
//! The driver ends every pipelined statement with its own Sync message, where JDBC sends one per batch;
//! inside a transaction that costs a few bytes and no further round trip.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use futures_util::future::try_join_all;
use tokio_postgres::Statement;

use super::{Task, WorkDone, WorkError};
use crate::data::TableGenerator;
use crate::engine::postgres::Session;
use crate::engine::postgres::encode::{LiteralEncoder, Parameters, RawParameter};
use crate::model::Insert;

/// One client of an INSERT load.
pub struct Inserter {
    session: Session,
    task: Task,
    knobs: Insert,
    /// The statement of full batches; a shorter last one is prepared when it comes.
    statement: Option<Statement>,
}

impl Inserter {
    pub(super) async fn prepare(session: Session, task: Task, knobs: Insert) -> Result<Self, WorkError> {
        let mut inserter = Self { session, task, knobs, statement: None };
        if inserter.knobs.prepared {
            let full = inserter.prepare_rows(inserter.knobs.rows_per_statement).await?;
            inserter.statement = Some(full);
        }
        Ok(inserter)
    }

    async fn prepare_rows(&self, rows: u64) -> Result<Statement, WorkError> {
        let columns = self.task.table.columns.len() as u64;
        let mut sql = format!("INSERT INTO {} {} VALUES ", self.task.target(), self.task.column_list());
        for row in 0..rows {
            let first = row * columns + 1;
            let holes = (first..first + columns).map(|hole| format!("${hole}")).collect::<Vec<_>>();
            sql.push_str(if row == 0 { "(" } else { ", (" });
            sql.push_str(&holes.join(", "));
            sql.push(')');
        }
        Ok(self.session.client.prepare(&sql).await?)
    }

    pub(super) async fn work(mut self) -> Result<WorkDone, WorkError> {
        let mut done = WorkDone::default();
        let per_commit = self.knobs.rows_per_commit.unwrap_or(u64::MAX);
        // One statement per transaction is what autocommit means: no BEGIN and COMMIT around it.
        let explicit = per_commit > self.knobs.rows_per_statement || self.knobs.rows_per_batch > per_commit;
        let mut open = 0;
        while let Some(batch) = self.task.next(self.knobs.rows_per_batch).await? {
            if explicit && open == 0 {
                self.session.client.batch_execute("BEGIN").await?;
            }
            let start = Instant::now();
            let bytes = self.batch(batch.rows.clone()).await?;
            let rows = batch.rows.end - batch.rows.start;
            self.task.answered(&batch, rows, start, bytes, &mut done);
            open += rows;
            if !explicit {
                self.task.committed(open, None, &mut done);
                open = 0;
            } else if open >= per_commit {
                self.task.commit(&self.session, &mut open, &mut done).await?;
            }
        }
        if open > 0 {
            self.task.commit(&self.session, &mut open, &mut done).await?;
        }
        Ok(done)
    }

    /// Sends one batch and waits for all of it. Returns the bytes of its values.
    async fn batch(&self, rows: Range<u64>) -> Result<u64, WorkError> {
        if self.knobs.prepared { self.bound(rows).await } else { self.literals(rows).await }
    }

    async fn bound(&self, rows: Range<u64>) -> Result<u64, WorkError> {
        let size = self.knobs.rows_per_statement;
        let full = self.statement.as_ref().expect("prepared clients have a statement");
        let rest = (rows.end - rows.start) % size;
        let short = if rest == 0 { None } else { Some(self.prepare_rows(rest).await?) };
        let encoded = encode(&self.task.generator, rows);
        let parameters: Vec<RawParameter<'_>> = encoded.iter().collect();
        let columns = self.task.table.columns.len();
        let per_statement = usize::try_from(size).unwrap_or(usize::MAX).saturating_mul(columns);
        let sent = parameters.chunks(per_statement).map(|values| {
            let statement = match &short {
                Some(short) if values.len() < per_statement => short,
                _ => full,
            };
            self.session.client.execute_raw(statement, values.iter())
        });
        try_join_all(sent).await?;
        Ok(encoded.bytes() as u64)
    }

    async fn literals(&self, rows: Range<u64>) -> Result<u64, WorkError> {
        let head = format!("INSERT INTO {} {} VALUES ", self.task.target(), self.task.column_list());
        let sql = spell(&self.task.generator, &head, self.knobs.rows_per_statement, rows);
        self.session.client.batch_execute(&sql).await?;
        Ok(sql.len() as u64)
    }
}

/// The rows of a batch, ready to be bound.
pub(super) fn encode(generator: &Arc<TableGenerator>, rows: Range<u64>) -> Parameters {
    let mut encoded = Parameters::new(Arc::clone(generator));
    encoded.set_rows(rows);
    encoded
}

/// The statements of a batch as text; each begins with `head`.
pub(super) fn spell(
    generator: &Arc<TableGenerator>,
    head: &str,
    rows_per_statement: u64,
    rows: Range<u64>,
) -> String {
    let mut encoder = LiteralEncoder::new(Arc::clone(generator));
    let mut sql = String::new();
    let mut first = rows.start;
    while first < rows.end {
        let end = rows.end.min(first + rows_per_statement);
        sql.push_str(head);
        encoder.rows(first..end, &mut sql);
        sql.push(';');
        first = end;
    }
    sql
}
