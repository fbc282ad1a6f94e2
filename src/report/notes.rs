//! The small print: what the numbers are, and what they must not be taken for.

use super::numbers::{percent, seconds};
use crate::compare::{MIN_BLOCKS, Metric, StepSummary, Summary, TrialErrors};
use crate::store::redact;

/// Kinds of errors told below a table.
const ERRORS_SHOWN: usize = 3;
/// Stalls told below a table.
const STALLS_SHOWN: usize = 3;

/// Sentences below the tables.
pub(super) fn notes(summary: &Summary, steps: &[&StepSummary], left_out: &[&str]) -> Vec<String> {
    let mut notes = vec![counts(summary)];
    notes.extend(kinds(&summary.left_out));
    notes.extend(kinds(&summary.errors));
    if steps.is_empty() {
        notes.push("No step was measured.".to_owned());
        return notes;
    }
    notes
        .push("Numbers are medians over valid trials, n of them; spread is (max - min) / median.".to_owned());
    notes.extend(end_points(steps));
    if steps.iter().any(|step| !step.contrasts.is_empty()) {
        notes.push(
            "Times as fast: geometric mean of ratios between trials of one block that differ only in that factor; above 1 is \
             faster. A line's interval holds 95 % by Student's t and by the signed-rank test over blocks; lines are not corrected for each \
             other."
                .to_owned(),
        );
        notes.extend(verdict(summary, steps));
        notes.extend(interactions(steps));
        notes.extend(client_bound(steps));
    }
    notes.extend(missing_pairs(steps));
    notes.extend(invalid(steps));
    notes.extend(stalls(steps));
    notes.extend(not_durable(steps));
    if !left_out.is_empty() {
        notes.push(format!("Not shown, but in measurements.parquet: {}.", left_out.join(", ")));
    }
    notes
}

fn counts(summary: &Summary) -> String {
    if summary.trials == 0 {
        return "No trial has ended yet.".to_owned();
    }
    let not_ok =
        summary.not_ok.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect::<Vec<_>>();
    let good = match summary.not_run {
        0 => "all ok",
        not_run if not_run == summary.trials => "so nothing was measured",
        _ => "the others ok",
    };
    let not_ok = if not_ok.is_empty() { good.to_owned() } else { format!("not ok: {}", not_ok.join(", ")) };
    let left_out =
        if summary.not_run > 0 { format!("{} not run here, ", summary.not_run) } else { String::new() };
    format!("{} in {}; {left_out}{not_ok}.", plural(summary.trials, "trial"), plural(summary.blocks, "block"))
}

/// The commonest kinds of errors in words.
fn kinds(errors: &[TrialErrors]) -> Vec<String> {
    let mut kinds: Vec<_> = errors.iter().collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.trials));
    let shown = kinds.iter().take(ERRORS_SHOWN).map(|kind| {
        let trials = plural(kind.trials, "trial");
        format!("{trials}, such as {}: {}", kind.treatment, redact(&kind.error))
    });
    let mut notes: Vec<String> = shown.collect();
    if kinds.len() > ERRORS_SHOWN {
        notes.push(format!(
            "{} more reasons: see trial_error in measurements.parquet.",
            kinds.len() - ERRORS_SHOWN
        ));
    }
    notes
}

fn end_points(steps: &[&StepSummary]) -> Option<String> {
    let has = |kind: &str| steps.iter().any(|step| step.kind == kind);
    let mut points = Vec::new();
    if has("load") {
        points.push("a load's clock stops when the server acknowledged the last COMMIT");
    }
    if steps.iter().any(|step| step.cells.iter().any(|cell| cell.durable_seconds.is_some())) {
        points.push("to durable adds the CHECKPOINT after it");
    }
    if has("read") {
        points.push("a read's clock stops at its last row");
    }
    if steps.iter().any(|step| !step.captures.is_empty()) {
        points.push("a program's numbers are its own, as it printed them");
    }
    if steps.iter().any(|step| step.metric == Metric::Seconds && step.kind == "command") {
        points.push("a program's time runs from its start to its end, connecting included");
    }
    if steps.iter().any(|step| step.metric == Metric::Seconds && step.kind != "command") {
        points.push("times are those of all statements of the step");
    }
    let (first, rest) = points.split_first()?;
    let text = std::iter::once(capitalised(first)).chain(rest.iter().map(|point| (*point).to_owned()));
    Some(format!("{}.", text.collect::<Vec<_>>().join("; ")))
}

fn verdict(summary: &Summary, steps: &[&StepSummary]) -> Option<String> {
    let contrasts = steps.iter().flat_map(|step| &step.contrasts).flat_map(|contrast| &contrast.levels);
    let within =
        contrasts.clone().filter_map(|contrast| contrast.within.as_ref()).flat_map(|within| &within.levels);
    let fewest =
        contrasts.chain(within.map(|(_, contrast)| contrast)).map(|contrast| contrast.blocks).min()?;
    let missing = MIN_BLOCKS.saturating_sub(fewest);
    let usable = if fewest < summary.blocks { "usable " } else { "" };
    (missing > 0).then(|| {
        format!(
            "Exploratory: no verdict under {MIN_BLOCKS} blocks; {} missing for all lines ({fewest} {usable}of {MIN_BLOCKS}).",
            if missing == 1 { "1 is".to_owned() } else { format!("{missing} are") }
        )
    })
}

