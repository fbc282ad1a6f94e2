//! What stands above the tables: which run this is, how much of it is there, on which servers and machine.

use std::collections::BTreeMap;

use super::machine::machine;
use super::numbers::short_seconds;
use crate::compare::median;
use crate::model::{DEFAULT_BLOCK_SIZE, ServerFacts, TrialRecord, block_size_words};
use crate::store::RunManifest;

/// Stands first above whatever a smoke run gave.
pub(super) const SMOKE: &str = "SMOKE RUN: few rows, short durations, one block. It shows that everything works and proves nothing about speed.";

/// Steps that are shorter are not asked how busy the machine was: clock ticks are too coarse.
const SHORTEST_SECONDS: f64 = 0.1;
/// The kernel's own work for the server is about this much.
const WORTH_A_WORD: f64 = 0.15;

/// Experiment and question, run, trials done of those planned, and the servers that were really used.
#[must_use]
pub fn heading(run: &RunManifest, records: &[TrialRecord]) -> Vec<String> {
    let mut lines: Vec<String> = run.smoke.then(|| SMOKE.to_owned()).into_iter().collect();
    lines.push(format!("{}: {}", run.experiment, run.question.trim()));
    lines.push(format!("run {}: {}", run.run, progress(run, records)));
    lines.extend(servers(records));
    lines.extend(machine(&run.host));
    lines.extend(others(records));
    lines
}

fn progress(run: &RunManifest, records: &[TrialRecord]) -> String {
    let controls = if run.controls.as_ref().is_some_and(|controls| controls.treatment.is_some()) {
        u64::from(run.design.blocks.max)
    } else {
        0
    };
    let (done, all) = (records.len() as u64, run.trials_planned);
    let control = records.iter().filter(|record| record.trial.control).count() as u64;
    let (done, planned) = (done - control, all.saturating_sub(controls));
    if done >= planned && control >= controls {
        let controls = if controls > 0 { format!(" and {controls} control trials") } else { String::new() };
        format!("all {planned} trials{controls}")
    } else if run.ended_by_rule.is_some() {
        format!("{done} of at most {planned} trials, ended by the rule of its blocks")
    } else {
        format!("{done} of {planned} trials: INCOMPLETE, `{}` completes it", completing(run))
    }
}

/// The command that completes a run. A repetition has its experiment in its own folder.
#[must_use]
pub fn completing(run: &RunManifest) -> String {
    let (experiment, name, file) = (&run.experiment, &run.run, &run.spec.file);
    if run.rerun_of.is_some() && !run.inputs.is_empty() {
        let folder = format!("results/{experiment}/{name}");
        return format!("loadlab run {folder}/inputs/experiments/{file} --resume {folder}");
    }
    format!("loadlab run {file} --resume")
}

/// The servers that were really used, each with what a sync costs on it.
pub(super) fn servers(records: &[TrialRecord]) -> Vec<String> {
    let mut syncs: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for server in
        records.iter().filter(|record| !record.trial.control).filter_map(|record| record.server.as_ref())
    {
        syncs.entry(words(server)).or_default().extend(server.sync_seconds);
    }
    let lines = syncs.into_iter().map(|(server, seconds)| match median(&seconds) {
        Some(seconds) => format!("{server}, a sync takes {}", short_seconds(seconds)),
        None => server,
    });
    lines.collect()
}

/// What other programs kept busy while steps ran, where it is worth a word.
fn others(records: &[TrialRecord]) -> Option<String> {
    let steps = records.iter().flat_map(|record| &record.measurements);
    let judged = steps.filter(|step| step.spans.seconds >= SHORTEST_SECONDS);
    let cpus = median(&judged.filter_map(|step| step.pressure.other_cpus).collect::<Vec<_>>())?;
    (cpus >= WORTH_A_WORD)
        .then(|| format!("other programs kept {cpus:.1} CPUs busy meanwhile (median of steps)"))
}

fn words(server: &ServerFacts) -> String {
    let backend = server.backend.word();
    let version = version(server.version_num);
    let unusual = server.cluster.as_ref().map(|c| c.block_size).filter(|size| *size != DEFAULT_BLOCK_SIZE);
    let blocks = unusual.map(|size| format!(", blocks of {}", block_size_words(size))).unwrap_or_default();
    format!("{}: PostgreSQL {version}{blocks}, {backend} ({})", server.environment, server.identity)
}

/// `15.18` of 150018.
fn version(number: i32) -> String {
    format!("{}.{}", number / 10_000, number % 10_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_is_told_in_two_digits() {
        assert_eq!(short_seconds(0.000_004_2), "4 us");
        assert_eq!(short_seconds(0.000_312), "0.31 ms");
        assert_eq!(short_seconds(0.0123), "12 ms");
    }

    #[test]
    fn versions_are_read_as_people_write_them() {
        assert_eq!(version(150_018), "15.18");
        assert_eq!(version(180_004), "18.4");
    }
}
