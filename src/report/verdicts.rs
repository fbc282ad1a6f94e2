//! What a person sees of the claims of two runs: both verdicts side by side.

use super::claims::{name, numbers, verdict};
use super::layout::{Section, none};
use super::terminal::{draw, wrap};
use crate::compare::Judgement;

/// Claims of two runs, matched by their ids, in the order of the first; a claim that one side lacks is `None` there.
#[must_use]
pub fn verdict_pairs<'a>(
    first: &'a [Judgement],
    second: &'a [Judgement],
) -> Vec<(Option<&'a Judgement>, Option<&'a Judgement>)> {
    let same = |a: &Judgement, b: &Judgement| a.claim == b.claim && a.reading == b.reading;
    let of_first = first.iter().map(|a| (Some(a), second.iter().find(|b| same(a, b))));
    let new = second.iter().filter(|b| !first.iter().any(|a| same(a, b))).map(|b| (None, Some(b)));
    of_first.chain(new).collect()
}

/// Both verdicts of each claim as text, no line longer than `width` (80 at least) unless a single word is.
#[must_use]
pub fn verdicts_table(first: &[Judgement], second: &[Judgement], width: u16) -> String {
    let width = width.max(80);
    let pairs = verdict_pairs(first, second);
    let changed = pairs.iter().filter(|(a, b)| shown(*a)[2] != shown(*b)[2]).count();
    let header = ["claim", "first", "interval", "verdict", "again", "interval", "verdict"];
    let row = |(a, b): &(Option<&Judgement>, Option<&Judgement>)| {
        let claim = a.or(*b).map(name).unwrap_or_default();
        [vec![claim], shown(*a).to_vec(), shown(*b).to_vec()].concat()
    };
    let section = Section {
        title: "Claims, by the first run and by its repetition".to_owned(),
        header: header.map(str::to_owned).to_vec(),
        rows: pairs.iter().map(row).collect(),
        words: vec![true, false, false, true, false, false, true],
    };
    let note = match changed {
        0 => "No verdict has changed.".to_owned(),
        1 => "1 verdict has changed.".to_owned(),
        many => format!("{many} verdicts have changed."),
    };
    format!("{}\n\n{}\n", draw(&section, width), wrap(&note, usize::from(width)))
}

/// Ratio, interval, verdict of the first comparison of a claim.
fn shown(judgement: Option<&Judgement>) -> [String; 3] {
    let Some(judgement) = judgement else { return [none(), none(), none()] };
    let [ratio, interval, _] =
        judgement.comparisons.first().map_or_else(|| [none(), none(), none()], numbers);
    [ratio, interval, verdict(judgement)]
}
