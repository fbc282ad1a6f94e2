//! From records to answers: medians per treatment, ratios per factor. Pure; what may be averaged is decided by
//! [`TrialRecord::reasons_against`](crate::model::TrialRecord::reasons_against) alone.

mod contrast;
mod observations;
mod stalls;
mod stopping;
mod summary;

pub use contrast::{Contrast, FactorContrast, Reading, Within};
pub use stalls::Stall;
pub use stopping::enough;
pub use summary::{CaptureName, Cell, MIN_BLOCKS, Metric, StepSummary, Summary, TrialErrors, summarise};
