//! What a person sees of two sides that are compared.

use super::layout::{Section, none, reading};
use super::numbers::{number, percent, seconds, times};
use super::terminal::{draw, wrap};
use crate::compare::{Line, MIN_BLOCKS, Metric};

/// Lines of a comparison as text, no line longer than `width` (80 at least) unless a single word is.
#[must_use]
pub fn versus_table(lines: &[Line], between_runs: bool, width: u16) -> String {
    let width = width.max(80);
    let header = ["step", "first", "second", "times as fast", "interval", "finds", "blocks", "reading"];
    let section = Section {
        title: "The second against the first".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: lines.iter().map(row).collect(),
        words: vec![true, false, false, false, false, false, false, true],
    };
    let notes = notes(lines, between_runs).into_iter().map(|note| wrap(&note, usize::from(width)));
    format!("{}\n\n{}\n", draw(&section, width), notes.collect::<Vec<_>>().join("\n"))
}

fn row(line: &Line) -> Vec<String> {
    let value = |median: Option<f64>| match (median, line.metric) {
        (None, _) => none(),
        (Some(value), Metric::RowsPerSecond) => format!("{}/s", number(value)),
        (Some(value), Metric::Seconds) => seconds(value),
        (Some(value), Metric::CapturedRate | Metric::CapturedTime) => number(value),
    };
    let interval =
        line.together.map_or_else(none, |(low, high)| format!("{} to {}", times(low), times(high)));
    let (first, second) = line.blocks;
    vec![
        line.treatment.as_ref().map_or_else(|| line.step.clone(), |treatment| format!("- {treatment}")),
        value(line.medians.0),
        value(line.medians.1),
        times(line.ratio),
        interval,
        line.detectable.map_or_else(none, percent),
        if first == second { first.to_string() } else { format!("{first}, {second}") },
        match (line.identical, line.client_bound) {
            (true, _) => "IDENTICAL".to_owned(),
            (_, true) => format!("{}, CLIENT-BOUND", reading(line.reading)),
            _ => reading(line.reading).to_owned(),
        },
    ]
}

fn notes(lines: &[Line], between_runs: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if lines.iter().any(|line| line.identical) {
        notes.push(
            "IDENTICAL: both sides have the same times to the last digit, which two measurements never have: one is a copy of the other."
                .to_owned(),
        );
    }
    if lines.iter().any(|line| line.client_bound) {
        notes.push(
            "CLIENT-BOUND: loadlab itself was the narrow place on a side, and did the same work on both: such a line says what the client can do \
             and nothing about servers and their settings."
                .to_owned(),
        );
    }
    let at_once = match lines.len() {
        0 | 1 => String::new(),
        many => format!(" for all {many} lines at once"),
    };
    notes.push(format!(
        "Above 1 the second is faster. Intervals hold with 95 %{at_once}; finds: the smallest difference that so many blocks show four \
         times in five. No verdict under {MIN_BLOCKS} blocks a side."
    ));
    if between_runs {
        notes.push(
            "The runs were made at different times: what changed on the machine between them is no part of any interval. For a \
             difference that must be trusted, make what differs a factor of one run."
                .to_owned(),
        );
    }
    notes
}
