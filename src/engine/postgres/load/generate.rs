//! INSERT ... SELECT ... FROM `generate_series`: the server makes the rows, none travel.

use std::time::Instant;

use tokio_postgres::Statement;

use super::{Task, WorkDone, WorkError, own_or_generated};
use crate::engine::postgres::Session;
use crate::model::Generate;

/// One client of a load whose rows the server makes.
pub struct Generating {
    session: Session,
    task: Task,
    knobs: Generate,
    statement: Statement,
}

impl Generating {
    pub(super) async fn prepare(session: Session, task: Task, knobs: Generate) -> Result<Self, WorkError> {
        let values = own_or_generated(&task, &knobs.expressions)?.join(", ");
        let sql = format!(
            "INSERT INTO {} {} SELECT {values} FROM generate_series($1::bigint, $2::bigint) AS made(row)",
            task.target(),
            task.column_list()
        );
        let statement = session.client.prepare(&sql).await?;
        Ok(Self { session, task, knobs, statement })
    }

    pub(super) async fn work(self) -> Result<WorkDone, WorkError> {
        let mut done = WorkDone::default();
        for rows in self.task.transactions(self.knobs.rows_per_commit) {
            self.session.client.batch_execute("BEGIN").await?;
            let start = Instant::now();
            // The check keeps tables far below 2^63 rows.
            let (first, end) = (i64::try_from(rows.start), i64::try_from(rows.end));
            let bounds = (first.unwrap_or(i64::MAX), end.unwrap_or(i64::MAX) - 1);
            let made = self.session.client.execute(&self.statement, &[&bounds.0, &bounds.1]).await?;
            self.task.progress.acknowledged(made);
            done.rows += made;
            done.batches.add(start.elapsed());
            let start = Instant::now();
            self.session.client.batch_execute("COMMIT").await?;
            done.committed(start);
            self.task.progress.set(self.task.client, done.rows);
        }
        Ok(done)
    }
}
