//! What a person sees of controls: the same treatment against itself, and trials against the ceiling of their client.

use std::fmt::Write;

use super::layout::{Section, none, reading};
use super::markdown::{draw as draw_markdown, escape};
use super::numbers::{bytes, number, percent};
use super::terminal::{draw, wrap};
use crate::compare::{CeilingUse, ControlSummary, Nearest, NoiseFloor};

/// Controls as text, no line longer than `width` (80 at least) unless a single word is; empty without controls.
#[must_use]
pub fn controls_table(controls: Option<&ControlSummary>, width: u16) -> String {
    let Some(controls) = controls else { return String::new() };
    let width = width.max(80);
    let tables = sections(controls).into_iter().map(|section| draw(&section, width));
    let notes = notes(controls).into_iter().map(|note| wrap(&note, usize::from(width)));
    let notes = notes.collect::<Vec<_>>().join("\n");
    let parts: Vec<String> = tables.chain([notes]).filter(|part| !part.is_empty()).collect();
    if parts.is_empty() { String::new() } else { parts.join("\n\n") + "\n" }
}

/// Controls as Markdown; empty without controls.
#[must_use]
pub fn controls_markdown(controls: Option<&ControlSummary>) -> String {
    let mut text = String::new();
    let Some(controls) = controls else { return text };
    for section in sections(controls) {
        draw_markdown(&mut text, &section);
    }
    text.push('\n');
    for note in notes(controls) {
        let _ = writeln!(text, "- {}", escape(&note));
    }
    text
}

fn sections(controls: &ControlSummary) -> Vec<Section> {
    let floor = noise_floor(controls);
    let ceilings = ceilings(&nearest_of_each(&controls.ceilings));
    [floor, ceilings].into_iter().filter(|section| !section.rows.is_empty()).collect()
}

fn noise_floor(controls: &ControlSummary) -> Section {
    let row = |floor: &NoiseFloor| {
        vec![
            floor.step.clone(),
            signed(floor.ratio),
            floor.interval.map_or_else(none, interval),
            floor.blocks.to_string(),
            if floor.found_one() { "DIFFERS FROM ITSELF" } else { reading(floor.reading) }.to_owned(),
        ]
    };
    let header = ["step", "control faster by", "95 % interval", "blocks", "reading"];
    let treatment = controls.treatment.as_deref().unwrap_or_default();
    Section {
        title: format!("Control: the same treatment against itself ({treatment})"),
        header: header.map(str::to_owned).to_vec(),
        rows: controls.noise_floor.iter().map(row).collect(),
        words: vec![true, false, false, false, true],
    }
}

fn interval((low, high): (f64, f64)) -> String {
    format!("{} to {}", signed(low), signed(high))
}

/// `+1.2 %` of 1.012: finer than ratios are shown elsewhere, because little is expected.
fn signed(ratio: f64) -> String {
    let sign = if ratio < 1.0 { "-" } else { "+" };
    format!("{sign}{}", percent((ratio - 1.0).abs()))
}

/// Of each step and method the ceiling that a trial came nearest to: the others are in `ceilings.parquet`.
fn nearest_of_each(ceilings: &[CeilingUse]) -> Vec<&CeilingUse> {
    let share = |ceiling: &CeilingUse| ceiling.nearest.as_ref().map_or(0.0, |nearest| nearest.share);
    let mut shown: Vec<&CeilingUse> = Vec::new();
    for ceiling in ceilings {
        let known =
            shown.iter_mut().find(|known| (&known.step, &known.method) == (&ceiling.step, &ceiling.method));
        match known {
            Some(known) if share(known) < share(ceiling) => *known = ceiling,
            Some(_) => {}
            None => shown.push(ceiling),
        }
    }
    shown
}

