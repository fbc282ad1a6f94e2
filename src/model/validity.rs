//! When a measurement may be used: one rule, used by results and comparisons alike.

use super::{Guard, Measurement, Outcome, TrialRecord};

impl Guard {
    /// Whether the whole trial is void, not only the step where the guard tripped: a server that restarted or runs with
    /// other settings than asked for, or rows that are wrong, spoils what came before and after as well.
    #[must_use]
    pub fn voids_trial(self) -> bool {
        matches!(
            self,
            Self::SettingNotInForce
                | Self::ServerRestarted
                | Self::RowsWrong
                | Self::ChecksumWrong
                | Self::OutOfMemoryKill
        )
    }

    /// Whether the step's numbers may not be averaged. A client-bound number is right, but it is the client's: it may compare
    /// ways of the client, and says nothing about settings of the server.
    #[must_use]
    pub fn voids_step(self) -> bool {
        self != Self::ClientBound
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
            .chain(measurement.guards.iter().filter(|guard| guard.voids_step()))
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
    /// Rows moved per second of the headline span; `None` without rows, over a span of zero, and for a step
    /// that did not end well.
    #[must_use]
    pub fn rows_per_second(&self) -> Option<f64> {
        self.per_second(self.rows?)
    }

    /// Bytes of row data moved per second of the headline span, under the same conditions.
    #[must_use]
    pub fn payload_bytes_per_second(&self) -> Option<f64> {
        self.per_second(self.payload_bytes?)
    }

    /// From the first BEGIN until a CHECKPOINT has written the rows to the data files: `seconds` + `flush`.
    /// `None` when no CHECKPOINT was asked for.
    #[must_use]
    pub fn durable_seconds(&self) -> Option<f64> {
        // A window ends by the clock: how long its rows took until they were durable is not known.
        self.outside.is_none().then_some(self.spans.seconds + self.spans.flush?)
    }

    #[expect(clippy::cast_precision_loss, reason = "counts and bytes stay far below 2^53")]
    fn per_second(&self, amount: u64) -> Option<f64> {
        if self.outcome.is_some_and(|outcome| outcome != Outcome::Ok) {
            return None;
        }
        let rate = amount as f64 / self.spans.seconds;
        (self.spans.seconds > 0.0 && rate.is_finite()).then_some(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Spans;

    fn measurement(outcome: Outcome, guards: &[Guard]) -> Measurement {
        Measurement { outcome: Some(outcome), guards: guards.to_vec(), ..Measurement::default() }
    }

    fn record(outcome: Outcome, measurements: Vec<Measurement>) -> TrialRecord {
        TrialRecord {
            trial: crate::model::PlannedTrial {
                number: 0,
                block: 0,
                position: 0,
                treatment_index: 0,
                treatment: crate::model::Treatment { levels: Vec::new() },
                control: false,
            },
            attempt: 0,
            treatment: String::new(),
            factors: Vec::new(),
            started_at: jiff::Timestamp::UNIX_EPOCH,
            seconds: 0.0,
            server_start_seconds: None,
            server: None,
            outcome,
            error: None,
            error_sqlstate: None,
            settings: Vec::new(),
            measurements,
            samples: Vec::new(),
        }
    }

    #[test]
    fn a_window_guard_is_about_its_step_and_a_restart_about_the_trial() {
        let clean = measurement(Outcome::Ok, &[]);
        let window = measurement(Outcome::Ok, &[Guard::CheckpointInWindow]);
        let trial = record(Outcome::Ok, vec![clean.clone(), window.clone()]);
        assert!(trial.reasons_against(&clean).is_empty());
        assert_eq!(trial.reasons_against(&window), ["checkpoint_in_window"]);
        let restarted = measurement(Outcome::Ok, &[Guard::ServerRestarted]);
        let trial = record(Outcome::Ok, vec![clean.clone(), restarted]);
        assert_eq!(trial.reasons_against(&clean), ["server_restarted"]);
    }

    #[test]
    fn a_trial_that_did_not_end_well_has_no_valid_step() {
        let clean = measurement(Outcome::Ok, &[]);
        let late = measurement(Outcome::TimedOut, &[]);
        let trial = record(Outcome::TimedOut, vec![clean.clone(), late.clone()]);
        assert_eq!(trial.reasons_against(&clean), ["timed_out"]);
        assert_eq!(trial.reasons_against(&late), ["timed_out"]);
    }

    #[test]
    fn no_rate_over_a_span_of_zero_or_without_rows() {
        let mut measurement = Measurement { rows: Some(10), ..Measurement::default() };
        assert_eq!(measurement.rows_per_second(), None);
        measurement.spans = Spans { seconds: 2.0, ..Spans::default() };
        assert_eq!(measurement.rows_per_second(), Some(5.0));
        measurement.rows = None;
        assert_eq!(measurement.rows_per_second(), None);
    }
}
