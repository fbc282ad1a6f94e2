//! How a run begins: its manifest, and what is left to do of one that was begun before.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::RunArguments;
use crate::cli::failure::Failure;
use crate::cli::inputs::Inputs;
use crate::cli::ready::Ready;
use crate::cli::say;
use crate::cli::servers::Servers;
use crate::model::{Controls, PlannedTrial};
use crate::plan::Plan;
use crate::report;
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

/// The plan with its control trials, and the controls measured so far: the client without a server.
///
/// # Errors
/// When measuring does not end.
pub(super) async fn controls(plan: Plan, ready: &mut Ready) -> Result<(Plan, Controls), Failure> {
    let loads = std::mem::take(&mut ready.loads);
    let left_out = loads.left_out();
    if loads.measured() > 0 {
        let time = report::duration(loads.seconds());
        say(&format!("controls: the client alone, without a server, by {}: {time}", loads.words()));
    }
    // It keeps its thread busy for longer than a task may.
    let ceilings = tokio::task::spawn_blocking(move || loads.measure()).await.map_err(|error| {
        Failure::environment(format!("error: the client alone could not be measured: {error}"))
    })?;
    let treatment = ready.first;
    let plan = match treatment {
        Some(index) => plan.with_control(index),
        None => plan,
    };
    Ok((plan, Controls { treatment, ceilings, left_out }))
}

/// What was found out before the first trial.
pub(super) struct Measured {
    pub(super) controls: Option<Controls>,
    pub(super) host: HostFacts,
}

pub(super) fn manifest(
    arguments: &RunArguments,
    spec: &Spec,
    plan: &Plan,
    (servers, inputs): (&Servers, &Inputs),
    run: String,
    measured: Measured,
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
            options: OptionsUsed {
                beside_others: arguments.beside_others,
                controls: arguments.controls.asked(),
                ..arguments.spec.used()
            },
        },
        inputs: inputs.records(),
        rerun_of: arguments.repeat.of.clone(),
        tool: ToolVersion::current(),
        seed: spec.design.seed,
        order_digest: plan.order_digest(),
        trials_planned: plan.trials(),
        controls: measured.controls,
        design: spec.design.clone(),
        claims: spec.claims.clone(),
        environments: servers.chosen.clone(),
        host: measured.host,
        started_at: Timestamp::now(),
        ended_by_rule: None,
        ended_at: None,
    }
}
