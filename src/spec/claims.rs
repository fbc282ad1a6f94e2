//! `sources` and `claims`: parsed, checked against the design and the steps, kept for the verdicts.

use indexmap::IndexMap;

use crate::model::{
    Claim, ClaimSource, Contrast, Design, Group, METRICS, Metric, RawValues, Reading, Statement, StepKind,
    Treatment, metric_kind,
};
use crate::spec::design::{group, treatments};
use crate::spec::diagnostic::{Diagnostics, Severity};
use crate::spec::experiment::Spec;
use crate::spec::suggest::{did_you_mean, one_of};
use crate::spec::tree::Node;
use crate::spec::wire::claim::{ClaimFile, ContrastFile, RawFile, ReadingWord, SourceFile};
use crate::spec::wire::scalar::Single;

/// Largest difference that counts as none, without a word about it.
const DEFAULT_MARGIN: f64 = 0.05;
/// How far a corrected number may be from what its printed values give: room for rounding to two digits.
const RAW_TOLERANCE: f64 = 0.02;
/// Beyond so many treatments it is not looked up whether one exists that a claim asks for.
const MAX_SEARCHED: usize = 100_000;

/// What claims are checked against.
pub struct ClaimBinder<'a> {
    /// The tree, for places.
    pub tree: &'a Node,
    /// The design before `--only`.
    pub design: &'a Design,
    /// The sources of the file.
    pub sources: &'a IndexMap<String, SourceFile>,
    /// The steps, if they are known.
    pub steps: Option<&'a KnownSteps>,
}

/// What claims may name.
#[derive(Debug, Default)]
pub struct KnownSteps {
    /// Names of steps.
    names: Vec<String>,
    /// Numbers captured from programs, by step and name.
    captures: Vec<(String, String)>,
}

/// Treatments that are bound at most to find the steps that claims name.
const MAX_BOUND_FOR_CLAIMS: usize = 256;

impl Spec {
    /// The steps that claims may name: those of the first treatment, and of others while one that a claim names
    /// is missing (`when` leaves steps out). `None` when the first cannot be bound.
    pub(super) fn known_steps(&self, claims: &[ClaimFile], found: &mut Diagnostics) -> Option<KnownSteps> {
        let named: Vec<&str> = claims.iter().flat_map(ClaimFile::step_names).collect();
        let mut all = treatments(&self.design).take(MAX_BOUND_FOR_CLAIMS);
        let mut known = KnownSteps::default();
        self.add_steps(&all.next()?, &mut known, found)?;
        for treatment in all {
            if named.iter().all(|name| known.names.iter().any(|step| step == name)) {
                break;
            }
            // What is wrong with another treatment is told when all are checked.
            let _other = self.add_steps(&treatment, &mut known, &mut Diagnostics::default());
        }
        let mut seen = std::collections::HashSet::new();
        known.names.retain(|step| seen.insert(step.clone()));
        Some(known)
    }

    fn add_steps(
        &self,
        treatment: &Treatment,
        known: &mut KnownSteps,
        found: &mut Diagnostics,
    ) -> Option<()> {
        for step in self.bind_into(treatment, found)?.trial.steps {
            if let StepKind::Command(command) = &step.kind {
                let names = command.captures.iter().map(|capture| (step.name.clone(), capture.name.clone()));
                known.captures.extend(names);
            }
            known.names.push(step.name);
        }
        Some(())
    }

    /// The claims, checked against the whole design. Where the command line took their treatments away
    /// they are left out: without an error, because the file is right.
    pub(super) fn claims(
        &self,
        (files, indexes): (&[ClaimFile], &[usize]),
        sources: &IndexMap<String, SourceFile>,
        steps: Option<&KnownSteps>,
        whole: &Design,
        changed: bool,
        found: &mut Diagnostics,
    ) -> Vec<Claim> {
        let bind = |design: &Design, found: &mut Diagnostics| {
            ClaimBinder { tree: &self.tree, design, sources, steps }.bind(files, indexes, found)
        };
        let mut problems = Diagnostics::default();
        let claims = bind(whole, &mut problems);
        if changed {
            problems.items.iter_mut().for_each(|item| item.severity = Severity::Warning);
        }
        found.extend(problems);
        if *whole == self.design { claims } else { bind(&self.design, &mut Diagnostics::default()) }
    }
}

