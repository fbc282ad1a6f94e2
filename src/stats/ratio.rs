//! The ratio of two treatments from paired observations.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use super::mean;

/// A ratio with the interval it lies in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Geometric mean of the paired ratios.
    pub ratio: f64,
    /// Lower and upper end; `None` for a single pair, which says nothing about spread.
    pub bounds: Option<(f64, f64)>,
    /// Number of independent pairs.
    pub n: usize,
}

/// `ln(a / b)`; `None` unless both are positive and finite.
#[must_use]
pub fn log_ratio(a: f64, b: f64) -> Option<f64> {
    let usable = |value: f64| value.is_finite() && value > 0.0;
    (usable(a) && usable(b)).then(|| (a / b).ln())
}

/// Geometric mean ratio of pairs with a two-sided interval: the paired t-interval of the log ratios, put back on the scale of
/// ratios. The geometric mean is the average that fits normalised numbers (P. J. Fleming and J. J. Wallace, "How not to lie with
/// statistics", CACM 29(3), 1986); the interval is Student's for a mean (W. S. Gosset, "The probable error of a mean",
/// Biometrika 6(1), 1908), with n - 1 degrees of freedom. `level` is the coverage, 0.95 for 95 %.
/// `None` without pairs or for a `level` that is not strictly between 0 and 1.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of blocks stay far below 2^53")]
pub fn geometric_mean_ratio(log_ratios: &[f64], level: f64) -> Option<Interval> {
    let centre = mean(log_ratios)?;
    let n = log_ratios.len();
    if level <= 0.0 || level >= 1.0 {
        return None;
    }
    let bounds = (n > 1).then(|| {
        let squares: f64 = log_ratios.iter().map(|value| (value - centre).powi(2)).sum();
        let error = (squares / (n - 1) as f64 / n as f64).sqrt();
        let half = t_quantile(f64::midpoint(1.0, level), n - 1) * error;
        ((centre - half).exp(), (centre + half).exp())
    });
    Some(Interval { ratio: centre.exp(), bounds, n })
}

/// Quantile of Student's t distribution; `degrees` at least 1.
///
/// # Panics
/// Never: scale and degrees are always legal.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "degrees of freedom stay far below 2^53")]
pub fn t_quantile(probability: f64, degrees: usize) -> f64 {
    let degrees = degrees.max(1) as f64;
    let distribution = StudentsT::new(0.0, 1.0, degrees).expect("scale 1 and degrees >= 1 are legal");
    distribution.inverse_cdf(probability.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NIST/SEMATECH e-Handbook of Statistical Methods, table 1.3.6.7.2, column 0.975.
    #[test]
    fn t_quantiles_are_those_of_the_nist_table() {
        for (degrees, expected) in
            [(1, 12.706), (2, 4.303), (4, 2.776), (5, 2.571), (19, 2.093), (100, 1.984)]
        {
            let found = t_quantile(0.975, degrees);
            assert!((found - expected).abs() < 0.0006, "{degrees}: {found}");
        }
    }

    /// W. S. Gosset's sleep data (R's `sleep`), as `exp()` of the paired differences:
    /// `t.test(extra ~ group, paired = TRUE)` gives mean 1.58 and the interval 0.7001142 to 2.4598858.
    #[test]
    fn interval_is_the_paired_t_test_of_r() {
        let differences = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let interval = geometric_mean_ratio(&differences, 0.95).unwrap();
        let (low, high) = interval.bounds.unwrap();
        assert!((interval.ratio.ln() - 1.58).abs() < 1e-12);
        assert!((low.ln() - 0.700_114_2).abs() < 1e-6, "{}", low.ln());
        assert!((high.ln() - 2.459_885_8).abs() < 1e-6, "{}", high.ln());
    }

    #[test]
    fn one_pair_has_no_interval_and_none_has_nothing() {
        let interval = geometric_mean_ratio(&[2.0_f64.ln()], 0.95).unwrap();
        assert!((interval.ratio - 2.0).abs() < 1e-12);
        assert_eq!(interval.bounds, None);
        assert_eq!(geometric_mean_ratio(&[], 0.95), None);
        assert_eq!(geometric_mean_ratio(&[0.0], 1.0), None);
    }

    #[test]
    fn only_positive_numbers_have_a_log_ratio() {
        assert_eq!(log_ratio(1.0, 0.0), None);
        assert_eq!(log_ratio(f64::NAN, 1.0), None);
        assert_eq!(log_ratio(3.0, 3.0), Some(0.0));
    }

    /// A/A simulation: of 4,000 experiments with six blocks and no difference, 95 % (two standard errors: 0.7 %) must cover 1.
    #[test]
    fn interval_covers_the_truth_as_often_as_it_says() {
        let mut state = 20_170_608_u64;
        let mut uniform = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from(u32::try_from(state >> 32).expect("32 bits are left")) / f64::from(u32::MAX)
        };
        let mut covered = 0;
        for _ in 0..4_000 {
            // The sum of twelve uniform numbers is normal enough, with variance 1.
            let logs: Vec<f64> =
                (0..6).map(|_| 0.1 * ((0..12).map(|_| uniform()).sum::<f64>() - 6.0)).collect();
            let (low, high) = geometric_mean_ratio(&logs, 0.95).unwrap().bounds.unwrap();
            covered += u32::from(low <= 1.0 && 1.0 <= high);
        }
        let share = f64::from(covered) / 4_000.0;
        assert!((share - 0.95).abs() < 0.01, "coverage {share}");
    }
}
