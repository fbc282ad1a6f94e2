//! Pure functions on numbers; each cites where its formula comes from. Nothing here knows what the numbers mean.

mod family;
mod levels;
mod power;
mod ratio;
mod series;
mod signed_rank;
mod spread;
mod stalls;
mod two_samples;

pub use family::{Place, level_for_family, place};
pub use levels::{Components, components};
pub use power::{blocks_needed, detectable};
pub use ratio::{Interval, MIN_BLOCKS, geometric_mean_ratio, log_ratio, standard_deviation, t_quantile};
pub use series::{effective_size, relative_error};
pub use signed_rank::signed_rank_interval;
pub use spread::{mean, median, quantile, relative_range};
pub use stalls::Acknowledgements;
pub use two_samples::{TwoSamples, two_samples};