impl ClaimBinder<'_> {
    /// All claims; `indexes` are their places in the file's list.
    pub fn bind(&self, files: &[ClaimFile], indexes: &[usize], found: &mut Diagnostics) -> Vec<Claim> {
        let mut claims: Vec<Claim> = Vec::new();
        for (file, index) in files.iter().zip(indexes) {
            let path = format!("claims.{index}");
            if claims.iter().any(|claim| claim.id == file.id) {
                found.push(
                    self.tree.problem(&format!("{path}.id"), format!("two claims are called `{}`", file.id)),
                );
            }
            let source = self.source(file, &path, found);
            self.raw_fits(file, &path, found);
            self.can_be_judged(file, &path, found);
            let statement = self.statement(file, &path, found);
            let metric = self.metric(file, &path, found);
            if let (Some(source), Some(statement), Ok(metric)) = (source, statement, metric) {
                claims.push(Claim {
                    id: file.id.clone(),
                    source_id: file.source.clone(),
                    source,
                    quote: file.quote.clone(),
                    metric,
                    statement,
                    published: file.published,
                    reading: file.reading.map_or(Reading::AsPublished, Reading::from),
                    raw: file.raw.as_ref().map(raw),
                    needs: file.needs.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect(),
                    confounds: file.confounds.clone(),
                });
            }
        }
        claims
    }

    fn source(&self, file: &ClaimFile, path: &str, found: &mut Diagnostics) -> Option<ClaimSource> {
        let Some(source) = self.sources.get(&file.source) else {
            let names = || self.sources.keys().map(String::as_str);
            let problem =
                self.tree.problem(&format!("{path}.source"), format!("there is no source `{}`", file.source));
            let expected =
                if self.sources.is_empty() { "a key of `sources:`".to_owned() } else { one_of(names()) };
            found.push(problem.expected(expected).maybe_hint(did_you_mean(&file.source, names())));
            return None;
        };
        Some(ClaimSource {
            title: source.title.clone(),
            author: source.author.clone(),
            date: source.date.clone(),
            system: source.system.clone(),
            url: source.url.clone(),
        })
    }

    fn metric(&self, file: &ClaimFile, path: &str, found: &mut Diagnostics) -> Result<Option<Metric>, ()> {
        let (text, key) = match (&file.metric, &file.counter) {
            (Some(text), None) => (text, "metric"),
            (None, Some(text)) => (text, "counter"),
            (None, None) if file.not_comparable.is_some() => return Ok(None),
            _ => {
                found.push(self.tree.problem(path, "a claim needs either `metric` or `counter`"));
                return Err(());
            }
        };
        let path = format!("{path}.{key}");
        let Some((_, name)) = text.rsplit_once('.') else {
            let problem = self.tree.problem(&path, format!("`{text}` does not say of which step"));
            found.push(problem.expected("`<step>.<number>`, such as `insert.rows_per_second`"));
            return Err(());
        };
        let steps: Vec<String> = file.step_names().map(str::to_owned).collect();
        let unknown = steps.iter().filter(|step| !self.step(step, &path, found)).count();
        let named =
            self.is_captured(name, &steps) || self.number(name, steps.len(), key == "counter", &path, found);
        if unknown > 0 || !named {
            return Err(());
        }
        Ok(Some(Metric { steps, name: name.to_owned(), counter: key == "counter" }))
    }

    fn step(&self, step: &str, path: &str, found: &mut Diagnostics) -> bool {
        let Some(steps) = self.steps.filter(|steps| !steps.names.iter().any(|known| known == step)) else {
            return true;
        };
        let names = || steps.names.iter().map(String::as_str);
        let problem = self.tree.problem(path, format!("there is no step `{step}`"));
        found.push(problem.expected(one_of(names())).maybe_hint(did_you_mean(step, names())));
        false
    }

    /// Whether the number is one that the only step, a program, prints.
    fn is_captured(&self, name: &str, steps: &[String]) -> bool {
        let captures = self.steps.map(|steps| steps.captures.as_slice()).unwrap_or_default();
        matches!(steps, [step] if captures.iter().any(|(of, capture)| of == step && capture == name))
    }

    /// Whether a step gives a number of this name, and it may be used like this.
    fn number(&self, name: &str, steps: usize, counter: bool, path: &str, found: &mut Diagnostics) -> bool {
        let names = || METRICS.iter().map(|metric| metric.name);
        let Some(metric) = metric_kind(name) else {
            let problem = self.tree.problem(path, format!("a step gives no number `{name}`"));
            found.push(problem.expected(one_of(names())).maybe_hint(did_you_mean(name, names())));
            return false;
        };
        if counter && !metric.counter() {
            let problem =
                self.tree.problem(path, format!("`{name}` is no counter: it depends on the machine"));
            found.push(problem.hint("write `metric:` instead of `counter:`"));
            return false;
        }
        if steps > 1 && !metric.additive() {
            let problem = self.tree.problem(path, format!("`{name}` of several steps cannot be added"));
            let additive = METRICS.iter().filter(|metric| metric.additive()).map(|metric| metric.name);
            found.push(problem.expected(one_of(additive)));
            return false;
        }
        true
    }

    fn statement(&self, file: &ClaimFile, path: &str, found: &mut Diagnostics) -> Option<Statement> {
        match (&file.ratio, &file.no_difference, &file.order, &file.absolute, &file.not_comparable) {
            (Some(ratio), None, None, None, None) => {
                if file.published.is_none() {
                    found.push(self.tree.problem(path, "a ratio needs the `published` number"));
                }
                self.contrast(ratio, &format!("{path}.ratio"), found).map(Statement::Ratio)
            }
            (None, Some(contrast), None, None, None) => {
                let margin = contrast.margin.map_or(DEFAULT_MARGIN, |share| share.0);
                let contrast = self.contrast(contrast, &format!("{path}.no_difference"), found)?;
                Some(Statement::NoDifference { contrast, margin })
            }
            (None, None, Some(groups), None, None) => {
                let path = format!("{path}.order");
                let groups = groups
                    .iter()
                    .enumerate()
                    .map(|(index, map)| self.group(map, &IndexMap::new(), &format!("{path}.{index}"), found));
                groups.collect::<Vec<_>>().into_iter().collect::<Option<_>>().map(Statement::Order)
            }
            (None, None, None, Some(group), None) => {
                if file.published.is_none() || file.raw.is_none() {
                    let problem = self.tree.problem(path, "an absolute value needs a number and its unit");
                    found.push(problem.expected("`published` and `raw: {unit, of}`"));
                }
                self.group(group, &IndexMap::new(), &format!("{path}.absolute"), found)
                    .map(Statement::Absolute)
            }
            (None, None, None, None, Some(reason)) => Some(Statement::NotComparable(reason.clone())),
            _ => {
                let problem = self.tree.problem(path, "a claim says exactly one thing");
                found
                    .push(problem.expected(
                        "one of `ratio`, `no_difference`, `order`, `absolute` or `not_comparable`",
                    ));
                None
            }
        }
    }

    /// The printed values must be possible, and give the number that is claimed in the corrected reading.
    fn raw_fits(&self, file: &ClaimFile, path: &str, found: &mut Diagnostics) {
        let Some(values) = &file.raw else { return };
        let path = format!("{path}.raw");
        let possible = |value: &f64| value.is_finite() && *value > 0.0;
        if values.of.is_empty() || !values.of.iter().chain(&values.to).all(possible) {
            let problem = self.tree.problem(&path, "published values are numbers above 0");
            found.push(problem.expected("`{unit: s, of: [7.03, 6.94], to: [7.50, 7.41]}`"));
            return;
        }
        let of_rates = file.metric.as_deref().is_some_and(|metric| metric.ends_with("per_second"));
        let claimed = file.ratio.as_ref().and(file.published);
        if let (Some(claimed), Some(ratio)) = (claimed, raw(values).ratio(of_rates)) {
            let corrected = file.reading == Some(ReadingWord::AsCorrected);
            if corrected && (ratio / claimed - 1.0).abs() > RAW_TOLERANCE {
                let message = format!("the printed values give {ratio:.3}, not {claimed}");
                found.push(self.tree.problem(&path, message).hint(
                    "`of` and `to` may have changed places, or `published` is the source's own sum: then the reading is `as-published`",
                ));
            }
        }
    }

    fn contrast(&self, file: &ContrastFile, path: &str, found: &mut Diagnostics) -> Option<Contrast> {
        let of = self.group(&file.of, &file.shared, &format!("{path}.of"), found);
        let to = self.group(&file.to, &file.shared, &format!("{path}.to"), found);
        // The shared part is reported at its own place.
        group(self.design, &file.shared, &format!("{path}.where"), self.tree, found);
        Some(Contrast { of: of?, to: to? })
    }

    fn group(
        &self,
        map: &IndexMap<String, Single>,
        shared: &IndexMap<String, Single>,
        path: &str,
        found: &mut Diagnostics,
    ) -> Option<Group> {
        let mut levels = group(self.design, map, path, self.tree, found)?;
        levels.extend(group(self.design, shared, path, self.tree, &mut Diagnostics::default())?);
        levels.sort_unstable();
        levels.dedup();
        let matches = |treatment: &Treatment| {
            levels.iter().all(|(factor, level)| treatment.levels.get(*factor) == Some(level))
        };
        let mut searched = treatments(self.design).take(MAX_SEARCHED + 1).enumerate();
        let exists = searched.any(|(number, treatment)| number == MAX_SEARCHED || matches(&treatment));
        if !exists {
            let problem = self.tree.problem(path, "no treatment of this design has these levels");
            found.push(
                problem.hint("the claim needs a treatment that `exclude` takes out, or contradicts itself"),
            );
            return None;
        }
        Some(Group { levels })
    }
}

fn raw(file: &RawFile) -> RawValues {
    RawValues { unit: file.unit.into(), of: file.of.clone(), to: file.to.clone(), rounding: file.rounding }
}
