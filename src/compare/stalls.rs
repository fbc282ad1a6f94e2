//! Which stalls are worth a word.

use serde::{Deserialize, Serialize};

use crate::model::Measurement;

/// Stalled time from which a stall is told, as share of the step's time.
const SHARE: f64 = 0.05;
/// A gap is told when it is as long as this, in seconds, ...
const GAP: f64 = 1.0;
/// ... and so many times as long as batches are apart on average: large batches are no stalls.
const TIMES: f64 = 10.0;

/// A stall of a step that a reader should know of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stall {
    /// Longest time without an acknowledged row, seconds.
    pub longest_gap: f64,
    /// Share of the time with under a tenth of the median rate, where it is known.
    pub stalled_share: Option<f64>,
}

/// The worst notable stall of some measurements; `None` where there is none.
pub(super) fn worst(measurements: &[&Measurement]) -> Option<Stall> {
    let stalls = measurements.iter().filter_map(|measurement| notable(measurement));
    stalls.max_by(|a, b| a.longest_gap.total_cmp(&b.longest_gap))
}

#[expect(clippy::cast_precision_loss, reason = "counts of batches stay far below 2^53")]
fn notable(measurement: &Measurement) -> Option<Stall> {
    let stall = Stall { longest_gap: measurement.longest_gap?, stalled_share: measurement.stalled_share };
    let batches = measurement.batch_latency.map_or(0, |latency| latency.count);
    let usual = measurement.spans.seconds / batches.max(1) as f64;
    let long = stall.longest_gap >= GAP && stall.longest_gap >= TIMES * usual;
    (long || stall.stalled_share >= Some(SHARE)).then_some(stall)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Latency, Spans};

    fn measurement(gap: f64, share: Option<f64>, batches: u64) -> Measurement {
        Measurement {
            spans: Spans { seconds: 10.0, ..Spans::default() },
            batch_latency: Some(Latency { count: batches, ..Latency::default() }),
            longest_gap: Some(gap),
            stalled_share: share,
            ..Measurement::default()
        }
    }

    #[test]
    fn long_gaps_and_stalled_time_are_told_and_slow_batches_are_not() {
        let told = |gap, share, batches| worst(&[&measurement(gap, share, batches)]).is_some();
        assert!(told(1.2, Some(0.0), 1000));
        assert!(told(0.3, Some(0.06), 1000));
        assert!(!told(0.3, Some(0.04), 1000));
        assert!(!told(2.0, None, 8), "batches that take more than a second");
        assert!(!told(0.3, None, 1000));
        assert_eq!(worst(&[&Measurement::default()]), None, "nothing is known");
    }

    #[test]
    fn the_worst_of_several_is_told() {
        let (short, long) = (measurement(1.5, None, 1000), measurement(3.0, None, 1000));
        assert_eq!(worst(&[&short, &long, &short]).map(|stall| stall.longest_gap), Some(3.0));
    }
}
