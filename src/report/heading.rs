//! What stands above the tables: which run this is, how much of it is there, and on which servers.

use std::collections::BTreeSet;

use crate::model::{DEFAULT_BLOCK_SIZE, TrialRecord, block_size_words};
use crate::store::RunManifest;

/// Stands first above whatever a smoke run gave.
pub(super) const SMOKE: &str = "SMOKE RUN: few rows, short durations, one block. It shows that everything works and proves nothing about speed.";

/// Experiment and question, run, trials done of those planned, and the servers that were really used.
#[must_use]
pub fn heading(run: &RunManifest, records: &[TrialRecord]) -> Vec<String> {
    let mut lines: Vec<String> = run.smoke.then(|| SMOKE.to_owned()).into_iter().collect();
    lines.push(format!("{}: {}", run.experiment, run.question.trim()));
    lines.push(format!("run {}: {}", run.run, progress(run, records)));
    lines.extend(servers(records));
    lines
}

fn progress(run: &RunManifest, records: &[TrialRecord]) -> String {
    let (done, planned) = (records.len() as u64, run.trials_planned);
    let stopped_by_rule = run.design.blocks.max > run.design.blocks.min
        && done
            >= run.trials_planned / u64::from(run.design.blocks.max.max(1))
                * u64::from(run.design.blocks.min);
    if done >= planned {
        format!("all {planned} trials")
    } else if stopped_by_rule && run.ended_at.is_some() {
        format!("{done} of at most {planned} trials, ended by the rule of its blocks")
    } else {
        format!(
            "{done} of {planned} trials: INCOMPLETE, `loadlab run {} --resume` completes it",
            run.spec.file
        )
    }
}

/// The servers that were really used.
pub(super) fn servers(records: &[TrialRecord]) -> BTreeSet<String> {
    let servers = records.iter().filter_map(|record| record.server.as_ref());
    servers
        .map(|server| {
            let backend = server.backend.word();
            let version = version(server.version_num);
            let unusual =
                server.cluster.as_ref().map(|c| c.block_size).filter(|size| *size != DEFAULT_BLOCK_SIZE);
            let blocks =
                unusual.map(|size| format!(", blocks of {}", block_size_words(size))).unwrap_or_default();
            format!("{}: PostgreSQL {version}{blocks}, {backend} ({})", server.environment, server.identity)
        })
        .collect()
}

/// `15.18` of 150018.
fn version(number: i32) -> String {
    format!("{}.{}", number / 10_000, number % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_people_write_them() {
        assert_eq!(version(150_018), "15.18");
        assert_eq!(version(180_004), "18.4");
    }
}
