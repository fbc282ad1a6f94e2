//! The declared rule that ends a run before its last block: `blocks: {min, max, until, budget}`.

use super::claims::{Facts, Verdict, judge};
use super::summary::summarise;
use crate::model::{Blocks, Claim, Design, TrialRecord};

/// The intervals that a run is made for, each with its ratio; an interval that is not known yet is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct InQuestion {
    /// Whether they are those of claims; else those of all effects.
    pub of_claims: bool,
    /// Ratio and interval.
    pub intervals: Vec<(f64, Option<(f64, f64)>)>,
}

/// What is in question: where the experiment has claims that this run can judge, their comparisons, with the intervals that
/// verdicts rest on; else every effect of every factor.
#[must_use]
pub fn in_question(records: &[TrialRecord], design: &Design, claims: &[Claim], facts: &Facts) -> InQuestion {
    let judgements = judge(claims, records, design, facts);
    let mut of_claims = Vec::new();
    for judgement in &judgements {
        let ratios = judgement.comparisons.iter().map(|comparison| comparison.ratio);
        if judgement.verdict != Some(Verdict::NotComparable) {
            of_claims.extend(ratios.flatten().map(|ratio| (ratio.ratio, ratio.together)));
        } else if !judgement.left_out.is_empty() && ratios.clone().any(|ratio| ratio.is_none()) {
            // Its trials are there and not one pair of them is valid: further blocks may bring one.
            of_claims.push((1.0, None));
        }
    }
    if !of_claims.is_empty() {
        return InQuestion { of_claims: true, intervals: of_claims };
    }
    let summary = summarise(records, design);
    let effects = summary.steps.iter().flat_map(|step| &step.contrasts).flat_map(|factor| &factor.levels);
    InQuestion {
        of_claims: false,
        intervals: effects.map(|effect| (effect.ratio, effect.interval)).collect(),
    }
}

/// Why no further block is needed, in words; `None` while the run goes on.
///
/// The rule is looked at after whole blocks only, never before `min` of them, and it is part of the record: the design
/// holds it, the journal says when it ended a run. `seconds`: time used by all trials so far.
///
/// Stopping when an interval is narrow makes it a little too narrow on average; `min` of six blocks or more keeps that
/// small (docs/METHODOLOGY.md).
#[must_use]
pub fn enough(blocks: &Blocks, finished: u32, question: &InQuestion, seconds: f64) -> Option<String> {
    if finished < blocks.min || finished >= blocks.max {
        return None;
    }
    if let Some(budget) = blocks.budget.filter(|budget| seconds >= budget.as_secs_f64()) {
        return Some(format!("the budget of {budget:?} is used after {finished} blocks"));
    }
    let until = blocks.until?;
    let widest = widest(question)?;
    (widest <= 1.0 + until).then(|| {
        let percent = until * 100.0;
        let whose = if question.of_claims { "of the claims" } else { "of an effect" };
        format!("after {finished} blocks every 95 % interval {whose} lies within {percent:.1} % of its ratio")
    })
}

/// The largest factor between a ratio and an end of its interval; `None` when one has no interval yet.
fn widest(question: &InQuestion) -> Option<f64> {
    let mut widest: Option<f64> = None;
    for (ratio, interval) in &question.intervals {
        let (low, high) = (*interval)?;
        let this = (ratio / low).max(high / ratio);
        widest = Some(widest.map_or(this, |widest| widest.max(this)));
    }
    widest
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn effect(interval: Option<(f64, f64)>) -> InQuestion {
        InQuestion { of_claims: false, intervals: vec![(2.0, interval)] }
    }

    fn rule(until: Option<f64>, budget: Option<u64>) -> Blocks {
        Blocks { min: 6, max: 20, until, budget: budget.map(Duration::from_secs) }
    }

    #[test]
    fn tight_intervals_end_a_run_but_not_before_the_fewest_blocks() {
        let (tight, wide) = (effect(Some((1.96, 2.04))), effect(Some((1.5, 2.6))));
        let rule = rule(Some(0.03), None);
        assert!(enough(&rule, 6, &tight, 0.0).is_some());
        assert_eq!(enough(&rule, 5, &tight, 0.0), None);
        assert_eq!(enough(&rule, 6, &wide, 0.0), None);
        assert_eq!(enough(&rule, 6, &effect(None), 0.0), None);
    }

    #[test]
    fn a_used_budget_ends_a_run_whatever_the_intervals() {
        let wide = effect(Some((1.5, 2.6)));
        assert!(enough(&rule(Some(0.03), Some(60)), 7, &wide, 61.0).is_some());
        assert_eq!(enough(&rule(None, Some(60)), 7, &wide, 59.0), None);
        assert_eq!(enough(&rule(None, None), 7, &wide, 1e9), None);
    }
}
