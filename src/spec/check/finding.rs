//! What a check reports.

/// Something wrong with a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// Path into the experiment file: `steps.1.load.method.copy.freeze`, `tables.orders.rows`,
    /// `server.settings.wal_level`. Where the file does not have the last parts (a default is wrong, or the
    /// setting comes from the environment file), the longest part that exists is meant.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub expected: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl Finding {
    pub(super) fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), message: message.into(), expected: None, hint: None }
    }

    pub(super) fn expected(self, expected: impl Into<String>) -> Self {
        Self { expected: Some(expected.into()), ..self }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}
