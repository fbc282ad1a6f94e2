//! `design` of the file into the model's [`Design`]: names resolved, counts checked.

use indexmap::IndexMap;

use crate::model::{Blocks, Design, Factor, Level, Scalar, Treatment};
use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::suggest::{did_you_mean, one_of};
use crate::spec::tree::Node;
use crate::spec::wire::design::{BlocksFile, DesignFile, LevelFile, Levels};
use crate::spec::wire::scalar::{OneOrMany, Single};

/// Most trials of one run.
pub const MAX_TRIALS: u64 = 10_000_000;
/// Blocks without a word about them: the fewest that allow a verdict.
const DEFAULT_BLOCKS: u32 = 6;
/// Names that templates use for other things.
const RESERVED: [&str; 12] =
    ["table", "rows", "row", "environment", "loop", "true", "false", "none", "not", "and", "or", "in"];

/// Resolves the design; a list of environments becomes the first factor.
pub fn resolve(
    file: &DesignFile,
    environment: Option<&OneOrMany>,
    root: &Node,
    found: &mut Diagnostics,
) -> Design {
    let mut factors = Vec::new();
    if let Some(list) = environment.filter(|environment| environment.is_list) {
        let levels = list.values.iter().map(|name| plain_level(Scalar::Text(name.clone()))).collect();
        factors.push(Factor { name: "environment".to_owned(), levels });
    }
    for (name, levels) in &file.factors {
        factors.extend(factor(name, levels, root, found));
    }
    let mut design = Design {
        factors,
        include: Vec::new(),
        exclude: Vec::new(),
        blocks: blocks(file.blocks, root, found),
        seed: file.seed.unwrap_or(1),
    };
    for (index, partial) in file.exclude.iter().enumerate() {
        let path = format!("design.exclude.{index}");
        design.exclude.extend(group(&design, partial, &path, root, found));
    }
    for (index, full) in file.include.iter().enumerate() {
        let path = format!("design.include.{index}");
        let treatment = include(&design, full, &path, root, found);
        design.include.extend(treatment);
    }
    design
}

fn plain_level(value: Scalar) -> Level {
    Level { name: value.to_string(), value: Some(value), values: IndexMap::new() }
}

fn factor(name: &str, levels: &Levels, root: &Node, found: &mut Diagnostics) -> Option<Factor> {
    let path = format!("design.factors.{name}");
    let fits = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 40
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if !fits {
        found.push(
            root.key_problem("design.factors", name, format!("`{name}` cannot be the name of a factor"))
                .expected("a lower-case letter, then lower-case letters, digits and `_`, at most 40")
                .hint("factor names are names in templates and columns in results"),
        );
        return None;
    }
    if RESERVED.contains(&name) {
        found.push(
            root.key_problem(
                "design.factors",
                name,
                format!("the name `{name}` has a meaning of its own in templates"),
            )
            .hint("give the factor another name"),
        );
        return None;
    }
    if levels.0.is_empty() {
        found.push(
            root.problem(&path, format!("the factor `{name}` has no levels")).hint("list at least one value"),
        );
        return None;
    }
    let levels: Vec<Level> = levels.0.iter().map(|(level, value)| self::level(level, value)).collect();
    for (index, level) in levels.iter().enumerate() {
        if levels[..index].iter().any(|earlier| earlier.name == level.name) {
            found.push(root.problem(
                &format!("{path}.{index}"),
                format!("the level `{}` stands here twice", level.name),
            ));
        }
    }
    same_keys(&levels, &path, root, found);
    Some(Factor { name: name.to_owned(), levels })
}

fn level(name: &str, value: &LevelFile) -> Level {
    match value {
        LevelFile::Value(value) => {
            Level { name: name.to_owned(), value: Some(value.0.clone()), values: IndexMap::new() }
        }
        LevelFile::Values(values) => Level {
            name: name.to_owned(),
            value: None,
            values: values.iter().map(|(key, value)| (key.clone(), value.0.clone())).collect(),
        },
    }
}

