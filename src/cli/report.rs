//! `loadlab report [RUN]`: the results of a run.

use std::path::{Component, Path, PathBuf};

use clap::Args;

use super::claims::judged;
use super::failure::{Exit, Failure};
use super::{options, print};
use crate::compare::{ControlSummary, Judgement, Summary, controls, summarise};
use crate::model::TrialRecord;
use crate::report;
use crate::store::{RunManifest, newest_run, read_run, rewrite};

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(super) struct ReportArguments {
    /// Folder of a run, or the name of an experiment for its newest run [default: the newest run]
    run: Option<PathBuf>,
    /// Folder of results
    #[arg(long, default_value = "results")]
    results: PathBuf,
    /// `table`, `markdown` or `json`
    #[arg(long, default_value = "table", value_parser = ["table", "markdown", "json"])]
    format: String,
    /// Write the Parquet files again from the journal, as after a kill
    #[arg(long)]
    rewrite: bool,
}

pub(super) fn report(arguments: &ReportArguments) -> Result<Exit, Failure> {
    let path = find(arguments.run.as_deref(), &arguments.results)?;
    if arguments.rewrite {
        rewrite(&path)?;
    }
    let run = read_run(&path)?;
    for complaint in run.journal.complaints() {
        super::say(&format!("note: {complaint}"));
    }
    let records = run.journal.records();
    let summary = summary(&run.manifest, &records);
    let heading = report::heading(&run.manifest, &records);
    let controls = controlled(&run.manifest, &records);
    let judgements = judged(&run.manifest, &records, controls.as_ref());
    print(&match arguments.format.as_str() {
        "markdown" => {
            report::markdown(&summary, &run.manifest)
                + &report::controls_markdown(controls.as_ref())
                + &report::claims_markdown(&judgements)
        }
        "json" => {
            let smoke = run.manifest.smoke;
            let summary = report::json(&summary);
            let json = serde_json::json!({
                "smoke": smoke, "heading": heading, "summary": summary, "controls": controls, "claims": judgements,
            });
            format!("{json:#}\n")
        }
        _ => format!("{}\n\n{}", heading.join("\n"), tables(&summary, controls.as_ref(), &judgements)),
    });
    Ok(Exit::Done)
}

/// The tables of a run: treatments, effects, controls, claims.
pub(super) fn tables(
    summary: &Summary,
    controls: Option<&ControlSummary>,
    judgements: &[Judgement],
) -> String {
    let width = options::width();
    let tables = [
        report::table(summary, width),
        report::controls_table(controls, width),
        report::claims_table(judgements, width),
    ];
    tables.into_iter().filter(|table| !table.is_empty()).collect::<Vec<_>>().join("\n")
}

/// What the controls of a run say; `None` for a run without.
pub(super) fn controlled(manifest: &RunManifest, records: &[TrialRecord]) -> Option<ControlSummary> {
    let of_run = manifest.controls.as_ref()?;
    Some(controls(of_run, records, &manifest.design, manifest.host.cores))
}

/// The summary of a run; of a smoke run without any comparison.
pub(super) fn summary(manifest: &RunManifest, records: &[TrialRecord]) -> Summary {
    let summary = summarise(records, &manifest.design);
    if manifest.smoke { summary.unjudged() } else { summary }
}

/// A run of any experiment by its name.
fn run_called(name: &Path, results: &Path) -> Option<PathBuf> {
    let mut parts = name.components();
    let (Some(Component::Normal(_)), None) = (parts.next(), parts.next()) else { return None };
    let experiments = results.read_dir().into_iter().flatten().flatten();
    let mut runs = experiments.map(|experiment| experiment.path().join(name));
    runs.find(|path| path.join("run.json").is_file())
}

/// A run by its folder, by its name, by the name of its experiment, or the newest of all.
pub(super) fn find(run: Option<&Path>, results: &Path) -> Result<PathBuf, Failure> {
    if let Some(path) = run.filter(|path| path.join("run.json").is_file()) {
        return Ok(path.to_owned());
    }
    if let Some(path) = run.and_then(|name| run_called(name, results)) {
        return Ok(path);
    }
    // The folder of an experiment means its newest run.
    let folder = run.filter(|path| path.is_dir()).and_then(|path| path.file_name().zip(path.parent()));
    let (name, results) = match folder {
        Some((name, parent)) => (Some(name.to_string_lossy().into_owned()), parent),
        None => (run.map(|path| path.to_string_lossy().into_owned()), results),
    };
    if name.as_deref().is_some_and(|name| name.contains('/')) {
        let path = name.unwrap_or_default();
        return Err(Failure::wrong(format!(
            "error: {path} is no folder of a run or an experiment's results"
        )));
    }
    newest_run(results, name.as_deref())?.ok_or_else(|| {
        let what = name.map_or_else(|| "a run".to_owned(), |name| format!("a run of {name}"));
        Failure::wrong(format!(
            "error: {what} is not in {}: name a run's folder, or run an experiment first",
            results.display()
        ))
    })
}
