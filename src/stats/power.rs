//! How many blocks an effect needs to be seen, and which effect so many blocks can see.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::gamma::ln_gamma;

use super::t_quantile;

/// Blocks that the signed-rank half of the interval costs over Student's t: its efficiency for normal noise is 3 / pi (J. L. Hodges
/// and E. L. Lehmann, "The efficiency of some nonparametric competitors of the t-test", Annals of Mathematical Statistics 27(2), 1956),
/// and small numbers of blocks lose up to one more to the steps of a discrete test (found by simulation; `tests/statistics.rs`
/// repeats it).
const EFFICIENCY: f64 = 3.0 / std::f64::consts::PI;
/// As above.
const STEPS: f64 = 1.0;
/// No answer is looked for beyond.
const MOST_BLOCKS: usize = 100_000;
/// Pieces of the numerical integral.
const PIECES: u32 = 200;

/// Power of the two-sided paired t-test: the chance that the interval of `blocks` values leaves out 0 when their mean is
/// `effect` standard deviations. By the noncentral t distribution, as `power.t.test(type = "paired", strict = TRUE)` in R.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of blocks stay far below 2^53")]
pub fn t_power(effect: f64, blocks: usize, level: f64) -> f64 {
    if blocks < 2 {
        return 0.0;
    }
    let degrees = (blocks - 1) as f64;
    let critical = t_quantile(f64::midpoint(1.0, level), blocks - 1);
    let shift = effect.abs() * (blocks as f64).sqrt();
    // Of T = (Z + shift) / S, S is integrated out: a chi variable over the root of its degrees of freedom, close to 1.
    let spread = 12.0 / (2.0 * degrees).sqrt();
    let (from, to) = ((1.0 - spread).max(0.0), 1.0 + spread);
    let density = |s: f64| {
        let log = (1.0 - degrees / 2.0) * std::f64::consts::LN_2 + degrees / 2.0 * degrees.ln()
            - ln_gamma(degrees / 2.0)
            + (degrees - 1.0) * s.max(f64::MIN_POSITIVE).ln()
            - degrees * s * s / 2.0;
        log.exp()
    };
    let outside = |s: f64| normal(shift - critical * s) + normal(-shift - critical * s);
    simpson(from, to, |s| density(s) * outside(s)).clamp(0.0, 1.0)
}

/// The fewest blocks, six or more, with which an effect of `log_ratio` is found with a probability of `power` when log ratios of blocks
/// scatter by `scatter` (standard deviation) and intervals are of `level`. `None` without an effect, or when no number will do.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of blocks stay far below 2^53")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 100,000 over the efficiency")]
pub fn blocks_needed(log_ratio: f64, scatter: f64, level: f64, power: f64) -> Option<usize> {
    let effect = (log_ratio / scatter).abs();
    if log_ratio == 0.0 || !log_ratio.is_finite() || !scatter.is_finite() {
        return None;
    }
    if scatter <= 0.0 {
        return Some(super::MIN_BLOCKS);
    }
    let enough = |blocks: usize| t_power(effect, blocks, level) >= power;
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
    Some(((high as f64 / EFFICIENCY + STEPS).ceil() as usize).max(super::MIN_BLOCKS))
}

/// The smallest effect (a log ratio above 0) that `blocks` blocks find with a probability of `power`: the other reading of
/// [`blocks_needed`]. `None` with fewer than six.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of blocks stay far below 2^53")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "six or more, less one")]
pub fn detectable(blocks: usize, scatter: f64, level: f64, power: f64) -> Option<f64> {
    if blocks < super::MIN_BLOCKS || !scatter.is_finite() || scatter < 0.0 {
        return None;
    }
    let counted = ((blocks as f64 - STEPS) * EFFICIENCY).floor() as usize;
    let (mut low, mut high) = (0.0, 1.0);
    while t_power(high, counted, level) < power {
        high *= 2.0;
    }
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if t_power(middle, counted, level) < power { low = middle } else { high = middle }
    }
    Some(high * scatter)
}

/// Quantile of the standard normal distribution.
///
/// # Panics
/// Never: mean 0 and deviation 1 are legal.
#[must_use]
pub fn normal_quantile(probability: f64) -> f64 {
    Normal::new(0.0, 1.0).expect("0 and 1 are legal").inverse_cdf(probability)
}

fn normal(value: f64) -> f64 {
    Normal::new(0.0, 1.0).expect("0 and 1 are legal").cdf(value)
}

/// Simpson's rule.
fn simpson(from: f64, to: f64, function: impl Fn(f64) -> f64) -> f64 {
    let width = (to - from) / f64::from(PIECES);
    let inner = (1..PIECES).map(|piece| {
        let weight = if piece % 2 == 1 { 4.0 } else { 2.0 };
        weight * function(from + width * f64::from(piece))
    });
    (function(from) + inner.sum::<f64>() + function(to)) * width / 3.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.nct` (SciPy 1.17), both tails.
    #[test]
    fn power_is_that_of_the_noncentral_t_distribution() {
        for (blocks, effect, expected) in [
            (6, 1.5, 0.832_529_279_9),
            (10, 1.0, 0.803_096_856_6),
            (34, 0.5, 0.807_777_501_3),
            (8, 1.0, 0.680_833_954_2),
            (20, 0.7, 0.843_505_876_4),
            (6, 0.0, 0.05),
        ] {
            let found = t_power(effect, blocks, 0.95);
            assert!((found - expected).abs() < 1e-6, "{blocks} {effect}: {found}");
        }
    }

    /// The t-test alone needs 34 pairs for half a standard deviation at 80 % (33.37 in G*Power and R).
    #[test]
    fn blocks_for_an_effect_are_those_of_the_t_test_and_the_cost_of_the_signed_rank() {
        assert_eq!(blocks_needed(0.5, 1.0, 0.95, 0.8), Some(37));
        assert_eq!(blocks_needed(3.0, 1.0, 0.95, 0.8), Some(6));
        assert_eq!(blocks_needed(1.0, 0.0, 0.95, 0.8), Some(6));
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
