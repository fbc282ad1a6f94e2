//! The interval of the signed-rank test: what can be said without trusting the size of any single value.

use statrs::distribution::{ContinuousCDF, Normal};

/// Up to so many values the distribution of the statistic is counted out; beyond, its normal limit is close enough.
const COUNTED: usize = 60;

/// Two-sided interval for the centre of a symmetric distribution: the range between the k-th smallest and the k-th largest mean
/// of two values (Walsh averages; each value with itself as well), where k is as large as the `level` allows. (F. Wilcoxon,
/// "Individual comparisons by ranking methods", Biometrics Bulletin 1(6), 1945; the interval is Tukey's, in M. Hollander and D. A. Wolfe,
/// "Nonparametric Statistical Methods", section 3.3.) With fewer values than the level needs, six for 95 %, k is 1 and the interval,
/// from the smallest to the largest value, reaches less than it says. `None` without values or for an illegal level.
#[must_use]
pub fn signed_rank_interval(values: &[f64], level: f64) -> Option<(f64, f64)> {
    if values.is_empty() || level <= 0.0 || level >= 1.0 {
        return None;
    }
    let mut means: Vec<f64> = Vec::with_capacity(values.len() * (values.len() + 1) / 2);
    for (index, first) in values.iter().enumerate() {
        means.extend(values[index..].iter().map(|second| f64::midpoint(*first, *second)));
    }
    means.sort_by(f64::total_cmp);
    let depth = depth(values.len(), level).clamp(1, means.len().div_ceil(2));
    Some((means[depth - 1], means[means.len() - depth]))
}

/// The largest k for which the rank sum is below k with a probability of at most half of what `level` leaves.
fn depth(n: usize, level: f64) -> usize {
    let tail = (1.0 - level) / 2.0;
    if n > COUNTED {
        return limit_depth(n, tail);
    }
    let mut sum = 0.0;
    let below = probabilities(n).into_iter().take_while(|probability| {
        sum += probability;
        sum <= tail
    });
    below.count()
}

/// Probability of each rank sum 0, 1, ... of `n` values: every rank is in the sum or not, with even chances.
fn probabilities(n: usize) -> Vec<f64> {
    let mut found = vec![0.0; n * (n + 1) / 2 + 1];
    found[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..found.len()).rev() {
            let with = if sum >= rank { found[sum - rank] } else { 0.0 };
            found[sum] = f64::midpoint(found[sum], with);
        }
    }
    found
}

/// The same from the normal limit: mean n (n + 1) / 4, variance n (n + 1) (2 n + 1) / 24.
#[expect(clippy::cast_precision_loss, reason = "counts of blocks stay far below 2^53")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative")]
fn limit_depth(n: usize, tail: f64) -> usize {
    let n = n as f64;
    let variance = n * (n + 1.0) * (2.0 * n + 1.0) / 24.0;
    let place = n * (n + 1.0) / 4.0 + normal_quantile(tail) * variance.sqrt();
    (place + 0.5).floor().max(1.0) as usize
}

fn normal_quantile(probability: f64) -> f64 {
    Normal::new(0.0, 1.0).expect("0 and 1 are legal").inverse_cdf(probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Critical values of the two-sided test at 5 %, as every table has them (Hollander and Wolfe, table A.4): k is one more.
    #[test]
    fn depths_are_those_of_the_tables() {
        for (n, critical) in [(6, 0), (7, 2), (8, 3), (9, 5), (10, 8), (12, 13), (15, 25), (20, 52), (25, 89)]
        {
            assert_eq!(depth(n, 0.95), critical + 1, "{n}");
        }
        assert_eq!(depth(5, 0.95), 0);
    }

    /// Depression scores of nine patients before and after (Hollander and Wolfe, example 3.1; R's `?wilcox.test`): the rank sum of
    /// the other sign is 5, with a one-sided probability of 10 / 512 = 0.01953.
    #[test]
    fn probabilities_are_those_of_r() {
        let below: f64 = probabilities(9).iter().take(6).sum();
        assert!((below - 10.0 / 512.0).abs() < 1e-12, "{below}");
        let all: f64 = probabilities(20).iter().sum();
        assert!((all - 1.0).abs() < 1e-12);
    }

    #[test]
    fn six_values_give_the_smallest_and_the_largest() {
        let values = [0.3, -0.1, 0.2, 0.9, 0.4, 0.5];
        assert_eq!(signed_rank_interval(&values, 0.95), Some((-0.1, 0.9)));
        assert_eq!(signed_rank_interval(&[], 0.95), None);
        assert_eq!(signed_rank_interval(&values, 1.0), None);
    }

    #[test]
    fn one_wild_value_hardly_moves_the_interval_of_twelve() {
        let mut values: Vec<f64> = (0..12).map(|n| 1.0 + f64::from(n) / 100.0).collect();
        let (_, calm) = signed_rank_interval(&values, 0.95).unwrap();
        values[11] = 1_000.0;
        let (_, wild) = signed_rank_interval(&values, 0.95).unwrap();
        assert!(wild - calm < 0.02, "{calm} {wild}");
    }

    #[test]
    fn the_limit_meets_what_is_counted() {
        let counted = depth(COUNTED, 0.95);
        let limit = limit_depth(COUNTED, 0.025);
        assert!(counted.abs_diff(limit) <= 2, "{counted} {limit}");
    }
}
