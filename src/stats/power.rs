//! How many blocks an effect needs to be seen, and which effect so many blocks can see.

use super::{MIN_BLOCKS, t_quantile};

/// What the signed-rank half of the interval costs over Student's t: its efficiency for normal noise is 3 / pi (J. L. Hodges
/// and E. L. Lehmann, "The efficiency of some nonparametric competitors of the t-test", Annals of Mathematical Statistics 27(2), 1956).
const EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;
/// A discrete test moves in steps, which costs few blocks up to one more: found by simulation, which `tests/statistics.rs` repeats.
const STEPS: f64 = 1.0;
/// No answer is looked for beyond.
const MOST_BLOCKS: usize = 100_000;

/// The fewest blocks, six or more, with which an effect of `log_ratio` is found with a probability of `power` when log ratios of blocks
/// scatter by `scatter` (standard deviation) and intervals are of `level`. `None` without an effect, or when no number will do.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of blocks stay far below 2^53")]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most 100,000 over the efficiency"
)]
pub fn blocks_needed(log_ratio: f64, scatter: f64, level: f64, power: f64) -> Option<usize> {
    if log_ratio == 0.0 || !log_ratio.is_finite() || !scatter.is_finite() {
        return None;
    }
    let enough = |blocks: usize| multiplier(blocks, level, power) * scatter <= log_ratio.abs();
    let (mut low, mut high) = (1, 2);
    while !enough(high) {
        (low, high) = (high, high * 2);
        if high > MOST_BLOCKS {
            return None;
        }
    }
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if enough(middle) { high = middle } else { low = middle }
    }
    Some(((high as f64 / EFFICIENCY + STEPS).ceil() as usize).max(MIN_BLOCKS))
}

/// The smallest effect (a log ratio above 0) that `blocks` blocks find with a probability of `power`: the other reading of
/// [`blocks_needed`]. `None` with fewer than six.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of blocks stay far below 2^53")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "six or more, less one")]
pub fn detectable(blocks: usize, scatter: f64, level: f64, power: f64) -> Option<f64> {
    if blocks < MIN_BLOCKS || !scatter.is_finite() || scatter < 0.0 {
        return None;
    }
    let counted = ((blocks as f64 - STEPS) * EFFICIENCY).floor() as usize;
    Some(multiplier(counted, level, power) * scatter)
}

/// The effect, in standard deviations, that Student's paired test finds with a probability of `power`: the sum of the quantiles of both
/// errors over the root of n (H. S. Bloom, "Minimum detectable effects", Evaluation Review 19(5), 1995). At 80 % it gives the same
/// numbers of pairs as the noncentral t distribution.
#[expect(clippy::cast_precision_loss, reason = "counts of blocks stay far below 2^53")]
fn multiplier(blocks: usize, level: f64, power: f64) -> f64 {
    let degrees = blocks - 1;
    let quantiles = t_quantile(f64::midpoint(1.0, level), degrees) + t_quantile(power, degrees);
    quantiles / (blocks as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pairs for 80 % by the noncentral t distribution (`scipy.stats.nct` of version 1.17; 34 for half a deviation is also what
    /// G*Power and R's `power.t.test(type = "paired")` give), before the cost of the signed-rank half.
    #[test]
    fn pairs_are_those_of_the_noncentral_t_distribution() {
        for (effect, pairs) in
            [(2.0, 5), (1.5, 6), (1.2, 8), (1.0, 10), (0.8, 15), (0.6, 24), (0.5, 34), (0.4, 52)]
        {
            assert!(multiplier(pairs, 0.95, 0.8) <= effect, "{effect}");
            assert!(multiplier(pairs - 1, 0.95, 0.8) > effect, "{effect}");
        }
    }

    #[test]
    fn blocks_are_never_fewer_than_six() {
        assert_eq!(blocks_needed(0.5, 1.0, 0.95, 0.8), Some(37));
        assert_eq!(blocks_needed(3.0, 1.0, 0.95, 0.8), Some(6));
        assert_eq!(blocks_needed(-1.0, 0.0, 0.95, 0.8), Some(6));
        assert_eq!(blocks_needed(0.0, 1.0, 0.95, 0.8), None);
        assert_eq!(blocks_needed(1e-9, 1.0, 0.95, 0.8), None);
    }

    #[test]
    fn what_is_detectable_needs_just_these_blocks() {
        for blocks in [6, 7, 10, 20, 50] {
            let effect = detectable(blocks, 0.03, 0.95, 0.8).unwrap();
            let needed = blocks_needed(effect * 1.000_001, 0.03, 0.95, 0.8).unwrap();
            assert!(needed <= blocks, "{blocks}: {needed}");
            assert!(blocks_needed(effect * 0.9, 0.03, 0.95, 0.8) >= Some(blocks), "{blocks}");
        }
        assert_eq!(detectable(5, 0.03, 0.95, 0.8), None);
    }
}
