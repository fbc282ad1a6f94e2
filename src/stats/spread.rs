//! Centre and spread of a few numbers.

/// Arithmetic mean; `None` for no values.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of values stay far below 2^53")]
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The middle value, or the mean of the two middle ones; `None` for no values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Quantile by linear interpolation between order statistics: definition 7 of R. J. Hyndman and Y. Fan,
/// "Sample Quantiles in Statistical Packages", The American Statistician 50(4), 1996 (the default of R and `NumPy`).
/// `None` for no values or a `probability` outside 0 to 1.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of values stay far below 2^53")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 <= place <= len - 1")]
pub fn quantile(values: &[f64], probability: f64) -> Option<f64> {
    if values.is_empty() || !(0.0..=1.0).contains(&probability) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = probability * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = place.ceil() as usize;
    Some(sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64))
}

/// Range over median, `(max - min) / median`: every value counts and nothing is assumed about their distribution, which is
/// what can be said honestly about a handful of blocks. `None` with fewer than two values or a median that is not positive.
#[must_use]
pub fn relative_range(values: &[f64]) -> Option<f64> {
    let centre = median(values).filter(|centre| *centre > 0.0)?;
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    (values.len() > 1).then_some((high - low) / centre)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_even_and_none() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    /// R 4: `quantile(c(1, 2, 4, 7, 11), c(0.1, 0.25, 0.9))` gives 1.4, 2.0, 9.4.
    #[test]
    fn quantiles_are_those_of_r() {
        let values = [11.0, 1.0, 7.0, 2.0, 4.0];
        for (probability, expected) in [(0.1, 1.4), (0.25, 2.0), (0.9, 9.4), (0.0, 1.0), (1.0, 11.0)] {
            let found = quantile(&values, probability).unwrap();
            assert!((found - expected).abs() < 1e-12, "{probability}: {found}");
        }
        assert_eq!(quantile(&values, 1.1), None);
    }

    #[test]
    fn range_over_median() {
        assert_eq!(relative_range(&[90.0, 100.0, 120.0]), Some(0.3));
        assert_eq!(relative_range(&[90.0]), None);
        assert_eq!(relative_range(&[0.0, 0.0]), None);
    }

    #[test]
    fn mean_of_some_and_none() {
        assert_eq!(mean(&[1.0, 2.0, 6.0]), Some(3.0));
        assert_eq!(mean(&[]), None);
    }
}
