//! Two samples that are not paired: two runs.

use super::ratio::t_quantile_of;
use super::{mean, standard_deviation};

/// Difference of two means with what is known about it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoSamples {
    /// Mean of the one less mean of the other.
    pub difference: f64,
    /// Ends of the interval.
    pub bounds: (f64, f64),
    /// Standard error of the difference.
    pub error: f64,
    /// Degrees of freedom.
    pub degrees: f64,
}

/// Interval for the difference of two means, `of - to`, whose variances need not be equal (B. L. Welch, "The generalization of Student's
/// problem when several different population variances are involved", Biometrika 34, 1947; degrees of freedom by Satterthwaite, 1946).
/// `None` when a side has fewer than two values.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of blocks stay far below 2^53")]
pub fn two_samples(of: &[f64], to: &[f64], level: f64) -> Option<TwoSamples> {
    let difference = mean(of)? - mean(to)?;
    let part = |values: &[f64]| Some(standard_deviation(values)?.powi(2) / values.len() as f64);
    let (a, b) = (part(of)?, part(to)?);
    let error = (a + b).sqrt();
    let (n, m) = ((of.len() - 1) as f64, (to.len() - 1) as f64);
    let degrees = if error > 0.0 { (a + b).powi(2) / (a * a / n + b * b / m) } else { n + m };
    let half = t_quantile_of(f64::midpoint(1.0, level), degrees) * error;
    Some(TwoSamples { difference, bounds: (difference - half, difference + half), error, degrees })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gosset's sleep data: `t.test(extra ~ group, data = sleep)` in R gives 17.776 degrees and -3.3654832 to 0.2054832.
    #[test]
    fn the_interval_is_welchs_of_r() {
        let one = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let two = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let found = two_samples(&one, &two, 0.95).unwrap();
        assert!((found.degrees - 17.776).abs() < 0.001, "{}", found.degrees);
        let (low, high) = found.bounds;
        assert!((low + 3.365_483_2).abs() < 1e-6 && (high - 0.205_483_2).abs() < 1e-6, "{low} {high}");
    }

    #[test]
    fn samples_without_spread_or_of_one_value() {
        let found = two_samples(&[2.0, 2.0], &[1.0, 1.0], 0.95).unwrap();
        assert_eq!(found.bounds, (1.0, 1.0));
        assert_eq!(two_samples(&[2.0], &[1.0, 1.0], 0.95), None);
    }
}
