//! Pairs of trials of one block, and the mean log ratio of every block.

use std::collections::BTreeMap;

use crate::model::Group;
use crate::stats::mean;

/// Valid values of one number: level index of every factor, to block, to value.
pub(super) type Values = BTreeMap<Vec<usize>, BTreeMap<u32, f64>>;

/// Mean log ratio of every block over the combinations of the other factors. Each combination's own mean is taken out first and
/// the mean of these means put back, so that a block in which a pair is missing is not judged by the combinations it has left;
/// without missing pairs this is the plain mean. (Additive two-way layout: G. W. Snedecor and W. G. Cochran, "Statistical
/// Methods", chapter on two-way classifications.)
///
/// This is also the two-level model: trials within a block are averaged before anything is said, and blocks are what is counted.
pub(super) fn block_means(combinations: &[Vec<(u32, f64)>]) -> Vec<f64> {
    let mut centres = Vec::new();
    let mut residuals: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for pairs in combinations {
        let logs: Vec<f64> = pairs.iter().map(|(_, log)| *log).collect();
        let Some(centre) = mean(&logs) else { continue };
        centres.push(centre);
        for (block, log) in pairs {
            residuals.entry(*block).or_default().push(log - centre);
        }
    }
    let all = mean(&centres).unwrap_or_default();
    residuals.values().filter_map(|logs| Some(all + mean(logs)?)).collect()
}

/// Pairs of two groups of treatments.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pairing {
    /// For each pair of treatments: block, value of the one, value of the other.
    pub(super) combinations: Vec<Vec<(u32, f64, f64)>>,
    /// Pairs that there would be if every trial were valid.
    pub(super) possible: usize,
    /// Whether the treatments of a pair are alike in every factor that neither group names. Where the design has no such
    /// treatments, all are paired with all.
    pub(super) alike: bool,
}

/// Pairs every treatment of `of` with every treatment of `to` that is like it in the factors that neither group names.
pub(super) fn pair_groups(values: &Values, of: &Group, to: &Group) -> Pairing {
    let named = |factor: usize| of.levels.iter().chain(&to.levels).any(|(index, _)| *index == factor);
    let alike = |a: &[usize], b: &[usize]| (0..a.len()).all(|factor| named(factor) || a[factor] == b[factor]);
    let ours: Vec<_> = values.iter().filter(|(treatment, _)| of.holds(treatment)).collect();
    let theirs: Vec<_> = values.iter().filter(|(treatment, _)| to.holds(treatment)).collect();
    let mut like = true;
    let mut chosen = choose(&ours, &theirs, alike);
    if chosen.is_empty() {
        like = false;
        chosen = choose(&ours, &theirs, |_, _| true);
    }
    let mut possible = 0;
    let combinations = chosen.into_iter().map(|(a, b)| {
        possible += a.keys().chain(b.keys()).collect::<std::collections::BTreeSet<_>>().len();
        a.iter().filter_map(|(block, value)| Some((*block, *value, *b.get(block)?))).collect()
    });
    let combinations: Vec<Vec<_>> = combinations.collect();
    Pairing { combinations, possible, alike: like }
}

type Treatment<'a> = (&'a Vec<usize>, &'a BTreeMap<u32, f64>);
type Both<'a> = (&'a BTreeMap<u32, f64>, &'a BTreeMap<u32, f64>);

fn choose<'a>(
    ours: &[Treatment<'a>],
    theirs: &[Treatment<'a>],
    like: impl Fn(&[usize], &[usize]) -> bool,
) -> Vec<Both<'a>> {
    let mut chosen = Vec::new();
    for (a, values) in ours {
        let partners = theirs.iter().filter(|(b, _)| *a != *b && like(a, b));
        chosen.extend(partners.map(|(_, others)| (*values, *others)));
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        assert!(found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
    }

    #[test]
    fn whole_blocks_have_plain_means() {
        close(&block_means(&[vec![(0, 1.0), (1, 2.0)], vec![(0, 5.0), (1, 8.0)]]), &[3.0, 5.0]);
    }

    #[test]
    fn a_missing_pair_does_not_shift_its_block() {
        let whole: Vec<(u32, f64)> = (0..3).map(|block| (block, 0.0)).collect();
        close(&block_means(&[whole, vec![(0, 4.0), (2, 4.0)]]), &[2.0, 2.0, 2.0]);
    }

    fn values(treatments: &[(&[usize], f64)]) -> Values {
        let blocks = |value: f64| BTreeMap::from([(0, value), (1, value)]);
        treatments.iter().map(|(levels, value)| (levels.to_vec(), blocks(*value))).collect()
    }

    #[test]
    fn partners_are_alike_in_what_neither_group_names() {
        let values = values(&[(&[0, 0], 1.0), (&[0, 1], 10.0), (&[1, 0], 2.0), (&[1, 1], 20.0)]);
        let group = |level| Group { levels: vec![(0, level)] };
        let found = pair_groups(&values, &group(1), &group(0));
        assert_eq!(found.combinations, [[(0, 2.0, 1.0), (1, 2.0, 1.0)], [(0, 20.0, 10.0), (1, 20.0, 10.0)]]);
        assert_eq!((found.possible, found.alike), (4, true));
    }

    #[test]
    fn without_partners_that_are_alike_all_are_paired() {
        let values = values(&[(&[0, 0], 1.0), (&[1, 1], 2.0)]);
        let group = |level| Group { levels: vec![(0, level)] };
        let found = pair_groups(&values, &group(1), &group(0));
        assert_eq!((found.combinations.len(), found.alike), (1, false));
    }
}
