//! Verdicts on published statements: claims, records and the design in, judgements out. Pure.

mod end_point;
mod evidence;
mod judgement;
mod needs;
mod rebind;
mod rules;
mod tolerance;

use std::collections::BTreeMap;

use evidence::{Draft, Evidence};
pub use judgement::{Comparison, Judgement, Kind, Precondition, Ratio, Tolerance, Verdict};
pub use rebind::rebound;
use rules::Ruling;

use crate::model::{Claim, Contrast, Design, Group, Metric, Statement, TrialRecord};

/// What judging needs to know about a run beside its records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Facts {
    /// Whether rows, durations and blocks were capped: such a run is never judged.
    pub smoke: bool,
    /// CPUs of the machine.
    pub cores: Option<u64>,
    /// Memory of the machine, bytes.
    pub memory_bytes: Option<u64>,
}

/// Judges all claims of an experiment by one run.
///
/// The family is all comparisons of times and rates that these claims make, each counted once however many readings use it:
/// a run says something wrong about any of them at most one time in twenty. Counters are not in it, because luck has no part in them.
#[must_use]
pub fn judge(claims: &[Claim], records: &[TrialRecord], design: &Design, facts: &Facts) -> Vec<Judgement> {
    let mut family: Vec<(&Metric, Contrast)> = Vec::new();
    for claim in claims {
        let Some(metric) = claim.metric.as_ref().filter(|metric| !metric.counter) else { continue };
        for contrast in contrasts(&claim.statement) {
            if !family.contains(&(metric, contrast.clone())) {
                family.push((metric, contrast));
            }
        }
    }
    claims.iter().map(|claim| judge_one(claim, records, design, facts, family.len())).collect()
}

fn judge_one(
    claim: &Claim,
    records: &[TrialRecord],
    design: &Design,
    facts: &Facts,
    family: usize,
) -> Judgement {
    let contrasts = contrasts(&claim.statement);
    let groups: Vec<&Group> = match &claim.statement {
        Statement::Absolute(group) => vec![group],
        _ => contrasts.iter().flat_map(|contrast| [&contrast.of, &contrast.to]).collect(),
    };
    let metric = claim.metric.as_ref();
    let evidence =
        metric.map(|metric| Evidence::collect(records, design, metric, &groups)).unwrap_or_default();
    let counter = metric.is_some_and(|metric| metric.counter);
    let family = if counter { 1 } else { family };
    let compared =
        contrasts.iter().map(|contrast| Draft::new(&evidence, design, contrast, metric).finish(family));
    let mut judgement = Judgement {
        claim: claim.id.clone(),
        source: claim.source.clone(),
        quote: claim.quote.clone(),
        reading: claim.reading,
        kind: kind(&claim.statement),
        metric: metric
            .map(|metric| format!("{}.{}", metric.steps.join("+"), metric.name))
            .unwrap_or_default(),
        end_point: metric.map(|metric| end_point::end_point(metric, &evidence.used)).unwrap_or_default(),
        published: claim.published,
        raw: claim.raw.clone(),
        tolerance: matches!(claim.statement, Statement::Ratio(_))
            .then(|| tolerance::tolerance(claim))
            .flatten(),
        comparisons: compared.collect(),
        ours: groups.first().and_then(|group| evidence.median(group)),
        family,
        preconditions: needs::preconditions(claim, &evidence.used, facts),
        left_out: BTreeMap::new(),
        confounds: claim.confounds.clone(),
        verdict: None,
        reason: String::new(),
        blocks_needed: None,
    };
    judgement.left_out = evidence.left_out;
    if !matches!(claim.statement, Statement::Absolute(_)) {
        judgement.ours = None;
    }
    rule(&mut judgement, claim, facts);
    judgement
}

/// Fills in verdict and reason.
fn rule(judgement: &mut Judgement, claim: &Claim, facts: &Facts) {
    if facts.smoke {
        judgement.comparisons.clear();
        judgement.ours = None;
        "a smoke run proves nothing and is never judged".clone_into(&mut judgement.reason);
        return;
    }
    if matches!(claim.statement, Statement::Absolute(_)) {
        "a value of its own machine: shown, never judged".clone_into(&mut judgement.reason);
        return;
    }
    let (verdict, reason, more) = ruling(judgement, claim);
    judgement.verdict = Some(verdict);
    judgement.reason = reason;
    judgement.blocks_needed = more;
    if judgement.comparisons.iter().any(|comparison| comparison.pairs > 0 && !comparison.alike) {
        judgement.reason += "; the groups differ in more than the claim names";
    }
}

fn ruling(judgement: &Judgement, claim: &Claim) -> Ruling {
    let not_comparable = |reason: String| (Verdict::NotComparable, reason, None);
    if let Statement::NotComparable(reason) = &claim.statement {
        return not_comparable(reason.clone());
    }
    // Without any trial needs cannot be looked up, and the missing trials are the better reason.
    if let Some(ruling) =
        rules::too_few(&judgement.comparisons).filter(|ruling| ruling.0 == Verdict::NotComparable)
    {
        return ruling;
    }
    let unmet = judgement.preconditions.iter().filter(|precondition| !precondition.met);
    let unmet: Vec<String> = unmet
        .map(|precondition| format!("needs {}, found {}", precondition.need, precondition.found))
        .collect();
    if !unmet.is_empty() {
        return not_comparable(unmet.join("; "));
    }
    let hidden = rules::client_bound(&judgement.comparisons);
    if let Some(ruling) = hidden.or_else(|| rules::too_few(&judgement.comparisons)) {
        return ruling;
    }
    let first = judgement.comparisons.first().and_then(|comparison| comparison.ratio.as_ref());
    match (&claim.statement, first, &judgement.tolerance, claim.published) {
        (Statement::Ratio(_), Some(found), Some(tolerance), Some(published)) => {
            if (published - 1.0).abs() < f64::EPSILON {
                return rules::no_difference(found, tolerance.share, judgement.family);
            }
            rules::ratio(found, published, tolerance, judgement.family)
        }
        (Statement::NoDifference { margin, .. }, Some(found), ..) => {
            rules::no_difference(found, *margin, judgement.family)
        }
        (Statement::Order(_), ..) if !judgement.comparisons.is_empty() => {
            rules::order(&judgement.comparisons, judgement.family)
        }
        _ => not_comparable("the claim names no number or nothing to compare it with".to_owned()),
    }
}

/// The comparisons a statement makes: of an order each group with the next, and with three groups or more the first with the last.
fn contrasts(statement: &Statement) -> Vec<Contrast> {
    match statement {
        Statement::Ratio(contrast) | Statement::NoDifference { contrast, .. } => vec![contrast.clone()],
        Statement::Order(groups) => {
            let pair = |of: &Group, to: &Group| Contrast { of: of.clone(), to: to.clone() };
            let next = groups.windows(2).map(|two| pair(&two[0], &two[1]));
            let ends = groups.first().zip(groups.last()).filter(|_| groups.len() > 2);
            next.chain(ends.map(|(first, last)| pair(first, last))).collect()
        }
        Statement::Absolute(_) | Statement::NotComparable(_) => Vec::new(),
    }
}

fn kind(statement: &Statement) -> Kind {
    match statement {
        Statement::Ratio(_) => Kind::Ratio,
        Statement::NoDifference { .. } => Kind::NoDifference,
        Statement::Order(_) => Kind::Order,
        Statement::Absolute(_) => Kind::Absolute,
        Statement::NotComparable(_) => Kind::NotComparable,
    }
}