/// Every named level of a factor has the same keys, or templates would fail for some treatments only.
fn same_keys(levels: &[Level], path: &str, root: &Node, found: &mut Diagnostics) {
    let mut all: Vec<&str> =
        levels.iter().flat_map(|level| level.values.keys().map(String::as_str)).collect();
    all.sort_unstable();
    all.dedup();
    for level in levels {
        if let Some(missing) = all.iter().find(|key| !level.values.contains_key(**key)) {
            let problem =
                root.key_problem(path, &level.name, format!("the level `{}` has no `{missing}`", level.name));
            found.push(problem.expected(format!(
                "every level with {}",
                one_of(all.iter().copied()).replace(" or ", " and ")
            )));
        }
    }
}

fn blocks(file: Option<BlocksFile>, root: &Node, found: &mut Diagnostics) -> Blocks {
    let blocks = match file {
        None => Blocks { min: DEFAULT_BLOCKS, max: DEFAULT_BLOCKS, until: None, budget: None },
        Some(BlocksFile::Fixed(number)) => Blocks { min: number, max: number, until: None, budget: None },
        Some(BlocksFile::Until(rule)) => Blocks {
            min: rule.min.unwrap_or_else(|| DEFAULT_BLOCKS.min(rule.max)),
            max: rule.max,
            until: rule.until.map(|share| share.0),
            budget: rule.budget.map(|span| span.0),
        },
    };
    if blocks.min == 0 {
        found.push(
            root.problem("design.blocks", "at least one block is needed")
                .hint("6 is the fewest that allow a verdict"),
        );
    }
    if blocks.min > blocks.max {
        let message = format!("min {} is greater than max {}", blocks.min, blocks.max);
        found.push(root.problem("design.blocks.min", message));
    }
    blocks
}

/// Factor and level indexes of a map from factor names to level names; `None` when one is unknown.
pub fn group(
    design: &Design,
    map: &IndexMap<String, Single>,
    path: &str,
    root: &Node,
    found: &mut Diagnostics,
) -> Option<Vec<(usize, usize)>> {
    let mut pairs = Vec::new();
    let mut fine = true;
    for (name, value) in map {
        match level_of(design, name, &value.0.to_string()) {
            Ok(pair) => pairs.push(pair),
            Err(problem) => {
                found.push(problem.at(root, path, name));
                fine = false;
            }
        }
    }
    pairs.sort_unstable();
    fine.then_some(pairs)
}

/// A factor or level that does not exist.
pub struct UnknownLevel {
    message: String,
    expected: String,
    hint: Option<String>,
    /// Whether the factor's name is wrong, not the level's.
    factor: bool,
}

impl UnknownLevel {
    fn at(self, root: &Node, path: &str, name: &str) -> Diagnostic {
        let problem = if self.factor {
            root.key_problem(path, name, self.message)
        } else {
            root.problem(&format!("{path}.{name}"), self.message)
        };
        problem.expected(self.expected).maybe_hint(self.hint)
    }

    /// The same at another place.
    pub fn diagnostic(self, place: crate::spec::tree::Place) -> Diagnostic {
        Diagnostic::new(place, self.message).expected(self.expected).maybe_hint(self.hint)
    }
}

/// Indexes of a factor and its level by their names.
///
/// # Errors
/// What is unknown, with what would be right.
pub fn level_of(design: &Design, factor: &str, level: &str) -> Result<(usize, usize), UnknownLevel> {
    let factors = || design.factors.iter().map(|factor| factor.name.as_str());
    let Some(index) = factors().position(|name| name == factor) else {
        return Err(UnknownLevel {
            message: format!("there is no factor `{factor}`"),
            expected: one_of(factors()),
            hint: did_you_mean(factor, factors()),
            factor: true,
        });
    };
    let levels = || design.factors[index].levels.iter().map(|level| level.name.as_str());
    levels().position(|name| name == level).map(|level| (index, level)).ok_or_else(|| UnknownLevel {
        message: format!("the factor `{factor}` has no level `{level}`"),
        expected: one_of(levels()),
        hint: did_you_mean(level, levels()),
        factor: false,
    })
}

