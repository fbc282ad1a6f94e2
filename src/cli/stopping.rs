//! Ends a run by the rule its design declares (`blocks: {min, max, until, budget}`), after whole blocks.

use crate::compare::{Facts, enough, in_question};
use crate::model::{Claim, Design, TrialRecord};
use crate::spec::Spec;

/// Watches finished trials of a design that may end early.
pub(super) struct Stopping<'a> {
    design: &'a Design,
    claims: &'a [Claim],
    facts: Facts,
    /// Trials of a block, its control trial too.
    block_size: u64,
    /// Kept only where the design has such a rule.
    records: Option<Vec<TrialRecord>>,
}

impl<'a> Stopping<'a> {
    /// `finished`: trials of an earlier start of the same run.
    pub(super) fn new(spec: &'a Spec, facts: Facts, block_size: u64, finished: Vec<TrialRecord>) -> Self {
        let (design, claims) = (&spec.design, &spec.claims);
        let rule = design.blocks.max > design.blocks.min;
        Self { design, claims, facts, block_size, records: rule.then_some(finished) }
    }

    /// Adds a finished trial.
    pub(super) fn add(&mut self, record: &TrialRecord) {
        if let Some(records) = &mut self.records {
            // Time series play no part in the rule.
            records.push(TrialRecord { samples: Vec::new(), ..record.clone() });
        }
    }

    /// Why the run ends here, if it does.
    pub(super) fn enough(&self) -> Option<String> {
        let records = self.records.as_ref()?;
        let done = records.len() as u64;
        if done == 0 || !done.is_multiple_of(self.block_size) {
            return None;
        }
        let blocks = u32::try_from(done / self.block_size).ok()?;
        let seconds = records.iter().map(|record| record.seconds).sum();
        let question = in_question(records, self.design, self.claims, &self.facts);
        enough(&self.design.blocks, blocks, &question, seconds)
    }
}
