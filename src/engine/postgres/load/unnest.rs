//! INSERT of rows that travel as one bound array per column and are taken apart by `unnest`.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tokio_postgres::Statement;

use super::{Task, WorkDone, WorkError};
use crate::engine::postgres::Session;
use crate::engine::postgres::encode::ArrayParameters;
use crate::model::Unnest;

/// One client of an unnest load.
pub struct Unnester {
    session: Session,
    task: Task,
    knobs: Unnest,
    statement: Statement,
    arrays: ArrayParameters,
}

impl Unnester {
    pub(super) async fn prepare(session: Session, task: Task, knobs: Unnest) -> Result<Self, WorkError> {
        let arrays = ArrayParameters::new(Arc::clone(&task.generator));
        let (target, columns, holes) = (task.target(), task.column_list(), arrays.holes());
        let sql = format!("INSERT INTO {target} {columns} SELECT * FROM unnest({holes})");
        let statement = session.client.prepare(&sql).await?;
        Ok(Self { session, task, knobs, statement, arrays })
    }

    pub(super) async fn work(mut self) -> Result<WorkDone, WorkError> {
        let mut done = WorkDone::default();
        let per_commit = self.knobs.rows_per_commit.unwrap_or(u64::MAX);
        // One statement per transaction is what autocommit means: no BEGIN and COMMIT around it.
        let explicit = per_commit > self.knobs.rows_per_batch;
        let mut open = 0;
        let mut next = self.task.rows.start;
        while next < self.task.rows.end {
            if explicit && open == 0 {
                self.session.client.batch_execute("BEGIN").await?;
            }
            let end = self.task.rows.end.min(next.saturating_add(self.knobs.rows_per_batch));
            let start = Instant::now();
            done.rows += self.batch(&(next..end)).await?;
            done.batches.add(start.elapsed());
            done.payload_bytes += self.arrays.bytes() as u64;
            open += end - next;
            next = end;
            self.task.progress.set(self.task.client, done.rows);
            if explicit && (open >= per_commit || next == self.task.rows.end) {
                let start = Instant::now();
                self.session.client.batch_execute("COMMIT").await?;
                done.committed(start);
                open = 0;
            }
        }
        Ok(done)
    }

    async fn batch(&mut self, rows: &Range<u64>) -> Result<u64, WorkError> {
        self.arrays.set_rows(rows);
        Ok(self.session.client.execute_raw(&self.statement, self.arrays.iter()).await?)
    }
}
