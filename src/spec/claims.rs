//! `sources` and `claims`: parsed, checked against the design and the steps, kept for the verdicts.

use indexmap::IndexMap;

use crate::model::{Claim, ClaimSource, Contrast, Design, Group, Metric, Statement, Treatment};
use crate::spec::design::{group, treatments};
use crate::spec::diagnostic::Diagnostics;
use crate::spec::suggest::{did_you_mean, one_of};
use crate::spec::tree::Node;
use crate::spec::wire::claim::{ClaimFile, ContrastFile, SourceFile};
use crate::spec::wire::scalar::Single;

/// Largest difference that counts as none, without a word about it.
const DEFAULT_MARGIN: f64 = 0.05;
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
    /// Names of the steps, if they are known.
    pub steps: Option<&'a [String]>,
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
                    corrected: file.corrected,
                    needs: file.needs.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect(),
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
        let Some((step, name)) = text.split_once('.') else {
            let problem = self.tree.problem(&path, format!("`{text}` does not say of which step"));
            found.push(problem.expected("`<step>.<number>`, such as `insert.rows_per_second`"));
            return Err(());
        };
        if let Some(steps) = self.steps.filter(|steps| !steps.iter().any(|known| known == step)) {
            let names = || steps.iter().map(String::as_str);
            let problem = self.tree.problem(&path, format!("there is no step `{step}`"));
            found.push(problem.expected(one_of(names())).maybe_hint(did_you_mean(step, names())));
            return Err(());
        }
        Ok(Some(Metric { step: step.to_owned(), name: name.to_owned(), counter: key == "counter" }))
    }

    fn statement(&self, file: &ClaimFile, path: &str, found: &mut Diagnostics) -> Option<Statement> {
        match (&file.ratio, &file.no_difference, &file.order, &file.not_comparable) {
            (Some(ratio), None, None, None) => {
                if file.published.is_none() {
                    found.push(self.tree.problem(path, "a ratio needs the `published` number"));
                }
                self.contrast(ratio, &format!("{path}.ratio"), found).map(Statement::Ratio)
            }
            (None, Some(contrast), None, None) => {
                let margin = contrast.margin.map_or(DEFAULT_MARGIN, |share| share.0);
                let contrast = self.contrast(contrast, &format!("{path}.no_difference"), found)?;
                Some(Statement::NoDifference { contrast, margin })
            }
            (None, None, Some(groups), None) => {
                let path = format!("{path}.order");
                let groups = groups
                    .iter()
                    .enumerate()
                    .map(|(index, map)| self.group(map, &IndexMap::new(), &format!("{path}.{index}"), found));
                groups.collect::<Vec<_>>().into_iter().collect::<Option<_>>().map(Statement::Order)
            }
            (None, None, None, Some(reason)) => Some(Statement::NotComparable(reason.clone())),
            _ => {
                let problem = self.tree.problem(path, "a claim says exactly one thing");
                found.push(problem.expected("one of `ratio`, `no_difference`, `order` or `not_comparable`"));
                None
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