fn ceilings(shown: &[&CeilingUse]) -> Section {
    let row = |ceiling: &&CeilingUse| {
        let nearest = ceiling.nearest.as_ref();
        let of = |value: fn(&Nearest) -> String| nearest.map_or_else(none, value);
        vec![
            ceiling.step.clone(),
            ceiling.method.clone(),
            number(ceiling.rows_per_second),
            format!("{}/s", bytes(ceiling.bytes_per_second)),
            of(|nearest| number(nearest.rows_per_second)),
            of(|nearest| nearest.clients.to_string()),
            of(|nearest| percent(nearest.share)),
        ]
    };
    let header = ["step", "method", "ceiling, rows/s", "ceiling", "nearest trial", "clients", "share"];
    Section {
        title: "Control: the client without a server, its ceiling".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: shown.iter().map(row).collect(),
        words: vec![true, true, false, false, false, false, false],
    }
}

fn notes(controls: &ControlSummary) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(floor_words(controls));
    notes.extend(found_words(controls));
    if !controls.not_valid.is_empty() {
        let reasons = controls.not_valid.iter().map(|(reason, count)| format!("{count} {reason}"));
        let reasons = reasons.collect::<Vec<_>>().join(", ");
        notes.push(format!("Steps of control trials that are not valid: {reasons}."));
    }
    if !controls.ceilings.is_empty() {
        notes.push(
            "The client's ceiling is what generator and encoder do on one thread when nobody takes the rows, driver and sockets not \
             counted. Several clients count as so many times that, but at most once for each CPU."
                .to_owned(),
        );
    }
    notes.extend(nearest_of_each(&controls.ceilings).into_iter().filter_map(near_words));
    if controls.ceilings_left_out > 0 {
        notes.push(format!(
            "{} further kinds of load have no ceiling here: there are too many to measure.",
            controls.ceilings_left_out
        ));
    }
    notes
}

/// The machine's noise floor: the step that differs most.
fn floor_words(controls: &ControlSummary) -> Option<String> {
    controls.treatment.as_ref()?;
    let worst = controls.noise_floor.iter().max_by(|a, b| a.differs_by().total_cmp(&b.differs_by()));
    let Some(worst) = worst else {
        return Some(
            "The machine's noise floor is not known: it needs two blocks in which both trials of the treatment are valid.".to_owned(),
        );
    };
    let most = if controls.noise_floor.len() > 1 { "at most " } else { "" };
    let interval =
        worst.interval.map_or_else(String::new, |bounds| format!(" (interval {})", interval(bounds)));
    Some(format!(
        "The machine's noise floor: the same treatment against itself differs by {most}{} in {}{interval}. Differences \
         between treatments that lie in there cannot be told from noise.",
        percent(worst.differs_by()),
        worst.step
    ))
}

/// Differences that were found where there are none.
fn found_words(controls: &ControlSummary) -> Option<String> {
    let found: Vec<&str> = controls
        .noise_floor
        .iter()
        .filter(|floor| floor.found_one())
        .map(|floor| floor.step.as_str())
        .collect();
    if found.is_empty() {
        return None;
    }
    let compared = controls.noise_floor.len();
    let comparisons =
        if compared == 1 { "one comparison".to_owned() } else { format!("{compared} comparisons") };
    Some(format!(
        "THIS RUN FOUND A DIFFERENCE WHERE THERE IS NONE, in {}, by {comparisons} of the same treatment with itself. One interval in \
         twenty does that by chance. If the next run does it again, something on this machine favours trials by their place or time, \
         and its verdicts cannot be trusted.",
        found.join(", ")
    ))
}

fn near_words(ceiling: &CeilingUse) -> Option<String> {
    let nearest = ceiling.nearest.as_ref().filter(|_| ceiling.is_near())?;
    let clients =
        if nearest.clients == 1 { "client".to_owned() } else { format!("{} clients", nearest.clients) };
    Some(format!(
        "{} by {}: {} came to {} of what its {clients} can do without a server. That number is the client's, at least in part: it may \
         compare ways of the client and says little about the server.",
        ceiling.step,
        ceiling.method,
        nearest.treatment,
        percent(nearest.share)
    ))
}
