//! What is said about a summary, before it is drawn.

use super::notes::notes;
use super::numbers::{bytes, number, percent, seconds, times};
use crate::compare::{CaptureName, Cell, Contrast, Metric, Reading, StepSummary, Summary, answers};

/// Tables and notes, in order.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) sections: Vec<Section>,
    pub(super) notes: Vec<String>,
}

/// A titled table.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) header: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
    /// Columns of words on the left; the others are numbers, set to the right.
    pub(super) words: Vec<bool>,
}

/// Lays a summary out. `all` includes `create` and `dump` steps, which seldom answer the question.
pub(super) fn layout(summary: &Summary, all: bool) -> Layout {
    let mut steps: Vec<&StepSummary> =
        summary.steps.iter().filter(|step| all || answers(&step.kind)).collect();
    if steps.is_empty() {
        steps = summary.steps.iter().collect();
    }
    let mut sections = Vec::new();
    for step in &steps {
        sections.push(treatments(summary, step));
        if !step.contrasts.is_empty() {
            sections.push(contrasts(step));
        }
    }
    let left_out = summary.steps.iter().filter(|step| !steps.iter().any(|shown| shown.step == step.step));
    let left_out = left_out.map(|step| step.step.as_str()).collect::<Vec<_>>();
    Layout { sections, notes: notes(summary, &steps, &left_out) }
}

fn value(metric: Metric, value: f64) -> String {
    match metric {
        Metric::RowsPerSecond | Metric::CapturedRate | Metric::CapturedTime => number(value),
        Metric::Seconds => seconds(value),
    }
}

fn treatments(summary: &Summary, step: &StepSummary) -> Section {
    let wal = step.cells.iter().any(|cell| cell.wal_bytes.is_some());
    let durable = step.cells.iter().any(|cell| cell.durable_seconds.is_some());
    let invalid = step.cells.iter().any(|cell| cell.invalid > 0);
    // A captured headline stands among the captures' own columns.
    let first = usize::from(matches!(step.metric, Metric::CapturedRate | Metric::CapturedTime));
    let measure = match (step.metric, step.captures.first()) {
        (Metric::RowsPerSecond, _) => "rows/s".to_owned(),
        (Metric::CapturedRate | Metric::CapturedTime, Some(capture)) => capture_head(capture),
        _ => "time".to_owned(),
    };
    let others: Vec<String> = step.captures.iter().skip(first).map(capture_head).collect();
    let mut header: Vec<&str> = summary.factors.iter().map(String::as_str).collect();
    if header.is_empty() {
        header.push("treatment");
    }
    let mut words = vec![true; header.len()];
    header.extend([&measure, "spread", "n"]);
    header.extend(others.iter().map(String::as_str));
    header.extend(wal.then_some("WAL"));
    header.extend(durable.then_some("to durable"));
    words.resize(header.len(), false);
    if invalid {
        header.push("not valid");
        words.push(true);
    }
    let rows = step.cells.iter().map(|cell| {
        let mut row = if cell.levels.is_empty() { vec![cell.treatment.clone()] } else { cell.levels.clone() };
        row.push(cell.median.map_or_else(none, |median| value(step.metric, median)));
        row.push(cell.spread.map_or_else(none, percent));
        row.push(cell.valid.to_string());
        row.extend(cell.captures.iter().skip(first).map(|value| value.map_or_else(none, number)));
        row.extend(wal.then(|| cell.wal_bytes.map_or_else(none, bytes)));
        row.extend(durable.then(|| cell.durable_seconds.map_or_else(none, seconds)));
        row.extend(invalid.then(|| reasons(cell)));
        row
    });
    Section {
        title: title(step),
        rows: rows.collect(),
        header: header.into_iter().map(str::to_owned).collect(),
        words,
    }
}

/// `tps (1/s)`
fn capture_head(capture: &CaptureName) -> String {
    format!("{} ({})", capture.name, capture.unit.symbol())
}

fn title(step: &StepSummary) -> String {
    let how = if step.methods.is_empty() { step.kind.clone() } else { step.methods.join(", ") };
    if how == step.step { how } else { format!("{} ({how})", step.step) }
}

fn reasons(cell: &Cell) -> String {
    let reasons = cell.not_valid.iter().map(|(reason, count)| format!("{count} {reason}"));
    reasons.collect::<Vec<_>>().join(", ")
}

fn contrasts(step: &StepSummary) -> Section {
    let mut rows = Vec::new();
    for contrast in &step.contrasts {
        for level in &contrast.levels {
            let what = format!("{} / {}", level.level, contrast.reference);
            rows.push(contrast_row(&contrast.factor, what, level));
            if let Some(within) = &level.within {
                let levels = within.levels.iter();
                rows.extend(
                    levels
                        .map(|(name, level)| contrast_row("", format!("- {}={name}", within.factor), level)),
                );
            }
        }
    }
    let header = ["factor", "level / first", "times as fast", "95 % interval", "blocks", "reading"];
    Section {
        title: format!("{}: effect of each factor", title(step)),
        header: header.map(str::to_owned).to_vec(),
        rows,
        words: vec![true, true, false, false, false, true],
    }
}

fn contrast_row(factor: &str, what: String, contrast: &Contrast) -> Vec<String> {
    let interval =
        contrast.interval.map_or_else(none, |(low, high)| format!("{} to {}", times(low), times(high)));
    vec![
        factor.to_owned(),
        what,
        times(contrast.ratio),
        interval,
        contrast.blocks.to_string(),
        reading(contrast.reading).to_owned(),
    ]
}

pub(super) fn reading(reading: Reading) -> &'static str {
    match reading {
        Reading::Exploratory => "exploratory",
        Reading::Faster => "faster",
        Reading::Slower => "slower",
        Reading::Unclear => "no difference shown",
    }
}

pub(super) fn none() -> String {
    "-".to_owned()
}
