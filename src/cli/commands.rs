//! Client programs of an experiment: listed by `plan`, and run only when allowed.

use super::failure::Failure;
use crate::model::{BoundTrial, StepKind};
use crate::plan::Plan;
use crate::spec::Spec;

/// Treatments that are looked at for the list; each trial is looked at again before it runs.
const LISTED: u64 = 4_096;

/// `step: program arguments` of each different command of a trial.
pub(super) fn of_trial(bound: &BoundTrial) -> Vec<String> {
    let steps = bound.steps.iter().filter_map(|step| match &step.kind {
        StepKind::Command(command) => Some(format!("{}: {}", step.name, as_line(&command.run))),
        _ => None,
    });
    steps.collect()
}

/// The same of a whole plan, without repeats.
pub(super) fn of_plan(spec: &Spec, plan: &Plan) -> Result<Vec<String>, Failure> {
    let mut all: Vec<String> = Vec::new();
    for index in 0..plan.treatments().min(LISTED) {
        for command in of_trial(&spec.bind(&plan.treatment(index))?) {
            if !all.contains(&command) {
                all.push(command);
            }
        }
    }
    Ok(all)
}

/// Refuses commands that were not allowed, and says which they are.
pub(super) fn refuse_unless(allowed: bool, commands: &[String]) -> Result<(), Failure> {
    if allowed || commands.is_empty() {
        return Ok(());
    }
    let list = commands.join("\n  ");
    Err(Failure::wrong(format!(
        "error: this experiment runs programs on this machine, which needs --allow-commands; read them first:\n  {list}"
    )))
}

/// A command as one would type it: words with other than harmless characters in quotes.
fn as_line(run: &[String]) -> String {
    let harmless = |c: char| c.is_alphanumeric() || "-_./:=,+@%".contains(c);
    let word = |word: &String| {
        if !word.is_empty() && word.chars().all(harmless) {
            return word.clone();
        }
        // Control characters would hide what is run.
        let shown: String =
            word.chars().map(|c| if c.is_control() && c != '\n' { '\u{fffd}' } else { c }).collect();
        format!("'{}'", shown.replace('\'', "'\\''").replace('\n', "\\n"))
    };
    run.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_is_typed() {
        let run = ["sh", "-c", "echo 'a b'\nrm -rf x", "", "\u{1b}[2J"].map(str::to_owned);
        assert_eq!(as_line(&run), "sh -c 'echo '\\''a b'\\''\\nrm -rf x' '' '\u{fffd}[2J'");
    }

    #[test]
    fn nothing_runs_that_was_not_allowed() {
        assert!(refuse_unless(false, &[]).is_ok());
        assert!(refuse_unless(true, &["a: b".to_owned()]).is_ok());
        assert!(refuse_unless(false, &["a: b".to_owned()]).is_err());
    }
}
