//! A loaded experiment: what is known without rendering anything, and the way to a bound trial.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::model::{BoundTrial, Claim, Design, Scalar, Treatment};
use crate::spec::bind::bind;
use crate::spec::claims::ClaimBinder;
use crate::spec::design::{count, level_of, resolve, restrict, treatments};
use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::files::{self, Files};
use crate::spec::lint::warnings;
use crate::spec::overrides::{apply_profile, apply_set, command_line};
use crate::spec::render::{Renderer, names_of};
use crate::spec::server;
use crate::spec::steps::StepBinder;
use crate::spec::suggest::one_of;
use crate::spec::tables::TableBinder;
use crate::spec::template::{Names, Templates, to_dynamic};
use crate::spec::tree::{Node, Place, Source, Value};
use crate::spec::wire::experiment::{ExperimentFile, TrialFile};
use crate::spec::wire::scalar::OneOrMany;
use crate::spec::yaml::parse;

/// The environment of an experiment that names none.
const DEFAULT_ENVIRONMENT: &str = "postgres";

/// What the command line changes.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// A profile of the file.
    pub profile: Option<String>,
    /// `key.path=value`, applied after the profile, in this order.
    pub set: Vec<String>,
    /// `factor=level`: only these levels are kept.
    pub only: Vec<String>,
    /// Folder with environment files, instead of the usual places.
    pub environments: Option<PathBuf>,
}

/// An experiment file, read, changed by the command line and understood as far as that is possible without
/// looking at one treatment.
#[derive(Debug)]
pub struct Spec {
    /// Name of the experiment.
    pub name: String,
    /// What is asked.
    pub question: String,
    /// What is expected.
    pub expectation: Option<String>,
    /// What is varied.
    pub design: Design,
    /// Published statements that are re-tested.
    pub claims: Vec<Claim>,
    /// The file.
    pub file: PathBuf,
    /// The file as written.
    pub source_text: String,
    /// The file after profile and `--set`, templates not rendered.
    pub resolved: serde_json::Value,
    /// SHA-256 of `resolved`, of `--only` and of every file the experiment names.
    pub hash: String,
    /// What is probably not meant.
    pub warnings: Diagnostics,
    pub(super) tree: Node,
    environment: Option<OneOrMany>,
    templates: Templates,
    files: Files,
}

/// A bound trial and the trees its values come from.
pub(super) struct Bound {
    pub(super) trial: BoundTrial,
    /// `server`, `tables` and `steps`, rendered.
    pub(super) tree: Node,
    /// The environment file.
    pub(super) environment: Node,
}

/// Reads an experiment file and applies profile, `--set` and `--only`.
///
/// # Errors
/// Everything that is wrong with the file as such. When something is, the mistakes of the first treatment
/// are added, so that one pass shows as much as possible.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Spec, Diagnostics> {
    let source = files::read(path).map_err(|problem| {
        let place = Place { source: Arc::new(Source { name: path.display().to_string(), text: String::new() }), start: 0, end: 0 };
        Diagnostics::from(Diagnostic::new(place, problem.message).maybe_hint(problem.hint))
    })?;
    let mut tree = parse(&source).map_err(|problem| Diagnostics::from(*problem))?;
    let mut found = Diagnostics::default();
    if let Some(profile) = &options.profile {
        apply_profile(&mut tree, profile, &mut found);
    }
    for option in &options.set {
        apply_set(&mut tree, option, &mut found);
    }
    let (file, bound_tree) = bind::<ExperimentFile>(&tree, &mut found);
    let claim_indexes = surviving(&bound_tree, "claims");
    let Some(file) = file else {
        found.sort(&source.name);
        return Err(found);
    };
    missing_keys(&tree, &file, &mut found);
    let environment = environment(&tree, &mut found);
    let mut design = resolve(&file.design, environment.as_ref(), &tree, &mut found);
    let whole_design = design.clone();
    apply_only(&mut design, &options.only, &mut found);
    if let Err(message) = count(&design) {
        found.push(tree.problem("design.factors", message).expected("at most 10,000,000 trials").hint("vary fewer things at once, or take levels out"));
    }
    let mut spec = Spec {
        name: file.experiment.unwrap_or_default(),
        question: file.question.unwrap_or_default(),
        expectation: file.expectation,
        design,
        claims: Vec::new(),
        file: path.to_owned(),
        source_text: source.text.clone(),
        resolved: resolved(&tree),
        hash: String::new(),
        warnings: Diagnostics::default(),
        files: Files::new(path, options.environments.as_deref()),
        templates: Templates::default(),
        tree,
        environment,
    };
    let mut first_found = Diagnostics::default();
    let steps = spec.first_steps(&mut first_found);
    let binder = ClaimBinder { tree: &spec.tree, design: &whole_design, sources: &file.sources, steps: steps.as_deref() };
    spec.claims = binder.bind(&file.claims, &claim_indexes, &mut found);
    spec.lint(&mut found);
    if found.has_errors() {
        let broken = spec.broken_factors();
        first_found.items.retain(|item| !broken.iter().any(|name| item.message.contains(name)));
        found.extend(first_found);
        found.sort(&source.name);
        return Err(found);
    }
    spec.hash = spec.hash_of(&options.only);
    found.sort(&source.name);
    spec.warnings = found;
    Ok(spec)
}

