//! How a run begins: its manifest, and what is left to do of one that was begun before.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::RunArguments;
use crate::cli::failure::Failure;
use crate::cli::say;
use crate::cli::servers::Servers;
use crate::model::PlannedTrial;
use crate::plan::Plan;
use crate::spec::Spec;
use crate::store::{HostFacts, OptionsUsed, RunFolder, RunManifest, SCHEMA_VERSION, SpecRecord, ToolVersion};

/// Trials that are not done, with the number of their next attempt. Those that a kill cut short are marked.
pub(super) fn todo(plan: &Plan, folder: &mut RunFolder) -> Result<Vec<(PlannedTrial, u32)>, Failure> {
    let journal = folder.journal()?;
    for (trial, attempt) in journal.lost() {
        folder.lost(trial, attempt)?;
        say(&format!("note: trial {} was cut short by a kill; it is done again", trial + 1));
    }
    for complaint in journal.complaints() {
        say(&format!("note: {complaint}"));
    }
    let done: BTreeSet<u64> = journal.done();
    let left = plan.iter().filter(|trial| !done.contains(&trial.number));
    Ok(left
        .map(|trial| {
            let attempt = journal.next_attempt(trial.number);
            (trial, attempt)
        })
        .collect())
}

pub(super) fn manifest(
    arguments: &RunArguments,
    spec: &Spec,
    plan: &Plan,
    servers: &Servers,
    run: String,
) -> RunManifest {
    RunManifest {
        schema_version: SCHEMA_VERSION,
        experiment: spec.name.clone(),
        run,
        question: spec.question.clone(),
        smoke: spec.smoke,
        spec: SpecRecord {
            file: spec.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            text: spec.source_text.clone(),
            resolved: spec.resolved.clone(),
            hash: spec.hash.clone(),
            options: OptionsUsed { beside_others: arguments.beside_others, ..arguments.spec.used() },
        },
        tool: ToolVersion::current(),
        seed: spec.design.seed,
        order_digest: plan.order_digest(),
        trials_planned: plan.trials(),
        design: spec.design.clone(),
        claims: spec.claims.clone(),
        environments: servers.chosen.clone(),
        host: HostFacts::read(&arguments.results),
        started_at: Timestamp::now(),
        ended_at: None,
    }
}
