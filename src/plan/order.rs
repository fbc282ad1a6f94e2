//! The plan: all treatments, and all trials in running order.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::shuffle::{control_place, permutation};
use crate::model::{Design, PlannedTrial, Treatment};

/// Most treatments a plan can have, and most cells of the crossing before exclusion.
pub const MAX_TREATMENTS: u64 = 10_000_000;
/// Most trials a plan can have.
pub const MAX_TRIALS: u64 = 10_000_000;

/// A design worked out: which treatments there are and in which order their trials are run.
///
/// Nothing is stored per trial. Treatments are numbers of cells of the full crossing (the last factor
/// varies fastest), less the excluded ones, then the included ones that the crossing does not have.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Number of levels of each factor.
    radix: Vec<usize>,
    crossed: Crossed,
    included: Vec<Treatment>,
    blocks: u32,
    seed: u64,
    treatments: u32,
    /// The treatment that each block runs a second time.
    control: Option<u32>,
}

/// The cells of the crossing that are kept.
#[derive(Debug, Clone)]
enum Crossed {
    /// All of them.
    All(u32),
    /// These, in order.
    Kept(Vec<u32>),
}

/// Why a design makes no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A factor without levels.
    #[error("factor `{factor}` has no level")]
    NoLevel {
        /// Its name.
        factor: String,
    },
    /// More treatments or trials than a plan may have; also when the number does not fit in 64 bits.
    #[error("the design has {count} {what}, more than the {limit} a plan may have: {hint}")]
    TooMany {
        /// How many, in words.
        count: String,
        /// `treatments` or `trials`.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// What to do.
        hint: String,
    },
    /// Everything is excluded.
    #[error("no treatment is left: `exclude` takes out all of them")]
    NoTreatment,
    /// A treatment or exclusion names a factor or level that does not exist.
    #[error("entry {entry} of `{list}` names a factor or level that the design does not have")]
    UnknownLevel {
        /// `include` or `exclude`.
        list: &'static str,
        /// Which entry, from 1.
        entry: usize,
    },
    /// `blocks` that cannot be run.
    #[error(
        "blocks: {min} to {max} is no range: the least must be 1 or more, and the most not below the least"
    )]
    Blocks {
        /// Smallest number.
        min: u32,
        /// Largest number.
        max: u32,
    },
}

impl Plan {
    /// Works out a design.
    ///
    /// # Errors
    /// See [`PlanError`].
    pub fn new(design: &Design) -> Result<Self, PlanError> {
        if let Some(factor) = design.factors.iter().find(|factor| factor.levels.is_empty()) {
            return Err(PlanError::NoLevel { factor: factor.name.clone() });
        }
        if design.blocks.min == 0 || design.blocks.max < design.blocks.min {
            return Err(PlanError::Blocks { min: design.blocks.min, max: design.blocks.max });
        }
        check_levels(design)?;
        let radix: Vec<usize> = design.factors.iter().map(|factor| factor.levels.len()).collect();
        let cells = cells(design, &radix)?;
        let crossed = if design.exclude.is_empty() {
            Crossed::All(cells)
        } else {
            let excluded = |cell: &u32| is_excluded(&design.exclude, &radix, *cell);
            Crossed::Kept((0..cells).filter(|cell| !excluded(cell)).collect())
        };
        let included = included(design, &radix, &crossed);
        let count = crossed.len() + included.len() as u64;
        check_trials(count, design.blocks.max)?;
        let treatments = u32::try_from(count).map_err(|_| too_many(Some(count), design))?;
        Ok(Self {
            radix,
            crossed,
            included,
            blocks: design.blocks.max,
            seed: design.seed,
            treatments,
            control: None,
        })
    }

    /// The same plan with one control trial in each block, a second trial of treatment number `index`, at a random place.
    /// The order of the other trials stays as it is.
    ///
    /// # Panics
    /// When `index` is not below [`Plan::treatments`].
    #[must_use]
    pub fn with_control(mut self, index: u64) -> Self {
        let known = u32::try_from(index).ok().filter(|index| *index < self.treatments);
        self.control = Some(known.expect("it is the number of a treatment"));
        self
    }

    /// Number of the treatment that each block runs a second time, if any does.
    #[must_use]
    pub fn control(&self) -> Option<u64> {
        self.control.map(u64::from)
    }

    /// Number of treatments.
    #[must_use]
    pub fn treatments(&self) -> u64 {
        u64::from(self.treatments)
    }

