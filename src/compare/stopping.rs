//! The declared rule that ends a run before its last block: `blocks: {min, max, until, budget}`.

use super::summary::Summary;
use crate::model::Blocks;

/// Why no further block is needed, in words; `None` while the run goes on.
///
/// The rule is looked at after whole blocks only, never before `min` of them, and it is part of the record: the design
/// holds it, the journal says when it ended a run. `seconds`: time used by all trials so far.
///
/// Stopping when an interval is narrow makes it a little too narrow on average; `min` of six blocks or more keeps that
/// small (docs/METHODOLOGY.md).
#[must_use]
pub fn enough(blocks: &Blocks, finished: u32, summary: &Summary, seconds: f64) -> Option<String> {
    if finished < blocks.min || finished >= blocks.max {
        return None;
    }
    if let Some(budget) = blocks.budget.filter(|budget| seconds >= budget.as_secs_f64()) {
        return Some(format!("the budget of {budget:?} is used after {finished} blocks"));
    }
    let until = blocks.until?;
    let widest = widest(summary)?;
    (widest <= 1.0 + until).then(|| {
        let percent = until * 100.0;
        format!("after {finished} blocks every 95 % interval lies within {percent:.1} % of its ratio")
    })
}

/// The largest factor between a ratio and an end of its interval; `None` when one has no interval yet.
fn widest(summary: &Summary) -> Option<f64> {
    let contrasts = summary.steps.iter().flat_map(|step| &step.contrasts).flat_map(|factor| &factor.levels);
    let mut widest: Option<f64> = None;
    for contrast in contrasts {
        let (low, high) = contrast.interval?;
        let this = (contrast.ratio / low).max(high / contrast.ratio);
        widest = Some(widest.map_or(this, |widest| widest.max(this)));
    }
    widest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::summary::{Metric, StepSummary};
    use crate::compare::{Contrast, FactorContrast, Reading};
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn summary(interval: Option<(f64, f64)>) -> Summary {
        let contrast = Contrast {
            level: "b".to_owned(),
            ratio: 2.0,
            interval,
            blocks: 6,
            pairs: 6,
            pairs_missing: 0,
            reading: Reading::Faster,
            within: None,
        };
        let factor =
            FactorContrast { factor: "f".to_owned(), reference: "a".to_owned(), levels: vec![contrast] };
        let step = StepSummary {
            step: "load".to_owned(),
            kind: "load".to_owned(),
            methods: vec![],
            metric: Metric::RowsPerSecond,
            captures: Vec::new(),
            cells: vec![],
            contrasts: vec![factor],
        };
        Summary {
            not_run: 0,
            left_out: Vec::new(),
            factors: vec![],
            blocks: 6,
            trials: 12,
            not_ok: BTreeMap::new(),
            errors: vec![],
            steps: vec![step],
        }
    }

    fn rule(until: Option<f64>, budget: Option<u64>) -> Blocks {
        Blocks { min: 6, max: 20, until, budget: budget.map(Duration::from_secs) }
    }

    #[test]
    fn tight_intervals_end_a_run_but_not_before_the_fewest_blocks() {
        let (tight, wide) = (summary(Some((1.96, 2.04))), summary(Some((1.5, 2.6))));
        let rule = rule(Some(0.03), None);
        assert!(enough(&rule, 6, &tight, 0.0).is_some());
        assert_eq!(enough(&rule, 5, &tight, 0.0), None);
        assert_eq!(enough(&rule, 6, &wide, 0.0), None);
        assert_eq!(enough(&rule, 6, &summary(None), 0.0), None);
    }

    #[test]
    fn a_used_budget_ends_a_run_whatever_the_intervals() {
        let wide = summary(Some((1.5, 2.6)));
        assert!(enough(&rule(Some(0.03), Some(60)), 7, &wide, 61.0).is_some());
        assert_eq!(enough(&rule(None, Some(60)), 7, &wide, 59.0), None);
        assert_eq!(enough(&rule(None, None), 7, &wide, 1e9), None);
    }
}