/// Indexes of the elements of a list that could be bound.
fn surviving(tree: &Node, key: &str) -> Vec<usize> {
    let items = tree.get(key).map(Node::items).unwrap_or_default();
    items.iter().enumerate().filter(|(_, item)| item.value != Value::Broken).map(|(index, _)| index).collect()
}

/// Keys that every experiment has; checked here so that their absence hides nothing else.
fn missing_keys(tree: &Node, file: &ExperimentFile, found: &mut Diagnostics) {
    for (key, hint) in [
        ("experiment", "the name under which results are kept, such as `experiment: unlogged`"),
        ("question", "say what is asked, in one sentence"),
        ("tables", "every experiment has at least one table"),
        ("steps", "say what a trial does, such as `- create: orders`"),
    ] {
        if tree.get(key).is_none_or(|node| node.value == Value::Null) {
            found.push(tree.problem("", format!("the key `{key}` is missing")).hint(hint));
        }
    }
    if let Some(name) = &file.experiment {
        let fits = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.len() <= 64
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !fits {
            let problem = tree.problem("experiment", format!("`{name}` cannot be the name of an experiment"));
            found.push(problem.expected("letters, digits, `-` and `_`, at most 64").hint("results go into a folder of this name"));
        }
    }
    if tree.get("steps").is_some_and(|steps| matches!(&steps.value, Value::List(items) if items.is_empty())) {
        found.push(tree.problem("steps", "there are no steps").hint("say what a trial does, such as `- create: orders`"));
    }
}

fn environment(tree: &Node, found: &mut Diagnostics) -> Option<OneOrMany> {
    let node = tree.get("environment")?;
    let environment = bind::<OneOrMany>(node, found).0?;
    if environment.values.is_empty() {
        found.push(tree.problem("environment", "no environment is named").hint("leave the key away for `postgres`"));
    }
    Some(environment)
}

fn apply_only(design: &mut Design, only: &[String], found: &mut Diagnostics) {
    let mut pairs = Vec::new();
    for option in only {
        match option.split_once('=') {
            Some((factor, level)) => match level_of(design, factor, level) {
                Ok(_) => pairs.push((factor.to_owned(), level.to_owned())),
                Err(problem) => found.push(problem.diagnostic(command_line("--only", option))),
            },
            None => found.push(
                Diagnostic::new(command_line("--only", option), "a level is missing here").expected("`--only factor=level`"),
            ),
        }
    }
    // Every pair was looked up above.
    if let Err((option, problem)) = restrict(design, &pairs) {
        found.push(problem.diagnostic(command_line("--only", &only[option])));
    }
}

/// The tree as JSON without the profiles, which were applied or not used.
fn resolved(tree: &Node) -> serde_json::Value {
    let mut json = tree.to_json();
    if let Some(map) = json.as_object_mut() {
        map.shift_remove("profiles");
    }
    json
}

impl Spec {
    /// One treatment with every template rendered, every name resolved and every value checked.
    ///
    /// # Errors
    /// Everything that is wrong with this treatment, but for what only [`Spec::check_all`] looks at.
    pub fn bind(&self, treatment: &Treatment) -> Result<BoundTrial, Diagnostics> {
        let mut found = Diagnostics::default();
        match self.bind_into(treatment, &mut found) {
            Some(bound) if !found.has_errors() => Ok(bound.trial),
            _ => {
                found.sort(&self.tree.place.source.name);
                Err(found)
            }
        }
    }