    /// Number of trials of all blocks that may be run, with the control trials.
    #[must_use]
    pub fn trials(&self) -> u64 {
        self.block_size() * u64::from(self.blocks)
    }

    /// Number of control trials of all blocks that may be run.
    #[must_use]
    pub fn controls(&self) -> u64 {
        if self.control.is_some() { u64::from(self.blocks) } else { 0 }
    }

    /// Number of trials of a block.
    #[must_use]
    pub fn block_size(&self) -> u64 {
        self.treatments() + u64::from(self.control.is_some())
    }

    /// Number of blocks that may be run.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.blocks
    }

    /// Treatment number `index`.
    ///
    /// # Panics
    /// When `index` is not below [`Plan::treatments`].
    #[must_use]
    pub fn treatment(&self, index: u64) -> Treatment {
        assert!(index < self.treatments(), "treatment {index} of {}", self.treatments);
        if let Some(cell) = self.crossed.cell(index) {
            return Treatment { levels: levels(&self.radix, cell) };
        }
        let beyond = usize::try_from(index - self.crossed.len()).expect("it is an index of a list");
        self.included[beyond].clone()
    }

    /// The trials of a block in running order: one of every treatment, and the control trial if the plan has one, in an
    /// order that depends on the seed and the number of the block only.
    pub fn block(&self, block: u32) -> impl Iterator<Item = PlannedTrial> {
        let first = u64::from(block) * self.block_size();
        let order = permutation(self.treatments, self.seed, block);
        let mut order: Vec<(u32, bool)> = order.into_iter().map(|index| (index, false)).collect();
        if let Some(index) = self.control {
            order.insert(control_place(order.len(), self.seed, block), (index, true));
        }
        (0_u32..).zip(order).map(move |(position, (index, control))| PlannedTrial {
            number: first + u64::from(position),
            block,
            position,
            treatment_index: u64::from(index),
            treatment: self.treatment(u64::from(index)),
            control,
        })
    }

    /// All trials in running order, block after block.
    pub fn iter(&self) -> impl Iterator<Item = PlannedTrial> {
        (0..self.blocks).flat_map(|block| self.block(block))
    }

    /// SHA-256 over the whole order (block and levels of every trial, and which are controls), in hexadecimal: for the
    /// record.
    #[must_use]
    pub fn order_digest(&self) -> String {
        let mut hash = Sha256::new();
        let mut line = String::new();
        for trial in self.iter() {
            line.clear();
            write!(line, "{}", trial.block).expect("text can be written to a String");
            for level in trial.treatment.levels {
                write!(line, " {level}").expect("text can be written to a String");
            }
            if trial.control {
                line.push_str(" control");
            }
            line.push('\n');
            hash.update(line.as_bytes());
        }
        hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
            write!(text, "{byte:02x}").expect("text can be written to a String");
            text
        })
    }
}

impl Crossed {
    fn len(&self) -> u64 {
        match self {
            Self::All(cells) => u64::from(*cells),
            Self::Kept(cells) => cells.len() as u64,
        }
    }

    fn cell(&self, index: u64) -> Option<u32> {
        let index = u32::try_from(index).ok()?;
        match self {
            Self::All(cells) => (index < *cells).then_some(index),
            Self::Kept(cells) => cells.get(index as usize).copied(),
        }
    }

    fn holds(&self, cell: u32) -> bool {
        match self {
            Self::All(cells) => cell < *cells,
            Self::Kept(cells) => cells.binary_search(&cell).is_ok(),
        }
    }
}

fn check_levels(design: &Design) -> Result<(), PlanError> {
    let known = |factor: usize, level: usize| {
        design.factors.get(factor).is_some_and(|factor| level < factor.levels.len())
    };
    for (entry, partial) in design.exclude.iter().enumerate() {
        if !partial.iter().all(|(factor, level)| known(*factor, *level)) {
            return Err(PlanError::UnknownLevel { list: "exclude", entry: entry + 1 });
        }
    }
    for (entry, treatment) in design.include.iter().enumerate() {
        let complete = treatment.levels.len() == design.factors.len();
        if !complete || !treatment.levels.iter().enumerate().all(|(factor, level)| known(factor, *level)) {
            return Err(PlanError::UnknownLevel { list: "include", entry: entry + 1 });
        }
    }
    Ok(())
}

