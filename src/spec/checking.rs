//! Every treatment, bound and checked before the first server starts.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use crate::model::{BoundTrial, Design, Treatment};
use crate::spec::check::{Finding, check_trial};
use crate::spec::design::{count, treatments};
use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::experiment::{Bound, Spec};
use crate::spec::tree::Place;

/// Up to so many treatments, every one is looked at.
const EXHAUSTIVE: u64 = 4096;
/// Above, so many are drawn besides those that show every level.
const SAMPLE: usize = 512;
/// Levels over all factors that are looked at one by one.
const MOST_LEVELS: usize = 4096;

/// What was looked at.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct CheckReport {
    /// Treatments of the design.
    pub treatments: u64,
    /// Trials of all blocks.
    pub trials: u64,
    /// Treatments that were bound and checked.
    pub checked: u64,
    /// Whether these were all.
    pub exhaustive: bool,
    /// What is probably not meant.
    pub warnings: Diagnostics,
}

impl std::fmt::Display for CheckReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        write!(
            f,
            "{} treatment{}, {} trial{}",
            self.treatments,
            plural(self.treatments),
            self.trials,
            plural(self.trials)
        )?;
        if self.exhaustive {
            f.write_str(", every treatment checked")
        } else {
            write!(f, ", {} treatments checked: every level at least once, and a seeded sample", self.checked)
        }
    }
}

/// Treatments by what they do.
#[derive(Default)]
struct Alike {
    seen: HashMap<Vec<u8>, Treatment>,
    repeated: usize,
    example: Option<(Treatment, Treatment)>,
}

impl Alike {
    fn add(&mut self, treatment: &Treatment, trial: &BoundTrial) {
        let bytes = serde_json::to_vec(trial).expect("a bound trial is plain data");
        let digest = Sha256::digest(&bytes).to_vec();
        match self.seen.get(&digest) {
            None => drop(self.seen.insert(digest, treatment.clone())),
            Some(first) => {
                self.repeated += 1;
                self.example.get_or_insert_with(|| (first.clone(), treatment.clone()));
            }
        }
    }
}

impl Spec {
    /// Binds every treatment (above 4,096 of them: each level, and a seeded sample) and applies every rule.
    ///
    /// # Errors
    /// All mistakes; those of some treatments only say of which.
    pub fn check_all(&self) -> Result<CheckReport, Diagnostics> {
        let mut found = Diagnostics::default();
        let (treatment_count, trials) = match count(&self.design) {
            Ok(counts) => counts,
            Err(problem) => return Err(problem.diagnostic(&self.tree).into()),
        };
        let exhaustive = treatment_count <= EXHAUSTIVE;
        let chosen: Vec<Treatment> =
            if exhaustive { treatments(&self.design).collect() } else { sample(&self.design) };
        let mut alike = Alike::default();
        for treatment in &chosen {
            found.extend_for(treatment, self.check_one(treatment, &mut alike));
        }
        if exhaustive {
            found.extend(self.tell_alike(&alike));
        }
        found.name_treatments(&self.design, &chosen);
        found.sort(&self.tree.place.source.name);
        if found.has_errors() {
            return Err(found);
        }
        let mut warnings = self.warnings.clone();
        warnings.extend(found);
        Ok(CheckReport {
            treatments: treatment_count,
            trials,
            checked: chosen.len() as u64,
            exhaustive,
            warnings,
        })
    }

    /// Treatments that do the very same give a comparison that looks like a finding.
    fn tell_alike(&self, alike: &Alike) -> Diagnostics {
        let mut found = Diagnostics::default();
        let unused = self.warnings.items.iter().any(|warning| warning.message.starts_with("nothing uses"));
        if let Some((first, second)) = alike.example.as_ref().filter(|_| !unused) {
            let labels = (self.design.label(first), self.design.label(second));
            let message = format!(
                "{} treatment(s) do exactly what another does, such as `{}` and `{}`",
                alike.repeated, labels.0, labels.1
            );
            let place = self.tree.find_place("design.factors").0.first_line();
            found.push(Diagnostic::new(place, message).warning().hint(
                "a template that compares a factor with a text that is none of its levels is never true; \
                 if the same twice is meant (a control), all is well",
            ));
        }
        found
    }

    fn check_one(&self, treatment: &Treatment, alike: &mut Alike) -> Diagnostics {
        let mut found = Diagnostics::default();
        if let Some(bound) = self.bind_into(treatment, &mut found) {
            alike.add(treatment, &bound.trial);
            for finding in check_trial(&bound.trial) {
                found.push(self.place_finding(finding, &bound));
            }
        }
        found
    }

    /// A finding with the place of what it points to: in the experiment, or else in the environment file.
    fn place_finding(&self, finding: Finding, bound: &Bound) -> Diagnostic {
        let place = match finding.pointer.rsplit_once("settings.") {
            // The name is wrong, not the value.
            Some((path, name)) if finding.message.contains("no setting") => {
                let path = format!("{path}settings");
                let tree = if bound.tree.find(&finding.pointer).is_some() {
                    &bound.tree
                } else {
                    bound.environment.tree()
                };
                let path = if tree.find(&path).is_some() { path.as_str() } else { "settings" };
                tree.key_problem(path, name, "").place
            }
            _ => self.locate(&finding.pointer, bound),
        };
        let mut problem = Diagnostic::new(place, finding.message).maybe_hint(finding.hint);
        problem.expected = finding.expected;
        problem
    }

    fn locate(&self, pointer: &str, bound: &Bound) -> Place {
        let (place, complete) = bound.tree.find_place(pointer);
        if complete {
            return place;
        }
        if let Some(path) = pointer.strip_prefix("server.").or_else(|| pointer.strip_prefix("environment.")) {
            let (place, complete) = bound.environment.tree().find_place(path);
            if complete {
                return place;
            }
        }
        match self.tree.find_place(pointer) {
            (place, true) => place,
            _ => place,
        }
    }
}

/// One treatment for every level of every factor, and a seeded sample.
fn sample(design: &Design) -> Vec<Treatment> {
    let mut state = design.seed;
    let mut random = move |below: usize| {
        // SplitMix64 (Steele, Lea, Flood 2014), enough to choose treatments.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % (below.max(1) as u64)).unwrap_or(0)
    };
    let counts: Vec<usize> = design.factors.iter().map(|factor| factor.levels.len()).collect();
    let mut chosen: Vec<Treatment> = Vec::new();
    let fixed = counts
        .iter()
        .enumerate()
        .flat_map(|(factor, count)| (0..*count).map(move |level| Some((factor, level))));
    for wanted in fixed.take(MOST_LEVELS).chain(std::iter::repeat_n(None, SAMPLE)) {
        // A level may be excluded together with most others; then a few tries are enough.
        for _ in 0..8 {
            let mut levels: Vec<usize> = counts.iter().map(|count| random(*count)).collect();
            if let Some((factor, level)) = wanted {
                levels[factor] = level;
            }
            let excluded =
                |pairs: &Vec<(usize, usize)>| pairs.iter().all(|(factor, level)| levels[*factor] == *level);
            if !design.exclude.iter().any(excluded) {
                chosen.push(Treatment { levels });
                break;
            }
        }
    }
    chosen.extend(design.include.iter().take(SAMPLE).cloned());
    chosen.sort();
    chosen.dedup();
    chosen
}
