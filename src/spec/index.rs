//! `experiments/README.md`, made from the experiment files: what is asked, and what each claim needs.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::diagnostic::Diagnostics;
use super::experiment::Spec;
use super::load::{LoadOptions, load};
use crate::model::{Claim, Metric, RawValues, Reading, Statement};
use crate::plan::{Plan, estimate};

/// What stands above the tables.
const INTRODUCTION: &str = "# Experiments

Generated from the files of this folder by `just schema`; do not edit. Begin with [quickstart](quickstart.yaml). Each file says what is
expected and why, where its published numbers come from, and what differs from their source.

- `just run experiments/NAME.yaml --profile quick` tries one, in less than three minutes on two cores; its numbers are no verdict.
- `just run experiments/NAME.yaml --smoke` only shows that it runs, in seconds.
- `just run experiments/NAME.yaml` runs it whole; `just plan experiments/NAME.yaml` says first how long that takes.
";

/// The text of `experiments/README.md` for a folder of experiment files; a test compares it with the file.
///
/// # Errors
/// Everything that is wrong with the first file that is wrong.
pub fn experiments_index(folder: &Path, environments: &Path) -> Result<String, Diagnostics> {
    let mut files: Vec<_> =
        folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|kind| kind == "yaml"));
    files.sort();
    let read = |path: &Path, profile: Option<&str>| {
        let environments = Some(environments.to_owned());
        load(
            path,
            &LoadOptions { profile: profile.map(str::to_owned), environments, ..LoadOptions::default() },
        )
    };
    let specs = files.iter().map(|path| read(path, None)).collect::<Result<Vec<_>, _>>()?;
    let mut text = INTRODUCTION.to_owned();
    text += "\n## What is asked\n\nQuick times are the estimate of `plan`, rough on purpose.\n\n";
    text += "| experiment | question | sources | factors (levels) | treatments | quick | needs |\n";
    text += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for (spec, path) in specs.iter().zip(&files) {
        let quick = quick(&read(path, Some("quick"))?)?;
        let plan = Plan::new(&spec.design).map_or(0, |plan| plan.treatments());
        let (sources, factors, needs) = (sources(spec), factors(spec), needs(&spec.resolved["needs"]));
        let question = cell(&spec.question);
        let _ = writeln!(
            text,
            "| [{0}]({0}.yaml) | {question} | {sources} | {factors} | {plan} | {quick} | {needs} |",
            spec.name
        );
    }
    claims(&specs, &mut text);
    not_comparable(&specs, &mut text);
    Ok(text)
}

/// Claims that a run judges or shows, with what must hold for that.
fn claims(specs: &[Spec], text: &mut String) {
    *text += "\n## What each claim needs\n\nA verdict needs six blocks as well. Where a reading is given, the source is encoded twice: as it stands there, and with its\n";
    *text += "known mistakes taken out. What else differs is under `confounds` in the files.\n\n";
    *text += "| experiment | claim | what is said | reading | number | published | needs |\n";
    *text += "| --- | --- | --- | --- | --- | --- | --- |\n";
    for (spec, claim) in each_claim(specs) {
        if let (Some(published), Some(metric)) = (published(claim), &claim.metric) {
            let reading = match claim.reading {
                Reading::AsCorrected => "as corrected",
                Reading::AsPublished => "as published",
            };
            let (said, metric) = (said(claim), metric_name(metric));
            let needs = list(claim.needs.iter().map(|(name, value)| requirement(name, &value.to_string())));
            let _ = writeln!(
                text,
                "| {} | {} | {said} | {reading} | `{metric}` | {published} | {needs} |",
                spec.name, claim.id
            );
        }
    }
}

/// Claims that cannot be tested, and why.
fn not_comparable(specs: &[Spec], text: &mut String) {
    *text += "\n## What cannot be compared here, and why\n\n";
    *text += "| experiment | claim | what is said | published | why not |\n| --- | --- | --- | --- | --- |\n";
    for (spec, claim) in each_claim(specs) {
        if let Statement::NotComparable(reason) = &claim.statement {
            let (said, values) = (said(claim), claim.raw.as_ref().map_or_else(String::new, raw));
            let (name, id, reason) = (&spec.name, &claim.id, cell(reason));
            let _ = writeln!(text, "| {name} | {id} | {said} | {values} | {reason} |");
        }
    }
}