/// Number of cells of the full crossing.
fn cells(design: &Design, radix: &[usize]) -> Result<u32, PlanError> {
    let product = radix.iter().try_fold(1_u64, |product, levels| product.checked_mul(*levels as u64));
    let fits = product.filter(|cells| *cells <= MAX_TREATMENTS).and_then(|cells| u32::try_from(cells).ok());
    fits.ok_or_else(|| too_many(product, design))
}

fn too_many(treatments: Option<u64>, design: &Design) -> PlanError {
    PlanError::TooMany {
        count: in_words(treatments),
        what: "treatments",
        limit: MAX_TREATMENTS,
        hint: format!("take levels away from {}", largest_factors(design)),
    }
}

fn largest_factors(design: &Design) -> String {
    let mut factors: Vec<_> = design.factors.iter().collect();
    factors.sort_by_key(|factor| std::cmp::Reverse(factor.levels.len()));
    let names = factors.iter().take(3).map(|factor| format!("`{}` ({})", factor.name, factor.levels.len()));
    names.collect::<Vec<_>>().join(", ")
}

fn check_trials(treatments: u64, blocks: u32) -> Result<(), PlanError> {
    if treatments == 0 {
        return Err(PlanError::NoTreatment);
    }
    let trials = treatments.checked_mul(u64::from(blocks));
    if trials.is_some_and(|trials| trials <= MAX_TRIALS) {
        return Ok(());
    }
    Err(PlanError::TooMany {
        count: in_words(trials),
        what: "trials",
        limit: MAX_TRIALS,
        hint: format!("there are {treatments} treatments in {blocks} blocks"),
    })
}

fn in_words(count: Option<u64>) -> String {
    count.map_or_else(|| "more than 2^64".to_owned(), |count| count.to_string())
}

fn is_excluded(exclude: &[Vec<(usize, usize)>], radix: &[usize], cell: u32) -> bool {
    exclude.iter().any(|partial| partial.iter().all(|(factor, level)| digit(radix, cell, *factor) == *level))
}

/// Level of one factor in a cell.
fn digit(radix: &[usize], cell: u32, factor: usize) -> usize {
    let faster: usize = radix[factor + 1..].iter().product();
    cell as usize / faster % radix[factor]
}

fn levels(radix: &[usize], cell: u32) -> Vec<usize> {
    let mut rest = cell as usize;
    let mut levels = vec![0; radix.len()];
    for (level, count) in levels.iter_mut().zip(radix).rev() {
        *level = rest % count;
        rest /= count;
    }
    levels
}

fn cell_of(radix: &[usize], treatment: &Treatment) -> u32 {
    let cell = treatment.levels.iter().zip(radix).fold(0, |cell, (level, count)| cell * count + level);
    u32::try_from(cell).expect("the crossing has fewer cells")
}