fn include(
    design: &Design,
    map: &IndexMap<String, Single>,
    path: &str,
    root: &Node,
    found: &mut Diagnostics,
) -> Option<Treatment> {
    let pairs = group(design, map, path, root, found)?;
    if let Some(factor) = design.factors.iter().find(|factor| !map.contains_key(&factor.name)) {
        found.push(
            root.problem(path, format!("this treatment has no level for the factor `{}`", factor.name))
                .expected("one level for every factor"),
        );
        return None;
    }
    Some(Treatment { levels: pairs.into_iter().map(|(_, level)| level).collect() })
}

/// Keeps only the levels named by `--only factor=level`.
///
/// # Errors
/// The option that is wrong.
pub fn restrict(design: &mut Design, only: &[(String, String)]) -> Result<(), (usize, UnknownLevel)> {
    let mut kept: Vec<Vec<usize>> = vec![Vec::new(); design.factors.len()];
    for (option, (factor, level)) in only.iter().enumerate() {
        let (factor, level) = level_of(design, factor, level).map_err(|problem| (option, problem))?;
        kept[factor].push(level);
    }
    for (index, levels) in kept.iter_mut().enumerate() {
        if levels.is_empty() {
            levels.extend(0..design.factors[index].levels.len());
        }
        levels.sort_unstable();
        levels.dedup();
    }
    let new_index = |factor: usize, level: usize| kept[factor].iter().position(|kept| *kept == level);
    design.exclude = std::mem::take(&mut design.exclude)
        .into_iter()
        .filter_map(|pairs| {
            pairs
                .into_iter()
                .map(|(factor, level)| new_index(factor, level).map(|level| (factor, level)))
                .collect()
        })
        .collect();
    design.include = std::mem::take(&mut design.include)
        .into_iter()
        .filter_map(|treatment| {
            let levels =
                treatment.levels.into_iter().enumerate().map(|(factor, level)| new_index(factor, level));
            levels.collect::<Option<Vec<_>>>().map(|levels| Treatment { levels })
        })
        .collect();
    for (factor, levels) in design.factors.iter_mut().zip(&kept) {
        factor.levels = levels.iter().map(|level| factor.levels[*level].clone()).collect();
    }
    Ok(())
}

/// The treatments of a design, made one by one: the crossing with the last factor running fastest, without
/// what is excluded, then what is included.
pub fn treatments(design: &Design) -> impl Iterator<Item = Treatment> + '_ {
    let counts: Vec<usize> = design.factors.iter().map(|factor| factor.levels.len()).collect();
    let mut next = counts.iter().all(|count| *count > 0).then(|| vec![0; counts.len()]);
    let crossing = std::iter::from_fn(move || {
        let current = next.take()?;
        let mut following = current.clone();
        for (digit, count) in following.iter_mut().zip(&counts).rev() {
            *digit += 1;
            if *digit < *count {
                next = Some(following);
                break;
            }
            *digit = 0;
        }
        Some(Treatment { levels: current })
    });
    let crossing = crossing.filter(|treatment| !is_excluded(design, treatment));
    // What is included and not excluded is in the crossing already.
    let added = design.include.iter().filter(|treatment| is_excluded(design, treatment));
    crossing.chain(added.cloned())
}

fn is_excluded(design: &Design, treatment: &Treatment) -> bool {
    let matches =
        |pairs: &Vec<(usize, usize)>| pairs.iter().all(|(factor, level)| treatment.levels[*factor] == *level);
    design.exclude.iter().any(matches)
}

/// A design that cannot be run as a whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountProblem {
    /// More trials than a run can have; the sentence says what makes so many.
    #[error("{0}")]
    TooMany(String),
    /// Everything is excluded.
    #[error("no treatment is left: everything is excluded")]
    Nothing,
}

