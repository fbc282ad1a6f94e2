//! A loop in PL/pgSQL: one DO block per client, one INSERT per row, COMMIT inside.
//!
//! The loop counts by itself: the variable of PL/pgSQL's own FOR is a 32-bit integer.

use std::time::Instant;

use super::{Task, WorkDone, WorkError, own_or_generated};
use crate::engine::postgres::Session;
use crate::model::Procedure;

/// One client of a load by a loop in the server.
pub struct Looping {
    session: Session,
    task: Task,
    sql: String,
    own: bool,
}

impl Looping {
    pub(super) fn prepare(session: Session, task: Task, knobs: &Procedure) -> Result<Self, WorkError> {
        let body = match &knobs.body {
            Some(body) => body.clone(),
            None => loop_over_rows(&task, knobs)?,
        };
        let (first, end) = (task.rows.start, task.rows.end);
        let block = format!(
            "DECLARE
  first_row CONSTANT bigint := {first};
  last_row CONSTANT bigint := {end} - 1;
  \
             row bigint := {first};
BEGIN
{body}
END
"
        );
        let sql = format!("DO {}", dollar_quoted(&block));
        Ok(Self { session, task, sql, own: knobs.body.is_some() })
    }

    pub(super) async fn work(self) -> Result<WorkDone, WorkError> {
        let mut done = WorkDone::default();
        if self.task.rows.is_empty() {
            return Ok(done);
        }
        let start = Instant::now();
        self.session.client.batch_execute(&self.sql).await?;
        done.batches.add(start.elapsed());
        // How many rows a body of one's own inserts is counted afterwards.
        done.rows = if self.own { 0 } else { self.task.rows.end - self.task.rows.start };
        self.task.progress.set(self.task.client, self.task.rows.end - self.task.rows.start);
        Ok(done)
    }
}

fn loop_over_rows(task: &Task, knobs: &Procedure) -> Result<String, WorkError> {
    let values = own_or_generated(task, &knobs.expressions)?.join(", ");
    let insert = format!("INSERT INTO {} {} VALUES ({values});", task.target(), task.column_list());
    let commit = knobs.rows_per_commit.map_or_else(String::new, |rows| {
        format!("    IF (row - first_row) % {rows} = 0 THEN COMMIT; END IF;\n")
    });
    Ok(format!("  WHILE row <= last_row LOOP\n    {insert}\n    row := row + 1;\n{commit}  END LOOP;"))
}

/// The text between dollar quotes that do not occur in it, such as `$loadlab$`.
fn dollar_quoted(text: &str) -> String {
    let quotes = (1..).map(|number| format!("$loadlab{number}$"));
    let quote =
        std::iter::once("$loadlab$".to_owned()).chain(quotes).find(|quote| !text.contains(quote.as_str()));
    let quote = quote.unwrap_or_default();
    format!("{quote}\n{text}{quote}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_hold_dollar_quotes() {
        assert_eq!(dollar_quoted("a\n"), "$loadlab$\na\n$loadlab$");
        assert_eq!(dollar_quoted("'$loadlab$ $loadlab1$'"), "$loadlab2$\n'$loadlab$ $loadlab1$'$loadlab2$");
    }
}
