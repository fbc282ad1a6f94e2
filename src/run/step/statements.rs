//! Steps that run SQL: `create`, `index`, `sql`.

use std::time::Instant;

use super::Taken;
use crate::engine::postgres::load::WorkError;
use crate::engine::postgres::{Role, Session, WORKER};
use crate::model::Table;
use crate::run::stage::Stage;

pub(super) async fn run_statements(
    stage: &Stage<'_>,
    sql: &[&String],
    transaction: bool,
    table: Option<&Table>,
    taken: &mut Taken,
) -> Result<(), WorkError> {
    // A session of its own: what it did is in the server's statistics when it has ended, not before.
    let session = Session::open_as(&stage.instance.endpoint, Role::Owner, WORKER).await?;
    let before = stage.before().await?;
    let start = Instant::now();
    if transaction {
        session.client.batch_execute("BEGIN").await?;
    }
    for statement in sql {
        session.client.batch_execute(statement).await?;
    }
    if transaction {
        session.client.batch_execute("COMMIT").await?;
    }
    taken.measurement.spans.seconds = start.elapsed().as_secs_f64();
    let end = stage.at_end().await?;
    drop(session);
    let own = sql.iter().filter(|statement| is_checkpoint(statement)).count() as u64;
    if own > 0 {
        stage.count_checkpoints(&before, own).await?;
    }
    stage.conclude(&before, &end, own, table, &mut taken.measurement).await?;
    if table.is_none() {
        // SQL may have changed any of them.
        let tables: Vec<_> = stage.tables.iter().collect();
        stage.sizes(&tables, &mut taken.measurement).await?;
    }
    Ok(())
}

/// A checkpoint that the experiment itself asks for is what is measured, not a disturbance.
fn is_checkpoint(statement: &str) -> bool {
    without_comments(statement).get(..10).is_some_and(|word| word.eq_ignore_ascii_case("CHECKPOINT"))
}

fn without_comments(statement: &str) -> &str {
    let rest = statement.trim_start();
    if let Some(comment) = rest.strip_prefix("--") {
        return comment.split_once('\n').map_or("", |(_, after)| without_comments(after));
    }
    match rest.strip_prefix("/*") {
        Some(comment) => comment.split_once("*/").map_or("", |(_, after)| without_comments(after)),
        None => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_known_behind_comments() {
        assert!(is_checkpoint("-- now\n/* really */ checkpoint;"));
        assert!(
            !is_checkpoint("SELECT 'CHECKPOINT'") && !is_checkpoint("") && !is_checkpoint("-- CHECKPOINT")
        );
    }
}
