//! Variance by level: what repeating more inside a group would gain, and what only more groups can.

use super::mean;

/// Variances of a balanced or unbalanced two-level layout.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Components {
    /// Between the true means of groups; 0 where the groups differ no more than their values explain.
    pub between: f64,
    /// Between the values of one group.
    pub within: f64,
}

/// Variance components of groups of repeated values, by the analysis of variance (S. R. Searle, G. Casella and C. E. `McCulloch`,
/// "Variance Components", chapter 3; for benchmarks: T. Kalibera and R. Jones, "Rigorous benchmarking in reasonable time", ISMM 2013).
/// `None` with fewer than two groups, or when no group has two values.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "counts of values stay far below 2^53")]
pub fn components(groups: &[Vec<f64>]) -> Option<Components> {
    let groups: Vec<&Vec<f64>> = groups.iter().filter(|group| !group.is_empty()).collect();
    let total = groups.iter().map(|group| group.len()).sum::<usize>();
    let (count, all) = (groups.len(), groups.iter().copied().flatten().copied().collect::<Vec<f64>>());
    if count < 2 || total <= count {
        return None;
    }
    let centre = mean(&all)?;
    let (mut inside, mut outside, mut squares) = (0.0, 0.0, 0.0);
    for group in groups {
        let own = mean(group)?;
        inside += group.iter().map(|value| (value - own).powi(2)).sum::<f64>();
        outside += group.len() as f64 * (own - centre).powi(2);
        squares += (group.len() as f64).powi(2);
    }
    let within = inside / (total - count) as f64;
    let size = (total as f64 - squares / total as f64) / (count - 1) as f64;
    let between = ((outside / (count - 1) as f64 - within) / size).max(0.0);
    Some(Components { between, within })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: means 2, 5 and 8, mean squares 27 (between, size 3) and 1 (within).
    #[test]
    fn components_of_a_small_table() {
        let groups = [vec![1.0, 2.0, 3.0], vec![4.0, 5.0, 6.0], vec![7.0, 8.0, 9.0]];
        let found = components(&groups).unwrap();
        assert!((found.within - 1.0).abs() < 1e-12);
        assert!((found.between - 26.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn groups_that_do_not_differ_have_no_variance_between_them() {
        let found = components(&[vec![1.0, 3.0], vec![2.0, 2.0], vec![3.0, 1.0]]).unwrap();
        assert!(found.between.abs() < 1e-12);
        assert_eq!(components(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(components(&[vec![1.0, 2.0]]), None);
    }
}
