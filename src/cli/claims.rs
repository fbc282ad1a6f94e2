//! `loadlab claims [RUN]`: published statements, judged by a run.

use std::path::PathBuf;

use clap::Args;

use super::failure::{Exit, Failure};
use super::report::{controlled, find};
use super::{options, print, say};
use crate::compare::{ControlSummary, Facts, Judgement, Verdict, doubt, judge};
use crate::model::{Claim, TrialRecord};
use crate::report;
use crate::store::{RunManifest, read_run};

/// Arguments of `claims`.
#[derive(Debug, Args)]
pub(super) struct ClaimsArguments {
    /// Folder of a run, or the name of an experiment for its newest run [default: the newest run]
    run: Option<PathBuf>,
    /// Folder of results
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    results: PathBuf,
    /// `table`, `markdown` or `json`
    #[arg(long, default_value = "table", value_parser = ["table", "markdown", "json"])]
    format: String,
    /// End with exit code 4 when a claim is `contradicted`
    #[arg(long, value_name = "VERDICT", value_parser = ["contradicted"])]
    fail_if: Option<String>,
}

pub(super) fn claims(arguments: &ClaimsArguments) -> Result<Exit, Failure> {
    let path = find(arguments.run.as_deref(), &arguments.results)?;
    let run = read_run(&path)?;
    for complaint in run.journal.complaints() {
        say(&format!("note: {complaint}"));
    }
    if run.manifest.claims.is_empty() {
        return Err(Failure::wrong(format!(
            "error: {} has no claims: its experiment had none when it was run; write `claims:` in {} and run it again",
            path.display(),
            run.manifest.spec.file
        )));
    }
    let records = run.journal.records();
    let controls = controlled(&run.manifest, &records);
    let judgements = judged(&run.manifest, &records, controls.as_ref());
    let heading = report::heading(&run.manifest, &records);
    print(&match arguments.format.as_str() {
        "markdown" => {
            let heading: Vec<String> = heading.iter().map(|line| format!("- {line}")).collect();
            format!("{}\n{}", heading.join("\n"), report::claims_markdown(&judgements))
        }
        "json" => format!("{:#}\n", serde_json::json!({"heading": heading, "claims": judgements})),
        _ => format!("{}\n\n{}", heading.join("\n"), report::claims_table(&judgements, options::width())),
    });
    let contradicted = judgements.iter().any(|judgement| judgement.verdict == Some(Verdict::Contradicted));
    Ok(if contradicted && arguments.fail_if.is_some() { Exit::Found } else { Exit::Done })
}

/// The claims of a run, judged in the light of its controls.
pub(super) fn judged(
    manifest: &RunManifest,
    records: &[TrialRecord],
    controls: Option<&ControlSummary>,
) -> Vec<Judgement> {
    judged_of(&manifest.claims, manifest, records, controls)
}

/// The same for claims that are not those of the run's own file.
pub(super) fn judged_of(
    claims: &[Claim],
    manifest: &RunManifest,
    records: &[TrialRecord],
    controls: Option<&ControlSummary>,
) -> Vec<Judgement> {
    let mut judgements = judge(claims, records, &manifest.design, &facts(manifest));
    if let Some(controls) = controls {
        doubt(claims, &mut judgements, controls);
    }
    judgements
}

/// What judging needs to know about a run.
pub(super) fn facts(manifest: &RunManifest) -> Facts {
    Facts { smoke: manifest.smoke, cores: manifest.host.cores, memory_bytes: manifest.host.memory_bytes }
}