fn interactions(steps: &[&StepSummary]) -> Option<String> {
    let contrasts = steps.iter().flat_map(|step| &step.contrasts);
    let mut factors: Vec<String> = contrasts
        .flat_map(|contrast| {
            let within = contrast.levels.iter().filter_map(|level| level.within.as_ref());
            within.map(|within| format!("{} by {}", contrast.factor, within.factor))
        })
        .collect();
    factors.sort_unstable();
    factors.dedup();
    (!factors.is_empty()).then(|| {
        format!("Effects differ by more than 10 % within another factor ({}): read the lines that begin with a dash, not the average.", factors.join(", "))
    })
}

/// Effects that are the client's.
fn client_bound(steps: &[&StepSummary]) -> Option<String> {
    let lines = |step: &&StepSummary| {
        let name = step.step.clone();
        let of_factor = step.contrasts.iter().flat_map(|contrast| {
            let bound = contrast.levels.iter().filter(|level| level.client_bound);
            bound.map(|level| format!("{}={}", contrast.factor, level.level)).collect::<Vec<_>>()
        });
        let levels = of_factor.collect::<Vec<_>>().join(", ");
        (!levels.is_empty()).then(|| format!("{name} by {levels}"))
    };
    let lines: Vec<String> = steps.iter().filter_map(lines).collect();
    (!lines.is_empty()).then(|| {
        format!(
            "CLIENT-BOUND: {}. Here loadlab itself was the narrow place on a side, and did the same work on both: these lines say what the \
             client can do and nothing about the server.",
            lines.join("; ")
        )
    })
}

fn missing_pairs(steps: &[&StepSummary]) -> Option<String> {
    let contrasts = steps.iter().flat_map(|step| &step.contrasts).flat_map(|contrast| &contrast.levels);
    let (pairs, missing) = contrasts.fold((0, 0), |(pairs, missing), contrast| {
        (pairs + contrast.pairs, missing + contrast.pairs_missing)
    });
    (missing > 0)
        .then(|| format!("{missing} of {} pairs are missing because one side is not valid.", pairs + missing))
}

fn invalid(steps: &[&StepSummary]) -> Option<String> {
    let cells = steps.iter().flat_map(|step| &step.cells);
    let any = cells.filter(|cell| cell.invalid > 0).count();
    (any > 0).then(|| {
        "Trials that failed or tripped a guard are counted with their reasons and never averaged.".to_owned()
    })
}

/// The stalls that are worth a word, the longest first.
fn stalls(steps: &[&StepSummary]) -> Option<String> {
    let of_step = |step: &&StepSummary| {
        let name = step.step.clone();
        let stalled = step.cells.iter().filter_map(|cell| Some((cell.treatment.clone(), cell.stall?)));
        stalled.map(|(treatment, stall)| (name.clone(), treatment, stall)).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = steps.iter().flat_map(of_step).collect();
    all.sort_by(|a, b| b.2.longest_gap.total_cmp(&a.2.longest_gap));
    let words = all.iter().take(STALLS_SHOWN).map(|(step, treatment, stall)| {
        let gap = seconds(stall.longest_gap);
        let share = stall.stalled_share.filter(|share| *share > 0.0);
        let share =
            share.map_or_else(String::new, |share| format!(", {} of the time stalled", percent(share)));
        let what = if treatment.is_empty() { step.clone() } else { format!("{step} {treatment}") };
        format!("{what}: nothing acknowledged for up to {gap}{share}")
    });
    let words = words.collect::<Vec<_>>().join("; ");
    let more = if all.len() > STALLS_SHOWN {
        format!("; {} more in longest_gap_seconds of measurements.parquet", all.len() - STALLS_SHOWN)
    } else {
        String::new()
    };
    (!all.is_empty()).then(|| format!("STALLS: {words}{more}. Stalled is under a tenth of the median rate."))
}

fn not_durable(steps: &[&StepSummary]) -> Option<String> {
    let cells = steps.iter().flat_map(|step| &step.cells);
    let mut treatments: Vec<&str> =
        cells.filter(|c| c.durable == Some(false)).map(|c| c.treatment.as_str()).collect();
    treatments.sort_unstable();
    treatments.dedup();
    let named = match treatments.as_slice() {
        [] => return None,
        few if few.len() <= 3 => few.join("; "),
        many => format!("{} treatments, among them {}", many.len(), many[0]),
    };
    Some(format!(
        "NOT DURABLE (fsync, full_page_writes or synchronous_commit off, or storage in memory): {named}."
    ))
}

fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

pub(super) fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