    pub(super) fn bind_into(&self, treatment: &Treatment, found: &mut Diagnostics) -> Option<Bound> {
        let mut names = names_of(&self.design, treatment);
        let environment_name = self.environment_name(&mut names, found);
        let renderer = Renderer { templates: &self.templates, files: &self.files };
        let tree = renderer.trial(&self.tree, &names, found);
        let (file, bound_tree) = bind::<TrialFile>(&tree, found);
        let step_indexes = surviving(&bound_tree, "steps");
        let file = file?;
        let binder = TableBinder { tree: &tree, templates: &self.templates, names: &names, seed: self.design.seed };
        let tables: Vec<_> = file.tables.iter().filter_map(|(name, table)| binder.bind(name, table, found)).collect();
        let table_names: Vec<&str> =
            tree.get("tables").map(Node::entries).unwrap_or_default().iter().map(|(key, _)| key.text.as_str()).collect();
        let binder = StepBinder { tree: &tree, tables: &tables, table_names: &table_names };
        let steps = binder.bind(&file.steps, &step_indexes, found);
        let environment_name = environment_name?;
        let environment = self.environment_file(&environment_name, found)?;
        let spec = environment.resolve(&file.server, &tree, found)?;
        let trial = BoundTrial { environment: spec, tables, steps };
        let environment = environment.into_tree();
        (!found.has_errors()).then_some(Bound { trial, tree, environment })
    }

    /// The environment's name for a treatment; also becomes a name for templates.
    fn environment_name(&self, names: &mut Names, found: &mut Diagnostics) -> Option<String> {
        let name = match (&self.environment, names.get("environment")) {
            (_, Some(level)) => level.to_string(),
            (None, None) => DEFAULT_ENVIRONMENT.to_owned(),
            (Some(written), None) => {
                let place = self.tree.find_place("environment").0;
                self.templates.render_text(written.values.first()?, &place, names, found)?
            }
        };
        names.insert("environment".to_owned(), to_dynamic(&Scalar::Text(name.clone())));
        Some(name)
    }

    fn environment_file(&self, name: &str, found: &mut Diagnostics) -> Option<server::EnvironmentAsWritten> {
        match self.files.environment(name) {
            Ok(source) => server::read(name, &source, found),
            Err(problem) => {
                let list = self.tree.get("environment").map(Node::items).unwrap_or_default();
                let place = list.iter().find(|item| item.text() == Some(name)).map(|item| item.place.clone());
                let place = place.unwrap_or_else(|| self.tree.find_place("environment").0);
                found.push(Diagnostic::new(place, problem.message).maybe_hint(problem.hint));
                None
            }
        }
    }

    /// Names of the steps of the first treatment; `None` when it cannot be bound.
    fn first_steps(&self, found: &mut Diagnostics) -> Option<Vec<String>> {
        let first = treatments(&self.design).next()?;
        let bound = self.bind_into(&first, found)?;
        Some(bound.trial.steps.into_iter().map(|step| step.name).collect())
    }

    /// Factors of the file that could not be understood: templates that use them are not to blame.
    fn broken_factors(&self) -> Vec<String> {
        let written = self.tree.find("design.factors").map(Node::entries).unwrap_or_default().iter();
        let known = |name: &str| self.design.factors.iter().any(|factor| factor.name == name);
        written.filter(|(key, _)| !known(&key.text)).map(|(key, _)| format!("`{}`", key.text)).collect()
    }

    fn lint(&self, found: &mut Diagnostics) {
        let sql: Vec<Arc<Source>> = self.files.used().into_iter().map(|(_, source)| source).collect();
        found.extend(warnings(&self.tree, &self.design, &self.templates, &sql));
    }

    fn hash_of(&self, only: &[String]) -> String {
        if let Some(list) = self.environment.as_ref().filter(|environment| environment.is_list) {
            for name in &list.values {
                // Whether it can be read is found when it is bound.
                let _ = self.files.environment(name);
            }
        }
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        part(&self.resolved.to_string());
        part(&only.join("\n"));
        for (name, source) in self.files.used() {
            part(&name);
            part(&source.text);
        }
        let mut text = String::with_capacity(64);
        for byte in hash.finalize() {
            use std::fmt::Write as _;
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// Names that could stand for `environment`, for completions and messages.
    #[must_use]
    pub fn environments(&self) -> String {
        one_of(self.files.environment_names().iter().map(String::as_str))
    }
}
