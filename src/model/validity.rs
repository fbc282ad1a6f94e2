//! When a measurement may be used: one rule, used by results and comparisons alike.

use super::{Guard, Measurement, Outcome, TrialRecord};

impl Guard {
    /// Whether the whole trial is void, not only the step where the guard tripped: a server that restarted or runs with
    /// other settings than asked for, or rows that are wrong, spoils what came before and after as well.
    #[must_use]
    pub fn voids_trial(self) -> bool {
        match self {
            Self::SettingNotInForce | Self::ServerRestarted | Self::RowsWrong | Self::ChecksumWrong => true,
            Self::AutovacuumInWindow | Self::CheckpointInWindow => false,
        }
    }
}

impl TrialRecord {
    /// Why a step's numbers must not be averaged: names of outcomes and guards, sorted, without repeats.
    /// Empty for a valid measurement.
    #[must_use]
    pub fn reasons_against(&self, measurement: &Measurement) -> Vec<&'static str> {
        let mut reasons: Vec<&'static str> = self
            .measurements
            .iter()
            .flat_map(|other| other.guards.iter().filter(|guard| guard.voids_trial()))
            .chain(&measurement.guards)
            .map(|guard| guard.name())
            .collect();
        let outcome = measurement.outcome.unwrap_or(self.outcome);
        for outcome in [outcome, self.outcome] {
            if outcome != Outcome::Ok {
                reasons.push(outcome.name());
            }
        }
        reasons.sort_unstable();
        reasons.dedup();
        reasons
    }
}

impl Measurement {
    /// Rows moved per second of the headline span; `None` without rows or over a span of zero.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "row counts stay far below 2^53")]
    pub fn rows_per_second(&self) -> Option<f64> {
        let rate = self.rows? as f64 / self.spans.seconds;
        (self.spans.seconds > 0.0 && rate.is_finite()).then_some(rate)
    }
}
