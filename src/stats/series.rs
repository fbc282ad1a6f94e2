//! Values that follow each other in time and are not independent.

use super::mean;

/// How many independent values say as much about the mean as this series does. Neighbours in time resemble each other, so the
/// variance of the mean is larger than that of as many independent values by the sum of all autocorrelations; these are added in pairs for
/// as long as a pair is positive (the initial positive sequence of C. J. Geyer, "Practical Markov chain Monte Carlo", Statistical Science
/// 7(4), 1992). Never more than the number of values, however much neighbours differ. `None` with fewer than four values or when all are equal.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of values stay far below 2^53")]
pub fn effective_size(series: &[f64]) -> Option<f64> {
    let n = series.len();
    let centre = mean(series)?;
    let covariance = |lag: usize| {
        let products = series.iter().zip(&series[lag..]).map(|(a, b)| (a - centre) * (b - centre));
        products.sum::<f64>() / n as f64
    };
    let variance = covariance(0);
    if n < 4 || variance <= 0.0 || !variance.is_finite() {
        return None;
    }
    let pairs = (0..n / 2).map(|pair| (covariance(2 * pair) + covariance(2 * pair + 1)) / variance);
    let positive: f64 = pairs.take_while(|pair| *pair > 0.0).sum();
    Some(n as f64 / (2.0 * positive - 1.0).max(1.0))
}

/// Standard error of the mean of a series relative to the mean, autocorrelation counted. `None` as above or for a mean that is not
/// positive.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of values stay far below 2^53")]
pub fn relative_error(series: &[f64]) -> Option<f64> {
    let size = effective_size(series)?;
    let centre = mean(series).filter(|centre| *centre > 0.0)?;
    let squares: f64 = series.iter().map(|value| (value - centre).powi(2)).sum();
    Some((squares / (series.len() - 1) as f64 / size).sqrt() / centre)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between -0.5 and 0.5 from a congruential generator (D. E. Knuth's MMIX).
    fn noise(count: usize) -> Vec<f64> {
        let mut state = 42_u64;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            f64::from(u32::try_from(state >> 32).expect("32 bits are left")) / f64::from(u32::MAX) - 0.5
        };
        (0..count).map(next).collect()
    }

    /// For x(t) = phi x(t-1) + noise the size is n (1 - phi) / (1 + phi).
    #[test]
    fn an_autoregressive_series_has_the_size_theory_gives() {
        for (phi, expected) in [(0.0, 1.0), (0.5, 1.0 / 3.0), (0.8, 1.0 / 9.0)] {
            let mut last = 0.0;
            let follow = |noise| {
                last = phi * last + noise;
                last
            };
            let series: Vec<f64> = noise(20_000).into_iter().map(follow).collect();
            let share = effective_size(&series).unwrap() / 20_000.0;
            assert!((share / expected - 1.0).abs() < 0.15, "{phi}: {share}");
        }
    }

    #[test]
    fn a_series_that_goes_to_and_fro_counts_no_more_than_its_values() {
        let series: Vec<f64> = (0..20).map(|n| 10.0 + f64::from(n % 2)).collect();
        assert_eq!(effective_size(&series), Some(20.0));
        assert!(relative_error(&series).unwrap() < 0.02);
        assert_eq!(effective_size(&[1.0; 9]), None);
        assert_eq!(effective_size(&[1.0, 2.0, 3.0]), None);
    }
}