/// The included treatments that are not there already, each once.
fn included(design: &Design, radix: &[usize], crossed: &Crossed) -> Vec<Treatment> {
    let mut added: Vec<Treatment> = Vec::new();
    for treatment in &design.include {
        if !crossed.holds(cell_of(radix, treatment)) && !added.contains(treatment) {
            added.push(treatment.clone());
        }
    }
    added
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Blocks, Factor, Level};

    fn design(radix: &[usize], blocks: u32) -> Design {
        let level = |number: usize| Level {
            name: number.to_string(),
            value: None,
            values: indexmap::IndexMap::new(),
        };
        let factors = radix.iter().enumerate().map(|(number, levels)| Factor {
            name: format!("f{number}"),
            levels: (0..*levels).map(level).collect(),
        });
        Design {
            factors: factors.collect(),
            include: Vec::new(),
            exclude: Vec::new(),
            blocks: Blocks { min: blocks, max: blocks, until: None, budget: None },
            seed: 20_170_608,
        }
    }

    fn treatments(plan: &Plan) -> Vec<Vec<usize>> {
        (0..plan.treatments()).map(|index| plan.treatment(index).levels).collect()
    }

    fn treatment(levels: &[usize]) -> Treatment {
        Treatment { levels: levels.to_vec() }
    }

    #[test]
    fn the_last_factor_varies_fastest() {
        let plan = Plan::new(&design(&[2, 3], 1)).unwrap();
        assert_eq!(treatments(&plan), [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]);
    }

    #[test]
    fn without_factors_there_is_one_treatment() {
        let plan = Plan::new(&design(&[], 3)).unwrap();
        assert_eq!((plan.treatments(), plan.trials()), (1, 3));
        assert_eq!(plan.treatment(0).levels, Vec::<usize>::new());
    }

    #[test]
    fn excluded_cells_are_left_out_and_included_ones_come_last() {
        let mut design = design(&[2, 3], 1);
        design.exclude = vec![vec![(0, 1)], vec![(0, 0), (1, 2)]];
        design.include = vec![treatment(&[1, 1]), treatment(&[0, 0]), treatment(&[1, 1])];
        let plan = Plan::new(&design).unwrap();
        assert_eq!(treatments(&plan), [[0, 0], [0, 1], [1, 1]]);
    }

    #[test]
    fn numbers_run_through_all_blocks() {
        let plan = Plan::new(&design(&[2, 2], 3)).unwrap();
        let trials: Vec<PlannedTrial> = plan.iter().collect();
        assert_eq!(trials.len(), 12);
        for (number, trial) in (0..).zip(&trials) {
            assert_eq!(trial.number, number);
            assert_eq!(u64::from(trial.block), number / 4);
            assert_eq!(u64::from(trial.position), number % 4);
            assert_eq!(trial.treatment, plan.treatment(trial.treatment_index));
        }
    }

    #[test]
    fn the_order_never_changes() {
        let plan = Plan::new(&design(&[2, 4], 3)).unwrap();
        let order: Vec<Vec<u64>> =
            (0..3).map(|block| plan.block(block).map(|trial| trial.treatment_index).collect()).collect();
        insta::assert_compact_debug_snapshot!(order, @"[[5, 1, 2, 0, 3, 6, 7, 4], [6, 4, 5, 0, 3, 1, 2, 7], [5, 4, 0, 1, 3, 6, 2, 7]]");
        insta::assert_snapshot!(plan.order_digest(), @"2e74295786be0fbc7570d272a5702882ba25531e9bbc00c930fb260a1eccc0f1");
    }

    #[test]
    fn a_control_trial_changes_nothing_about_the_others() {
        let plain = Plan::new(&design(&[2, 4], 6)).unwrap();
        let with = plain.clone().with_control(3);
        assert_eq!((with.trials(), with.controls(), with.block_size()), (54, 6, 9));
        assert_eq!((plain.trials(), plain.controls(), plain.control()), (48, 0, None));
        assert_ne!(with.order_digest(), plain.order_digest());
        for block in 0..6 {
            let (controls, others): (Vec<_>, Vec<_>) = with.block(block).partition(|trial| trial.control);
            assert!(controls.iter().map(|trial| trial.treatment_index).eq([3]));
            let order = |trial: PlannedTrial| trial.treatment_index;
            assert!(others.into_iter().map(order).eq(plain.block(block).map(order)));
        }
        for (number, trial) in (0..).zip(with.iter()) {
            assert_eq!((trial.number, u64::from(trial.position)), (number, number % 9));
            assert_eq!(trial.treatment, with.treatment(trial.treatment_index));
        }
    }

    #[test]
    fn the_places_of_control_trials_never_change() {
        let plan = Plan::new(&design(&[2, 4], 6)).unwrap().with_control(0);
        let places: Vec<u32> =
            plan.iter().filter(|trial| trial.control).map(|trial| trial.position).collect();
        insta::assert_compact_debug_snapshot!(places, @"[3, 3, 5, 4, 5, 2]");
        insta::assert_snapshot!(plan.order_digest(), @"4e81e7fce10ab77afd973ca5724546063d30637a9c1a005fe01f9a05da07b52d");
    }

    #[test]
    fn impossible_designs_are_refused() {
        assert_eq!(
            Plan::new(&design(&[2, 0], 1)).unwrap_err(),
            PlanError::NoLevel { factor: "f1".to_owned() }
        );
        assert_eq!(Plan::new(&design(&[2], 0)).unwrap_err(), PlanError::Blocks { min: 0, max: 0 });
        let mut nothing = design(&[2], 1);
        nothing.exclude = vec![vec![]];
        assert_eq!(Plan::new(&nothing).unwrap_err(), PlanError::NoTreatment);
        for (list, wrong) in [("exclude", (5, 0)), ("exclude", (0, 2))] {
            let mut design = design(&[2], 1);
            design.exclude = vec![vec![wrong]];
            assert_eq!(Plan::new(&design).unwrap_err(), PlanError::UnknownLevel { list, entry: 1 });
        }
        let mut short = design(&[2, 2], 1);
        short.include = vec![treatment(&[0])];
        assert_eq!(Plan::new(&short).unwrap_err(), PlanError::UnknownLevel { list: "include", entry: 1 });
    }

    #[test]
    fn too_many_treatments_are_counted_and_refused() {
        let error = Plan::new(&design(&[1000, 1000, 1000], 1)).unwrap_err();
        insta::assert_snapshot!(error, @"the design has 1000000000 treatments, more than the 10000000 a plan may have: take levels away from `f0` (1000), `f1` (1000), `f2` (1000)");
        let error = Plan::new(&design(&[2, 8], u32::MAX)).unwrap_err();
        insta::assert_snapshot!(error, @"the design has 68719476720 trials, more than the 10000000 a plan may have: there are 16 treatments in 4294967295 blocks");
    }

    #[test]
    fn products_do_not_wrap_around() {
        let radix = [1 << 16, 1 << 16, 1 << 16, 1 << 16];
        let error = Plan::new(&design(&radix, 1)).unwrap_err();
        assert!(error.to_string().contains("more than 2^64"), "{error}");
    }

    #[test]
    fn a_million_trials_are_planned_lazily() {
        let wide = Plan::new(&design(&[100, 100, 100], 1)).unwrap();
        assert_eq!(wide.iter().map(|trial| trial.treatment_index).sum::<u64>(), 499_999_500_000);
        let long = Plan::new(&design(&[1000], 1000)).unwrap();
        assert_eq!(long.iter().count(), 1_000_000);
    }

    prop_compose! {
        fn any_design()(radix in prop::collection::vec(1_usize..5, 0..5), blocks in 1_u32..4, seed: u64,
                        picks in prop::collection::vec(prop::collection::vec((0_usize..5, 0_usize..5), 1..3), 0..3),
                        more in prop::collection::vec(prop::collection::vec(0_usize..5, 5), 0..4)) -> Design {
            let mut design = design(&radix, blocks);
            design.seed = seed;
            if !radix.is_empty() {
                let clamp = |(factor, level): (usize, usize)| (factor % radix.len(), level % radix[factor % radix.len()]);
                design.exclude = picks.into_iter().map(|partial| partial.into_iter().map(clamp).collect()).collect();
                design.include = more.iter().map(|levels| treatment(&levels.iter().zip(&radix).map(|(level, count)| level % count).collect::<Vec<_>>())).collect();
            }
            design
        }
    }

    proptest! {
        #[test]
        fn every_block_is_a_permutation(design in any_design()) {
            let Ok(plan) = Plan::new(&design) else { return Ok(()) };
            for block in 0..plan.blocks() {
                let mut order: Vec<u64> = plan.block(block).map(|trial| trial.treatment_index).collect();
                order.sort_unstable();
                prop_assert_eq!(order, (0..plan.treatments()).collect::<Vec<_>>());
            }
        }

        #[test]
        fn exclude_and_include_hold(design in any_design()) {
            let excluded = |treatment: &Treatment| design.exclude.iter()
                .any(|partial| partial.iter().all(|(factor, level)| treatment.levels[*factor] == *level));
            let Ok(plan) = Plan::new(&design) else {
                prop_assert!(design.include.is_empty());
                return Ok(());
            };
            let all: Vec<Treatment> = (0..plan.treatments()).map(|index| plan.treatment(index)).collect();
            let distinct: std::collections::HashSet<&Treatment> = all.iter().collect();
            prop_assert_eq!(distinct.len(), all.len(), "no treatment comes twice");
            for treatment in &all {
                prop_assert!(!excluded(treatment) || design.include.contains(treatment));
            }
            for treatment in &design.include {
                prop_assert!(all.contains(treatment));
            }
            let full: usize = design.factors.iter().map(|factor| factor.levels.len()).product();
            let kept = all.iter().filter(|treatment| !excluded(treatment)).count();
            prop_assert!(kept <= full);
        }

        #[test]
        fn the_same_seed_gives_the_same_order(design in any_design()) {
            let Ok(plan) = Plan::new(&design) else { return Ok(()) };
            let again = Plan::new(&design).unwrap();
            prop_assert_eq!(plan.order_digest(), again.order_digest());
            let longer = Design { blocks: Blocks { max: design.blocks.max + 1, ..design.blocks.clone() }, ..design };
            let longer = Plan::new(&longer).unwrap();
            prop_assert!(plan.iter().eq(longer.iter().take(usize::try_from(plan.trials()).unwrap())), "more blocks leave earlier ones alone");
        }
    }
}
