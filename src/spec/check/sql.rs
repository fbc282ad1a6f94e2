//! Rules for SQL of the experiment: what the server would refuse in every trial.

use super::finding::Finding;
use crate::model::VersionRange;

/// Statements that refuse to run inside a transaction, by their first words.
const ALONE: [&str; 6] =
    ["VACUUM", "CREATE DATABASE", "DROP DATABASE", "ALTER SYSTEM", "CREATE TABLESPACE", "DROP TABLESPACE"];
/// From this major on a role that is no superuser can be allowed to ask for a checkpoint.
const CHECKPOINT_SINCE: u32 = 15;

/// All findings about an `sql` step.
pub(super) fn check(
    index: usize,
    statements: &[String],
    transaction: bool,
    versions: VersionRange,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let base = format!("steps.{index}.sql");
    for statement in statements {
        let start = first_words(statement);
        let concurrent =
            (start.starts_with("CREATE") || start.starts_with("DROP") || start.starts_with("REINDEX"))
                && start.contains(" CONCURRENTLY");
        if transaction && (concurrent || ALONE.iter().any(|words| begins(&start, words))) {
            let message = format!("`{}` cannot run inside a transaction", shown(statement));
            let finding = Finding::new(format!("{base}.transaction"), message);
            findings.push(
                finding.hint("take `transaction: true` out, or put the statement into a step of its own"),
            );
        }
        if begins(&start, "CHECKPOINT") && versions.max < CHECKPOINT_SINCE {
            let message = format!(
                "CHECKPOINT needs a superuser in PostgreSQL {versions}, and SQL of experiments is not run by one"
            );
            let finding = Finding::new(base.clone(), message).expected("PostgreSQL 15 or later");
            findings.push(finding.hint("a load has a CHECKPOINT of its own: `until: durable`"));
        }
    }
    findings
}

fn begins(start: &str, words: &str) -> bool {
    start
        .strip_prefix(words)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'))
}

/// The first words in upper case, without comments before them.
fn first_words(statement: &str) -> String {
    let mut rest = statement.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("--") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after).trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after).trim_start();
        } else {
            break;
        }
    }
    rest.split_whitespace().take(5).collect::<Vec<_>>().join(" ").to_ascii_uppercase()
}

fn shown(statement: &str) -> String {
    let line: Vec<&str> = statement.split_whitespace().take(4).collect();
    line.join(" ").trim_end_matches(';').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(sql: &str, transaction: bool, max: u32) -> usize {
        check(0, &[sql.to_owned()], transaction, VersionRange { min: 14, max }).len()
    }

    #[test]
    fn what_refuses_transactions_is_known_by_its_first_words() {
        for sql in [
            "vacuum t",
            "VACUUM (FREEZE) t",
            "-- why\n/* x */ VACUUM;",
            "CREATE UNIQUE INDEX CONCURRENTLY ON t (a)",
        ] {
            assert_eq!((messages(sql, true, 15), messages(sql, false, 15)), (1, 0), "{sql}");
        }
        for sql in ["VACUUMED()", "INSERT INTO t VALUES ('VACUUM')", "ALTER TABLE t SET LOGGED", "ANALYZE t"]
        {
            assert_eq!(messages(sql, true, 15), 0, "{sql}");
        }
    }

    #[test]
    fn a_checkpoint_needs_a_version_with_a_role_for_it() {
        assert_eq!((messages("CHECKPOINT", false, 14), messages("checkpoint;", false, 18)), (1, 0));
    }
}
