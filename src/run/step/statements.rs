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
    stage.conclude(&before, &end, 0, table, &mut taken.measurement).await
}
