//! Pure functions on numbers; each cites where its formula comes from. Nothing here knows what the numbers mean.

mod ratio;
mod spread;
mod stalls;

pub use ratio::{Interval, geometric_mean_ratio, log_ratio, t_quantile};
pub use spread::{mean, median, quantile, relative_range};
pub use stalls::Acknowledgements;
