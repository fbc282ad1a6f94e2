//! From records to answers: medians per treatment, ratios per factor. Pure; what may be averaged is decided by
//! [`TrialRecord::reasons_against`](crate::model::TrialRecord::reasons_against) alone.

mod claims;
mod client;
mod contrast;
mod controls;
mod noise;
mod observations;
mod pairs;
mod stalls;
mod stopping;
mod summary;
mod versus;

pub use crate::stats::{MIN_BLOCKS, median};
pub use claims::{
    Comparison, Facts, Judgement, Kind, Precondition, Ratio, Tolerance, Verdict, judge, rebound,
};
pub use contrast::{Contrast, FactorContrast, Reading, Within};
pub use controls::{CeilingUse, ControlSummary, Nearest, NoiseFloor, controls, doubt};
pub use noise::{Noise, noise};
pub use stalls::Stall;
pub use stopping::{InQuestion, enough, in_question};
pub use summary::{CaptureName, Cell, Metric, StepSummary, Summary, TrialErrors, answers, summarise};
pub use versus::{Line, Side, versus_group, versus_run};
