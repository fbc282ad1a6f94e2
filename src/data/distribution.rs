//! Zipf, normal and weighted draws.
//!
//! Transcendental functions come from `libm`, not from the platform, so that results are the same bits everywhere.

use super::random::Draws;

/// Zipf's distribution over `1..=n` with probability of `k` proportional to `k^-exponent`.
///
/// Sampled by rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", ACM TOMACS 6(3), 1996. Constant time for every `n`, no table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Zipf {
    last: u64,
    n: f64,
    exponent: f64,
    integral_first: f64,
    integral_last: f64,
    shortcut: f64,
}

impl Zipf {
    /// `n` at least 1, `exponent` above 0.
    #[expect(clippy::cast_precision_loss, reason = "ranks above 2^53 have no visible share")]
    pub(super) fn new(n: u64, exponent: f64) -> Self {
        let (last, n) = (n, n as f64);
        let mut zipf = Self { last, n, exponent, integral_first: 0.0, integral_last: 0.0, shortcut: 0.0 };
        zipf.integral_first = zipf.integral(1.5) - 1.0;
        zipf.integral_last = zipf.integral(n + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    /// A rank, from 1.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ranks are clamped to 1..=n")]
    pub(super) fn rank(&self, draws: &mut Draws) -> u64 {
        loop {
            let area = self.integral_last + draws.unit() * (self.integral_first - self.integral_last);
            let place = self.inverse(area);
            let rank = libm::floor(place + 0.5).clamp(1.0, self.n);
            if rank - place <= self.shortcut || area >= self.integral(rank + 0.5) - self.density(rank) {
                // Above 2^53 the float may be rounded beyond the last rank.
                return (rank as u64).min(self.last);
            }
        }
    }

    /// The density `x^-exponent`.
    fn density(&self, x: f64) -> f64 {
        libm::exp(-self.exponent * libm::log(x))
    }

    /// Integral of the density, `(x^(1 - exponent) - 1) / (1 - exponent)`, stable near exponent 1.
    fn integral(&self, x: f64) -> f64 {
        let log = libm::log(x);
        let power = (1.0 - self.exponent) * log;
        let factor = if power.abs() > 1e-8 { libm::expm1(power) / power } else { 1.0 + power / 2.0 };
        factor * log
    }

    /// Inverse of [`Self::integral`].
    fn inverse(&self, area: f64) -> f64 {
        let power = (area * (1.0 - self.exponent)).max(-1.0);
        let factor = if power.abs() > 1e-8 { libm::log1p(power) / power } else { 1.0 - power / 2.0 };
        libm::exp(factor * area)
    }
}

/// A standard normal number by the method of Box and Muller (1958), one of the pair.
pub(super) fn normal(draws: &mut Draws) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(draws.positive_unit()));
    radius * libm::cos(std::f64::consts::TAU * draws.unit())
}

/// Picks an index with probability proportional to its weight.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weights {
    /// Sums up to and including each index.
    sums: Vec<f64>,
}

impl Weights {
    /// `None` unless every weight is finite, none is negative and one is above 0.
    pub(super) fn new(weights: &[f64]) -> Option<Self> {
        let usable = weights.iter().all(|weight| weight.is_finite() && *weight >= 0.0);
        let sums: Vec<f64> = weights
            .iter()
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        let total = sums.last().copied().unwrap_or(0.0);
        (usable && total > 0.0 && total.is_finite()).then_some(Self { sums })
    }

    /// An index.
    pub(super) fn pick(&self, draws: &mut Draws) -> usize {
        let total = self.sums.last().copied().unwrap_or(0.0);
        let place = draws.unit() * total;
        let index = self.sums.partition_point(|sum| *sum <= place);
        // Rounding can reach the total; the last index that has a weight is meant then.
        index.min(self.sums.partition_point(|sum| *sum < total))
    }
}

#[cfg(test)]
mod tests {
    use super::super::random::Stream;
    use super::*;

    fn draws() -> Draws {
        Stream::of_column(3, "d").at(0)
    }

    #[test]
    fn zipf_frequencies_match_the_definition() {
        for exponent in [0.5, 1.0, 1.5] {
            let zipf = Zipf::new(10, exponent);
            let mut draws = draws();
            let mut counts = [0_u32; 10];
            for _ in 0..100_000 {
                counts[usize::try_from(zipf.rank(&mut draws)).expect("rank") - 1] += 1;
            }
            let total: f64 = (1..=10).map(|k| f64::from(k).powf(-exponent)).sum();
            for (k, count) in (1..=10).zip(counts) {
                let expected = f64::from(k).powf(-exponent) / total * 100_000.0;
                assert!(
                    (f64::from(count) - expected).abs() < 5.0 * expected.sqrt(),
                    "{exponent} {k} {count}"
                );
            }
        }
    }

    #[test]
    fn zipf_ends_at_extreme_parameters() {
        for exponent in [1e-9, 0.5, 1.0 - 1e-12, 1.0, 1.0 + 1e-12, 2.0, 20.0, 100.0] {
            for n in [1, 2, 3, 1 << 53, u64::MAX] {
                let zipf = Zipf::new(n, exponent);
                let mut draws = draws();
                assert!((0..1000).all(|_| (1..=n).contains(&zipf.rank(&mut draws))), "{n} {exponent}");
            }
        }
    }

    #[test]
    fn zipf_of_one_is_one() {
        assert_eq!(Zipf::new(1, 1.0).rank(&mut draws()), 1);
    }

    #[test]
    fn normal_has_mean_0_and_variance_1() {
        let mut draws = draws();
        let numbers: Vec<f64> = (0..100_000).map(|_| normal(&mut draws)).collect();
        let mean = numbers.iter().sum::<f64>() / 100_000.0;
        let variance = numbers.iter().map(|number| number * number).sum::<f64>() / 100_000.0;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
    }

    #[test]
    fn weights_are_kept_and_zero_never_comes() {
        let weights = Weights::new(&[1.0, 0.0, 3.0, 0.0]).expect("usable");
        let mut draws = draws();
        let mut counts = [0_u32; 4];
        for _ in 0..40_000 {
            counts[weights.pick(&mut draws)] += 1;
        }
        assert_eq!((counts[1], counts[3]), (0, 0));
        assert!((9_500..10_500).contains(&counts[0]), "{counts:?}");
        assert!(Weights::new(&[0.0]).is_none() && Weights::new(&[f64::NAN]).is_none());
    }
}