impl CountProblem {
    /// The problem at its place in the file.
    #[must_use]
    pub fn diagnostic(&self, root: &Node) -> Diagnostic {
        match self {
            Self::TooMany(_) => root
                .problem("design.factors", self.to_string())
                .expected("at most 10,000,000 trials")
                .hint("vary fewer things at once, or take levels out"),
            Self::Nothing => root
                .problem("design.exclude", self.to_string())
                .hint("exclude combinations, not whole levels"),
        }
    }
}

/// Number of treatments and trials.
///
/// # Errors
/// Says what makes too many, or that there are none.
pub fn count(design: &Design) -> Result<(u64, u64), CountProblem> {
    let sizes: Vec<String> =
        design.factors.iter().map(|factor| format!("{} ({})", factor.name, factor.levels.len())).collect();
    let product = design
        .factors
        .iter()
        .try_fold(1_u64, |product, factor| product.checked_mul(factor.levels.len() as u64));
    let too_many = |number: Option<u64>, what: &str| {
        let number = number.map_or_else(|| "more than 10^19".to_owned(), |number| number.to_string());
        format!("the design has {number} {what}: {} levels", sizes.join(" x "))
    };
    let crossing = product
        .filter(|product| *product <= MAX_TRIALS)
        .ok_or_else(|| CountProblem::TooMany(too_many(product, "combinations")))?;
    let count = if design.exclude.is_empty() { crossing } else { treatments(design).count() as u64 };
    if count == 0 {
        return Err(CountProblem::Nothing);
    }
    let trials = count.checked_mul(design.blocks.max.into());
    trials.filter(|trials| *trials <= MAX_TRIALS).map(|trials| (count, trials)).ok_or_else(|| {
        CountProblem::TooMany(format!("{} in {} blocks", too_many(trials, "trials"), design.blocks.max))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design(counts: &[usize]) -> Design {
        let level = |number: usize| plain_level(Scalar::Int(i64::try_from(number).expect("small")));
        let factor = |(index, count): (usize, &usize)| Factor {
            name: format!("f{index}"),
            levels: (0..*count).map(level).collect(),
        };
        Design {
            factors: counts.iter().enumerate().map(factor).collect(),
            include: vec![],
            exclude: vec![],
            blocks: Blocks { min: 1, max: 1, until: None, budget: None },
            seed: 1,
        }
    }

    #[test]
    fn treatments_are_the_crossing_without_what_is_excluded() {
        let mut design = design(&[2, 3]);
        assert_eq!(treatments(&design).count(), 6);
        design.exclude.push(vec![(0, 1), (1, 2)]);
        let all: Vec<_> = treatments(&design).map(|treatment| treatment.levels).collect();
        assert_eq!(all, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]].map(|levels| levels.to_vec()));
        assert_eq!(count(&design), Ok((5, 5)));
        assert_eq!(treatments(&self::design(&[])).count(), 1);
    }

    #[test]
    fn too_many_trials_are_named_by_their_factors() {
        let message = count(&design(&[1000, 1000, 1000])).expect_err("too many");
        assert_eq!(
            message.to_string(),
            "the design has 1000000000 combinations: f0 (1000) x f1 (1000) x f2 (1000) levels"
        );
        assert!(count(&design(&[100_000; 5])).is_err_and(|problem| problem.to_string().contains("10^19")));
    }

    #[test]
    fn only_keeps_levels() {
        let mut design = design(&[2, 3]);
        design.exclude.push(vec![(1, 2)]);
        let only = [("f1".to_owned(), "2".to_owned()), ("f1".to_owned(), "0".to_owned())];
        assert!(restrict(&mut design, &only).is_ok());
        assert_eq!(design.factors[1].levels.len(), 2);
        assert_eq!(design.exclude, [vec![(1, 1)]]);
        assert!(restrict(&mut design, &[("x".to_owned(), "2".to_owned())]).is_err());
    }
}
