//! What a person sees of claims: one table, and below it what each verdict rests on.

use std::fmt::Write;

use super::layout::{Section, none};
use super::markdown::{draw as draw_markdown, escape};
use super::notes::capitalised;
use super::numbers::{number, percent, times};
use super::terminal::{draw, wrap};
use crate::compare::{Comparison, Judgement, Kind, MIN_BLOCKS, Verdict};
use crate::model::Reading;

/// Judged claims as text, no line longer than `width` (80 at least) unless a single word is; empty without claims.
#[must_use]
pub fn claims_table(judgements: &[Judgement], width: u16) -> String {
    if judgements.is_empty() {
        return String::new();
    }
    let width = width.max(80);
    let notes = notes(judgements).into_iter().map(|note| wrap(&note, usize::from(width)));
    format!("{}\n\n{}\n", draw(&section(judgements), width), notes.collect::<Vec<_>>().join("\n"))
}

/// Judged claims as Markdown; empty without claims.
#[must_use]
pub fn claims_markdown(judgements: &[Judgement]) -> String {
    let mut text = String::new();
    if judgements.is_empty() {
        return text;
    }
    draw_markdown(&mut text, &section(judgements));
    text.push('\n');
    for note in notes(judgements) {
        let _ = writeln!(text, "- {}", escape(&note));
    }
    text
}

/// How many claims got which verdict: `3 reproduced, 1 inconclusive`.
#[must_use]
pub fn verdict_counts(judgements: &[Judgement]) -> String {
    let count = |verdict| judgements.iter().filter(|judgement| judgement.verdict == verdict).count();
    let verdicts = Verdict::ALL.map(|verdict| (count(Some(verdict)), verdict.words()));
    let counts = verdicts.into_iter().chain([(count(None), "not judged")]);
    let counts = counts.filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
    counts.collect::<Vec<_>>().join(", ")
}

fn section(judgements: &[Judgement]) -> Section {
    let header = ["claim", "says", "here", "interval", "blocks", "verdict"];
    let mut rows = Vec::new();
    for judgement in judgements {
        let (first, rest) = lines(judgement);
        let [here, interval, blocks] = first;
        rows.push(vec![name(judgement), says(judgement), here, interval, blocks, verdict(judgement)]);
        for (pair, [here, interval, blocks]) in rest {
            rows.push(vec![pair, String::new(), here, interval, blocks, String::new()]);
        }
    }
    Section {
        title: format!("Claims: {}", verdict_counts(judgements)),
        header: header.map(str::to_owned).to_vec(),
        rows,
        words: vec![true, false, false, false, false, true],
    }
}

/// Ratio, interval and blocks of a claim, and of each comparison where it makes several.
pub(super) fn lines(judgement: &Judgement) -> ([String; 3], Vec<(String, [String; 3])>) {
    let several = judgement.comparisons.len() > 1;
    let only = judgement.comparisons.first().filter(|_| !several);
    let first = only.map_or_else(|| [ours(judgement), none(), none()], numbers);
    let rest = judgement.comparisons.iter().filter(|_| several);
    (first, rest.map(|comparison| (format!("- {}", pair(comparison)), numbers(comparison))).collect())
}

pub(super) fn name(judgement: &Judgement) -> String {
    match judgement.reading {
        // Many ids say it themselves.
        Reading::AsCorrected if !judgement.claim.contains("corrected") => {
            format!("{} (corrected)", judgement.claim)
        }
        _ => judgement.claim.clone(),
    }
}

pub(super) fn verdict(judgement: &Judgement) -> String {
    judgement.verdict.map_or("not judged", Verdict::words).to_owned()
}

pub(super) fn says(judgement: &Judgement) -> String {
    let published = judgement.published;
    match judgement.kind {
        Kind::Ratio => {
            let share = judgement
                .tolerance
                .as_ref()
                .map_or_else(String::new, |t| format!(" +- {}", percent(t.share)));
            published.map_or_else(none, |ratio| times(ratio) + &share)
        }
        Kind::NoDifference => "no difference".to_owned(),
        Kind::Order => "in this order".to_owned(),
        Kind::Absolute => {
            let unit = judgement.raw.as_ref().map_or("", |raw| raw.unit.symbol());
            published.map_or_else(none, |value| format!("{} {unit}", number(value)))
        }
        Kind::NotComparable => published.map_or_else(|| raw(judgement), number),
    }
}

/// The values that the source prints, for what cannot be compared.
fn raw(judgement: &Judgement) -> String {
    judgement.raw.as_ref().filter(|raw| !raw.of.is_empty()).map_or_else(none, |raw| {
        let numbers = |of: &[f64]| of.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", ");
        let to = if raw.to.is_empty() { String::new() } else { format!(" against {}", numbers(&raw.to)) };
        format!("{}{to} {}", numbers(&raw.of), raw.unit.symbol()).trim_end().to_owned()
    })
}

