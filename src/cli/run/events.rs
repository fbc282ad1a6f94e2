//! What happens during a run: stored first, shown then.

use crate::cli::failure::Failure;
use crate::model::{Outcome, TrialRecord};
use crate::report::{self, FinishedTrial, Progress, WorkingStep, duration};
use crate::run::Event;
use crate::store::RunFolder;

/// Stores an event before anything else happens, then shows it.
pub(super) fn store(
    folder: &mut RunFolder,
    progress: &mut Progress,
    event: &Event<'_>,
) -> Result<(), Failure> {
    match event {
        Event::Started { trial, attempt, label } => {
            folder.started(trial, *attempt)?;
            progress.trial_started(trial.number + 1, &shown(label, trial.control));
        }
        Event::Working(pulse) => progress.working(&WorkingStep {
            step: &pulse.step,
            seconds: pulse.elapsed.as_secs_f64(),
            warm_up: pulse.warm_up.as_secs_f64(),
            whole: pulse.whole.as_secs_f64(),
            rows: pulse.rows,
            rows_per_second: pulse.rows_per_second,
        }),
        Event::Output { name, text } => folder.keep(name, text)?,
        Event::Finished(record) => {
            if record.outcome == Outcome::Cancelled {
                // A trial that was given up is done again; its record would hide that.
                folder.cancelled(record.trial.number, record.attempt)?;
            } else {
                folder.finished(record)?;
            }
            // Why trials are not run was said once, at the beginning.
            if let Some(error) = record.error.as_ref().filter(|_| record.outcome != Outcome::NotRun) {
                progress.note(&format!("{}: {error}", record.treatment));
            }
            progress.trial_finished(&FinishedTrial {
                treatment: &shown(&record.treatment, record.trial.control),
                outcome: record.outcome,
                headline: &headline(record),
                seconds: record.seconds,
            });
        }
    }
    Ok(())
}

/// The label of a trial's treatment, and whether it is a control trial.
fn shown(label: &str, control: bool) -> String {
    if control { format!("{label} (control)") } else { label.to_owned() }
}

/// `insert 12,345 rows/s`: the last load or read of a trial.
fn headline(record: &TrialRecord) -> String {
    let moved = record.measurements.iter().rev().find(|step| matches!(step.kind.as_str(), "load" | "read"));
    let shown = moved.or(record.measurements.last());
    shown.map_or_else(String::new, |step| match (step.rows, step.spans.seconds) {
        (Some(rows), seconds) if seconds > 0.0 => format!("{} {}", step.step, report::rate(rows, seconds)),
        (_, seconds) => format!("{} {}", step.step, duration(seconds)),
    })
}
