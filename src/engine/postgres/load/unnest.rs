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
        while let Some(batch) = self.task.next(self.knobs.rows_per_batch).await? {
            if explicit && open == 0 {
                self.session.client.batch_execute("BEGIN").await?;
            }
            let start = Instant::now();
            let rows = self.batch(&batch.rows).await?;
            let bytes = self.arrays.bytes() as u64;
            self.task.answered(&batch, rows, start, bytes, &mut done);
            if !explicit {
                self.task.committed(rows, None, &mut done);
                continue;
            }
            open += rows;
            if open >= per_commit {
                self.task.commit(&self.session, &mut open, &mut done).await?;
            }
        }
        if open > 0 {
            self.task.commit(&self.session, &mut open, &mut done).await?;
        }
        Ok(done)
    }

    async fn batch(&mut self, rows: &Range<u64>) -> Result<u64, WorkError> {
        self.arrays.set_rows(rows);
        Ok(self.session.client.execute_raw(&self.statement, self.arrays.iter()).await?)
    }
}
