//! Ends a run whose SQL is wrong: what the server refuses to understand once, it refuses in every block.
//!
//! The rule is simple on purpose. A syntax error in the very first trial ends the run, and so does a first block in which
//! every treatment failed by an error of SQLSTATE class 42 (syntax error or access rule violation: a name that does not
//! exist, a type that does not fit, a missing right). As long as one treatment may be fine, the run goes on.

use crate::model::TrialRecord;

/// SQLSTATE of a syntax error.
const SYNTAX_ERROR: &str = "42601";
/// Class of errors that lie in the SQL and not in the data or the server.
const SQL_IS_WRONG: &str = "42";

/// Watches the first trials of a run.
pub(super) struct Hopeless {
    treatments: u64,
    ended: u64,
    wrong: u64,
}

impl Hopeless {
    /// `finished`: trials of an earlier start of the same run.
    pub(super) fn new(treatments: u64, finished: &[TrialRecord]) -> Self {
        let mut hopeless = Self { treatments, ended: 0, wrong: 0 };
        for record in finished {
            hopeless.add(record);
        }
        hopeless
    }

    /// Adds a finished trial; why the run ends here, if it does.
    pub(super) fn add(&mut self, record: &TrialRecord) -> Option<String> {
        if record.trial.control {
            return None;
        }
        self.ended += 1;
        let state = record.error_sqlstate.as_deref().unwrap_or_default();
        if !state.starts_with(SQL_IS_WRONG) {
            return None;
        }
        self.wrong += 1;
        let error = record.error.as_deref().and_then(|text| text.lines().next()).unwrap_or_default();
        let remedy = "correct the SQL of the experiment and run it again";
        if self.ended == 1 && state == SYNTAX_ERROR {
            return Some(format!("the server does not understand the experiment's SQL ({error}); {remedy}"));
        }
        (self.ended == self.treatments && self.wrong == self.ended).then(|| {
            format!("the server refuses the experiment's SQL in every treatment, the last time with: {error}; {remedy}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Outcome, PlannedTrial, Treatment};

    fn record(state: Option<&str>) -> TrialRecord {
        TrialRecord {
            trial: PlannedTrial {
                number: 0,
                block: 0,
                position: 0,
                treatment_index: 0,
                treatment: Treatment { levels: Vec::new() },
                control: false,
            },
            attempt: 0,
            treatment: String::new(),
            factors: Vec::new(),
            started_at: jiff::Timestamp::UNIX_EPOCH,
            seconds: 0.0,
            server_start_seconds: None,
            server: None,
            outcome: Outcome::Failed,
            error: Some("step sql: db error".to_owned()),
            error_sqlstate: state.map(str::to_owned),
            settings: Vec::new(),
            measurements: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// How many trials are run before the run ends.
    fn ends_after(treatments: u64, states: &[Option<&str>]) -> Option<usize> {
        let mut hopeless = Hopeless::new(treatments, &[]);
        states.iter().position(|state| hopeless.add(&record(*state)).is_some()).map(|index| index + 1)
    }

    #[test]
    fn a_run_ends_when_no_treatment_can_be_fine() {
        assert_eq!(ends_after(3, &[Some("42601"), None]), Some(1));
        assert_eq!(ends_after(3, &[Some("42P01"), Some("42601"), Some("42703"), None]), Some(3));
        assert_eq!(ends_after(1, &[Some("42P01")]), Some(1));
        assert_eq!(ends_after(2, &[Some("42P01"), None, Some("42P01"), Some("42P01")]), None);
        assert_eq!(ends_after(2, &[None, Some("42601"), Some("42601")]), None);
        assert_eq!(ends_after(2, &[Some("23505"), Some("23505")]), None);
    }
}