fn ours(judgement: &Judgement) -> String {
    judgement.ours.map_or_else(none, |value| {
        let name = judgement.metric.rsplit('.').next().unwrap_or_default();
        format!("{} {}", number(value), name.replace("_per_second", "/s").replace('_', " "))
    })
}

/// Ratio, interval and number of blocks.
pub(super) fn numbers(comparison: &Comparison) -> [String; 3] {
    comparison.ratio.map_or_else(
        || [none(), none(), "0".to_owned()],
        |ratio| {
            let interval =
                ratio.together.map_or_else(none, |(low, high)| format!("{} to {}", times(low), times(high)));
            [times(ratio.ratio), interval, ratio.blocks.to_string()]
        },
    )
}

fn pair(comparison: &Comparison) -> String {
    let shared =
        if comparison.shared.is_empty() { String::new() } else { format!(" where {}", comparison.shared) };
    format!("{} / {}{shared}", comparison.of, comparison.to)
}

/// A note for each claim, and what holds for all.
fn notes(judgements: &[Judgement]) -> Vec<String> {
    let mut notes: Vec<String> = judgements.iter().map(note).collect();
    let family = judgements.iter().map(|judgement| judgement.family).max().unwrap_or_default();
    if judgements.iter().any(|judgement| !judgement.comparisons.is_empty()) {
        let at_once = match family {
            0 | 1 => String::new(),
            many => format!(" for all {many} comparisons of times and rates of these claims at once"),
        };
        notes.push(format!(
            "Here: value of the first group over that of the second, geometric mean over blocks. Intervals hold with 95 %{at_once}. No \
             verdict under {MIN_BLOCKS} blocks. Only ratios travel between machines; absolute values do not."
        ));
    }
    notes
}

pub(super) fn note(judgement: &Judgement) -> String {
    let mut parts = vec![format!("{}: {}", name(judgement), verdict(judgement)), judgement.reason.clone()];
    parts.extend(about(judgement));
    let judged = judgement.verdict.is_some_and(|verdict| verdict != Verdict::NotComparable);
    parts.extend(judged.then(|| arithmetic(judgement)).into_iter().flatten());
    let missing = judgement.comparisons.iter().map(|comparison| comparison.pairs_missing).sum::<usize>();
    if missing > 0 || !judgement.left_out.is_empty() {
        let reasons = judgement.left_out.iter().map(|(reason, count)| format!("{count} {reason}"));
        let reasons = reasons.collect::<Vec<_>>().join(", ");
        parts.push(format!("{missing} pairs are missing, trials left out: {reasons}"));
    }
    parts.extend(judgement.blocks_needed.map(|blocks| format!("about {blocks} blocks would decide it")));
    parts.extend(judgement.confounds.as_ref().map(|confounds| format!("mind: {}", confounds.trim())));
    let date = judgement.source.date.as_ref().map_or_else(String::new, |date| format!(" ({date})"));
    parts.push(format!("source: {}{date}", judgement.source.title));
    let sentences = parts.iter().enumerate().map(|(index, part)| {
        let part = part.trim_end_matches('.');
        // Ids are written as they are.
        format!("{}.", if index == 0 { part.to_owned() } else { capitalised(part) })
    });
    sentences.collect::<Vec<_>>().join(" ")
}

/// What is compared, and from when to when.
fn about(judgement: &Judgement) -> Option<String> {
    if judgement.comparisons.is_empty() && judgement.kind != Kind::Absolute {
        return None;
    }
    let only = judgement.comparisons.first().filter(|_| judgement.comparisons.len() == 1);
    let pairs = only.map_or_else(String::new, |comparison| format!(" of {}", pair(comparison)));
    Some(format!("it is about {}{pairs}, {}", judgement.metric, judgement.end_point))
}

/// Tolerance, needs, and what the blocks can find.
fn arithmetic(judgement: &Judgement) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(judgement.tolerance.as_ref().map(|tolerance| {
        let (low, high) = tolerance.range;
        format!("tolerated are {} to {}: {}", times(low), times(high), tolerance.from)
    }));
    let found = judgement.comparisons.first().and_then(|comparison| comparison.ratio.as_ref());
    parts.extend(found.and_then(|found| {
        // A counter that is the same in every block finds anything.
        let share = found.detectable.filter(|share| *share > 0.000_5)?;
        Some(format!("{} blocks find a difference of {} four times in five", found.blocks, percent(share)))
    }));
    let met = judgement.preconditions.iter().map(|need| format!("{} (found {})", need.need, need.found));
    let met = met.collect::<Vec<_>>().join(", ");
    parts.extend((!met.is_empty()).then(|| format!("it needs {met}")));
    parts
}
