//! How rows came over time: samples, and what a load by duration did outside its window.

use serde::{Deserialize, Serialize};

/// One point of a time series inside a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Step it belongs to.
    pub step_index: u32,
    /// Name of the step.
    pub step: String,
    /// Client, from 0.
    pub client: u32,
    /// Seconds since the step's clock started.
    pub elapsed_seconds: f64,
    /// Rows this client has moved so far.
    pub rows: u64,
    /// Before or inside the measured window.
    #[serde(default)]
    pub phase: Phase,
}

/// Where in a step a sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the measured window of a load by duration.
    WarmUp,
    /// Inside the window; all of a step that has none.
    #[default]
    Measure,
}

impl Phase {
    /// Name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm_up",
            Self::Measure => "measure",
        }
    }
}

/// What a load by duration did outside its window.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Outside {
    /// Length of the warm-up, seconds.
    pub warm_up: f64,
    /// Rows whose COMMIT was acknowledged before the window opened.
    pub rows_warm_up: u64,
    /// Rows whose COMMIT was acknowledged after it closed: those of the last transactions.
    pub rows_after: u64,
}
