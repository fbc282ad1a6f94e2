//! What stands behind `docs/CLAIMS.md`: the claims of all experiment files, each judged by the newest kept run of its experiment.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::claims::judged_of;
use super::failure::Failure;
use super::report::controlled;
use crate::compare::{Facts, Judgement, judge, rebound};
use crate::model::{Claim, Design, Statement, TrialRecord};
use crate::report::{Reference, Standing, Tested, TestedClaim, claims_document};
use crate::spec::{LoadOptions, Spec, load};
use crate::store::{StoredRun, kept_runs, read_run};

/// Parts of an experiment file that change nothing of what is measured.
const WORDS: [&str; 6] = ["experiment", "question", "expectation", "sources", "claims", "profiles"];

/// The text of `docs/CLAIMS.md` for a project with the folders `experiments`, `environments` and `results`; a test compares it with the file.
///
/// Only kept runs are looked at: what else lies in somebody's `results` changes nothing.
///
/// # Errors
/// Everything that is wrong with the first file that is wrong, or why a kept run cannot be read.
pub fn claims_of_kept_runs(root: &Path) -> Result<String, Failure> {
    let folder = root.join("experiments");
    let mut files: Vec<_> =
        folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|kind| kind == "yaml"));
    files.sort();
    let options = LoadOptions { environments: Some(root.join("environments")), ..LoadOptions::default() };
    let mut all = Vec::new();
    for file in &files {
        let spec = load(file, &options)?;
        if !spec.claims.is_empty() {
            all.push(tested(&spec, &options, &root.join("results"))?);
        }
    }
    Ok(claims_document(&all))
}

fn tested(spec: &Spec, options: &LoadOptions, results: &Path) -> Result<Tested, Failure> {
    let newest = kept_runs(results, &spec.name)?.pop();
    let Some(run) = newest.map(|path| read_run(&path)).transpose()? else {
        let claims = spec.claims.iter().map(|claim| untested(claim, spec, Standing::NoRun)).collect();
        return Ok(Tested { experiment: spec.name.clone(), claims, run: None });
    };
    let records = run.journal.records();
    let found: Vec<Result<Claim, String>> =
        spec.claims.iter().map(|claim| placed(claim, spec, &run, &records)).collect();
    let known: Vec<Claim> = found.iter().flatten().cloned().collect();
    let controls = controlled(&run.manifest, &records);
    let mut judgements = judged_of(&known, &run.manifest, &records, controls.as_ref()).into_iter();
    let claims = spec.claims.iter().zip(&found).filter_map(|(claim, found)| match found {
        Ok(_) => Some(TestedClaim {
            source_id: claim.source_id.clone(),
            judgement: judgements.next()?,
            standing: Standing::Judged,
        }),
        Err(reason) => Some(untested(claim, spec, Standing::NotInRun(reason.clone()))),
    });
    let notes = std::fs::read_to_string(run.path.join("NOTES.md")).ok();
    Ok(Tested {
        experiment: spec.name.clone(),
        claims: claims.collect(),
        run: Some(Reference::new(&run, controls.as_ref(), changed(spec, options, &run), notes)),
    })
}

/// A claim of today in the design of a run, if the run has its treatments and steps.
fn placed(claim: &Claim, spec: &Spec, run: &StoredRun, records: &[TrialRecord]) -> Result<Claim, String> {
    let steps = claim.metric.iter().flat_map(|metric| &metric.steps);
    let known =
        |step: &String| records.iter().flat_map(|record| &record.measurements).any(|m| m.step == *step);
    if let Some(step) = steps.into_iter().find(|step| !known(step)) {
        return Err(format!("the run has no step {step}"));
    }
    rebound(claim, &spec.design, &run.manifest.design)
}

/// What was published, without anything of our own; what can never be compared is judged all the same.
fn untested(claim: &Claim, spec: &Spec, standing: Standing) -> TestedClaim {
    let mut judgement = alone(claim, &spec.design);
    let never = matches!(claim.statement, Statement::NotComparable(_));
    if !never {
        judgement.verdict = None;
        judgement.comparisons.clear();
    }
    let standing = if never { Standing::Judged } else { standing };
    TestedClaim { source_id: claim.source_id.clone(), judgement, standing }
}

fn alone(claim: &Claim, design: &Design) -> Judgement {
    judge(std::slice::from_ref(claim), &[], design, &Facts::default()).remove(0)
}

/// Parts of the file, as the run's options shape it, that are others today than in the run.
fn changed(spec: &Spec, options: &LoadOptions, run: &StoredRun) -> Vec<String> {
    let used = &run.manifest.spec.options;
    let options = LoadOptions {
        profile: used.profile.clone(),
        set: used.set.clone(),
        only: used.only.clone(),
        ..options.clone()
    };
    let Ok(today) = load(&spec.file, &options) else {
        return vec!["what the options of the run name".to_owned()];
    };
    let parts = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let (now, then) = (parts(&today.resolved), parts(&run.manifest.spec.resolved));
    let mut names: Vec<&String> = now.keys().chain(then.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let differs = |name: &&String| !WORDS.contains(&name.as_str()) && now.get(*name) != then.get(*name);
    let mut changed: Vec<String> =
        names.into_iter().filter(differs).map(|name| format!("`{name}`")).collect();
    changed.extend(changed_files(&today, run));
    changed
}

/// Files that the experiment names and that are others today. The experiment file itself is held part by part: words for readers
/// change nothing.
fn changed_files(today: &Spec, run: &StoredRun) -> Vec<String> {
    let Ok(files) = today.inputs() else { return vec!["a file that it names".to_owned()] };
    let own = format!("experiments/{}", run.manifest.spec.file);
    let now: BTreeMap<String, String> = files
        .iter()
        .filter_map(|file| Some((file.place.clone()?, file.digest().ok()?.1)))
        .filter(|(name, _)| *name != own)
        .collect();
    let then = run.manifest.inputs.iter().filter(|input| input.name != own);
    then.filter(|input| now.get(&input.name).is_some_and(|digest| *digest != input.sha256))
        .map(|input| format!("`{}`", input.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_of_claims_is_the_generated_one() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = claims_of_kept_runs(root).unwrap_or_else(|failure| panic!("{failure:?}"));
        let path = root.join("docs/CLAIMS.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &text).expect("the document can be written");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "docs/CLAIMS.md is old: run `just schema`; runs that are kept in results/ belong into git"
        );
    }
}
