//! A claim as written today, held against a run of another day: levels are found by name, not by place.

use crate::model::{Claim, Contrast, Design, Group, Statement};

/// The claim with the places its levels have in the design of a run.
///
/// # Errors
/// Which level the run does not have, in words.
pub fn rebound(claim: &Claim, written: &Design, measured: &Design) -> Result<Claim, String> {
    let group = |of: &Group| {
        let levels = of.levels.iter().map(|(factor, level)| place(*factor, *level, written, measured));
        levels.collect::<Result<Vec<_>, _>>().map(|levels| Group { levels })
    };
    let contrast = |of: &Contrast| Ok::<_, String>(Contrast { of: group(&of.of)?, to: group(&of.to)? });
    let statement = match &claim.statement {
        Statement::Ratio(of) => Statement::Ratio(contrast(of)?),
        Statement::NoDifference { contrast: of, margin } => {
            Statement::NoDifference { contrast: contrast(of)?, margin: *margin }
        }
        Statement::Order(groups) => Statement::Order(groups.iter().map(group).collect::<Result<_, _>>()?),
        Statement::Absolute(of) => Statement::Absolute(group(of)?),
        Statement::NotComparable(reason) => Statement::NotComparable(reason.clone()),
    };
    Ok(Claim { statement, ..claim.clone() })
}

/// Places of a factor and its level in the run's design.
fn place(factor: usize, level: usize, written: &Design, measured: &Design) -> Result<(usize, usize), String> {
    let factor = &written.factors[factor];
    let level = &factor.levels[level];
    let lacks = |what: &str| format!("the run has no {}={}{what}", factor.name, level.name);
    let at = measured.factors.iter().position(|other| other.name == factor.name).ok_or_else(|| lacks(""))?;
    let mut levels = measured.factors[at].levels.iter();
    match levels.position(|other| other.name == level.name) {
        Some(found) if measured.factors[at].levels[found] == *level => Ok((at, found)),
        Some(_) => Err(lacks(" that means what it means now")),
        None => Err(lacks("")),
    }
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;

    use super::*;
    use crate::model::{Blocks, ClaimSource, Factor, Level, Reading, Scalar};

    fn design(factors: &[(&str, &[&str])]) -> Design {
        let level = |name: &&str| Level {
            name: (*name).to_owned(),
            value: Some(Scalar::Text((*name).to_owned())),
            values: IndexMap::new(),
        };
        let factor = |(name, levels): &(&str, &[&str])| Factor {
            name: (*name).to_owned(),
            levels: levels.iter().map(level).collect(),
        };
        Design {
            factors: factors.iter().map(factor).collect(),
            include: Vec::new(),
            exclude: Vec::new(),
            blocks: Blocks { min: 6, max: 6, until: None, budget: None },
            seed: 1,
        }
    }

    fn order(groups: &[&[(usize, usize)]]) -> Claim {
        let groups = groups.iter().map(|levels| Group { levels: levels.to_vec() }).collect();
        Claim {
            id: "c".to_owned(),
            source_id: "s".to_owned(),
            source: ClaimSource { title: String::new(), author: None, date: None, system: None, url: None },
            quote: None,
            reading: Reading::AsPublished,
            metric: None,
            statement: Statement::Order(groups),
            published: None,
            raw: None,
            needs: IndexMap::new(),
            confounds: None,
        }
    }

    #[test]
    fn levels_are_found_by_name_wherever_they_stand() {
        let written = design(&[("a", &["x", "y"]), ("b", &["u", "v"])]);
        let measured = design(&[("b", &["v"]), ("c", &["w"]), ("a", &["y", "x"])]);
        let found = rebound(&order(&[&[(0, 0), (1, 1)], &[(0, 1)]]), &written, &measured).unwrap();
        let Statement::Order(groups) = found.statement else { unreachable!() };
        assert_eq!((&groups[0].levels, &groups[1].levels), (&vec![(2, 1), (0, 0)], &vec![(2, 0)]));
    }

    #[test]
    fn a_level_that_is_gone_or_means_something_else_is_named() {
        let written = design(&[("a", &["x", "y"])]);
        let claim = order(&[&[(0, 1)]]);
        let refused = |measured: &Design| rebound(&claim, &written, measured).unwrap_err();
        assert_eq!(refused(&design(&[("a", &["x"])])), "the run has no a=y");
        assert_eq!(refused(&design(&[("b", &["y"])])), "the run has no a=y");
        let mut other = design(&[("a", &["y"])]);
        other.factors[0].levels[0].value = None;
        assert_eq!(refused(&other), "the run has no a=y that means what it means now");
    }
}
