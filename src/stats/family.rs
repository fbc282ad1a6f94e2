//! Several intervals at once, and where an interval lies.

/// Coverage that each of `members` intervals must have so that all of them together hold their truths with at least `level`:
/// Bonferroni's inequality, which asks nothing of how they depend on each other (O. J. Dunn, "Multiple comparisons among means", JASA 56,
/// 1961).
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "families are small")]
pub fn level_for_family(level: f64, members: usize) -> f64 {
    1.0 - (1.0 - level) / members.max(1) as f64
}

/// Where an interval lies, seen from a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// All of it lies within: what lies in the range is shown. For a range around "no difference" this is the two
    /// one-sided tests (D. J. Schuirmann, "A comparison of the two one-sided tests procedure and the power approach", Journal of
    /// Pharmacokinetics and Biopharmaceutics 15(6), 1987), and stricter than usual: with a 95 % interval each is made at 2.5 %.
    Inside,
    /// All of it lies below.
    Below,
    /// All of it lies above.
    Above,
    /// It crosses an end: nothing is shown.
    Across,
}

/// Where `interval` lies, seen from `range`; both are (lower, upper) and closed.
#[must_use]
pub fn place(interval: (f64, f64), range: (f64, f64)) -> Place {
    if interval.0 >= range.0 && interval.1 <= range.1 {
        Place::Inside
    } else if interval.1 < range.0 {
        Place::Below
    } else if interval.0 > range.1 {
        Place::Above
    } else {
        Place::Across
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_shares_what_one_may_miss() {
        assert!((level_for_family(0.95, 1) - 0.95).abs() < 1e-12);
        assert!((level_for_family(0.95, 10) - 0.995).abs() < 1e-12);
        assert!((level_for_family(0.95, 0) - 0.95).abs() < 1e-12);
    }

    #[test]
    fn places() {
        let range = (0.95, 1.05);
        assert_eq!(place((0.96, 1.05), range), Place::Inside);
        assert_eq!(place((0.5, 0.9), range), Place::Below);
        assert_eq!(place((1.06, 1.2), range), Place::Above);
        assert_eq!(place((0.9, 1.2), range), Place::Across);
        assert_eq!(place((1.0, 1.2), range), Place::Across);
        assert_eq!(place((1.1, 1.1), (1.1, 1.1)), Place::Inside);
    }
}