fn each_claim(specs: &[Spec]) -> impl Iterator<Item = (&Spec, &Claim)> {
    specs.iter().flat_map(|spec| spec.claims.iter().map(move |claim| (spec, claim)))
}

/// Trials and rough time of a file with its quick profile.
fn quick(spec: &Spec) -> Result<String, Diagnostics> {
    let Ok(plan) = Plan::new(&spec.design) else { return Ok(String::new()) };
    let mut seconds = 0.0;
    for index in 0..plan.treatments() {
        seconds += estimate(&spec.bind(&plan.treatment(index))?).seconds * f64::from(spec.design.blocks.min);
    }
    let time = if seconds < 90.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) };
    Ok(format!("{} trials, {time}", plan.treatments() * u64::from(spec.design.blocks.min)))
}

fn sources(spec: &Spec) -> String {
    let sources = spec.resolved["sources"].as_object().into_iter().flatten();
    let names = sources.map(|(_, source)| {
        let word = |key: &str| source[key].as_str();
        let name = word("author").or_else(|| word("title")).unwrap_or_default();
        cell(&word("date").map_or_else(|| name.to_owned(), |date| format!("{name} {date}")))
    });
    names.collect::<Vec<_>>().join("; ")
}

fn factors(spec: &Spec) -> String {
    list(spec.design.factors.iter().map(|factor| format!("{} ({})", factor.name, factor.levels.len())))
}

/// `needs` of a file. What a template gives differs between treatments.
fn needs(written: &Value) -> String {
    list(written.as_object().into_iter().flatten().map(|(name, value)| {
        let values = value.as_array().map_or_else(|| vec![value], |values| values.iter().collect());
        let plain = |value: &&Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let text = values.iter().map(plain).collect::<Vec<_>>().join(" ");
        if text.contains("{{") { format!("{name} (by treatment)") } else { requirement(name, &text) }
    }))
}

/// `rows >= 100_000`, `backend container`.
fn requirement(name: &str, value: &str) -> String {
    cell(&format!("{name} {value}"))
}

fn published(claim: &Claim) -> Option<String> {
    let number = || claim.published.map(|number| number.to_string()).unwrap_or_default();
    match &claim.statement {
        Statement::Ratio(_) => Some(format!("{} times", number())),
        Statement::NoDifference { margin, .. } => Some(format!("no difference within {} %", margin * 100.0)),
        Statement::Order(groups) => Some(format!("order of {}", groups.len())),
        Statement::Absolute(_) => {
            let unit = claim.raw.as_ref().map_or("", |raw| raw.unit.symbol());
            Some(format!("{} {unit}; shown, not judged", number()))
        }
        Statement::NotComparable(_) => None,
    }
}

fn metric_name(metric: &Metric) -> String {
    format!("{}.{}", metric.steps.join("+"), metric.name)
}

fn said(claim: &Claim) -> String {
    cell(claim.quote.as_deref().unwrap_or_default())
}

fn raw(values: &RawValues) -> String {
    let numbers = |of: &[f64]| of.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
    let against =
        if values.to.is_empty() { String::new() } else { format!(" against {}", numbers(&values.to)) };
    format!("{}{against} {}", numbers(&values.of), values.unit.symbol())
}

fn list(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// Text fit for a table.
fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_the_experiments_is_the_generated_one() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = experiments_index(&root.join("experiments"), &root.join("environments"));
        let text = text.unwrap_or_else(|found| panic!("{found}"));
        let path = root.join("experiments/README.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &text).expect("the document can be written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(found == text, "experiments/README.md is old: run `just schema`");
    }

    #[test]
    fn needs_that_differ_between_treatments_say_so() {
        let written =
            serde_json::json!({"tools": ["pg_dump", "psql"], "cores": ">= 4", "version": "{{ v }}"});
        assert_eq!(needs(&written), "tools pg_dump psql, cores >= 4, version (by treatment)");
    }
}
