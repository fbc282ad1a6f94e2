//! A scan by the server itself: no rows travel, the plan says what it did.

use serde_json::Value;

use super::{Task, WorkDone, WorkError};
use crate::engine::postgres::Session;
use crate::engine::postgres::encode::RawField;
use crate::model::Scanned;

/// Runs `sql` under EXPLAIN (ANALYZE). Without TIMING: asking the clock for each row can cost more than the row.
pub(super) async fn read(session: &Session, task: &Task, sql: &str) -> Result<WorkDone, WorkError> {
    let statement = format!("EXPLAIN (ANALYZE, BUFFERS, WAL, TIMING OFF, FORMAT JSON) {sql}");
    let row = session.client.query_one(&statement, &[]).await?;
    let text: RawField<'_> = row.try_get(0)?;
    let plan: Value = serde_json::from_slice(text.0.unwrap_or_default())
        .map_err(|error| WorkError::Protocol(format!("the plan is no JSON: {error}")))?;
    let (rows, scanned) = result(&plan)
        .ok_or_else(|| WorkError::Protocol(format!("the plan does not say what the scan did: {plan}")))?;
    task.progress.set(task.client, rows);
    Ok(WorkDone { rows, scanned: Some(scanned), ..WorkDone::default() })
}

/// Rows and pages of the uppermost node, which includes those below it.
fn result(plan: &Value) -> Option<(u64, Scanned)> {
    let node = plan.get(0)?.get("Plan")?;
    let pages = |name: &str| node.get(name).and_then(Value::as_u64);
    // A number with a fraction from 18 on.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of rows")]
    let rows = node.get("Actual Rows")?.as_f64()?.round() as u64;
    let scanned = Scanned {
        pages_hit: pages("Shared Hit Blocks")?,
        pages_read: pages("Shared Read Blocks")?,
        pages_dirtied: pages("Shared Dirtied Blocks")?,
        pages_written: pages("Shared Written Blocks")?,
        wal_bytes: pages("WAL Bytes")?,
    };
    Some((rows, scanned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uppermost_node_says_it_all() {
        let plan = serde_json::json!([{"Plan": {"Node Type": "Seq Scan", "Actual Rows": 1000.00, "Actual Loops": 1,
            "Shared Hit Blocks": 1, "Shared Read Blocks": 2, "Shared Dirtied Blocks": 3, "Shared Written Blocks": 4,
            "WAL Records": 5, "WAL FPI": 6, "WAL Bytes": 7}, "Triggers": []}]);
        let scanned =
            Scanned { pages_hit: 1, pages_read: 2, pages_dirtied: 3, pages_written: 4, wal_bytes: 7 };
        assert_eq!(result(&plan), Some((1000, scanned)));
        assert_eq!(result(&serde_json::json!([])), None);
    }
}
