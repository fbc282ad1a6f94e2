//! Which trials are run, in which order, and what they will take: pure, and lazy enough for millions.

mod estimate;
mod order;
mod rates;
mod shuffle;
mod smoke;
mod width;

pub use estimate::{Estimate, estimate};
pub use order::{MAX_TREATMENTS, MAX_TRIALS, Plan, PlanError};
pub use smoke::{smoke_design, smoke_trial};
pub use width::{Width, column_width, index_entry_bytes, row_bytes, smallest_row_bytes, text_row_bytes};
