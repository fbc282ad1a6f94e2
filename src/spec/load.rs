//! From a path to a [`Spec`]: everything that can be known without looking at one treatment.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crate::model::Design;
use crate::plan::smoke_design;
use crate::spec::bind::bind;
use crate::spec::design::{count, level_of, resolve, restrict};
use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::experiment::{Spec, surviving};
use crate::spec::files::{self, FileProblem, Files};
use crate::spec::overrides::{apply_profile, apply_set, command_line};
use crate::spec::rows_from::RowFiles;
use crate::spec::sql_cache::SqlCache;
use crate::spec::suggest::nearest;
use crate::spec::template::Templates;
use crate::spec::tree::{Node, Place, Source, Value};
use crate::spec::wire::experiment::ExperimentFile;
use crate::spec::wire::scalar::OneOrMany;
use crate::spec::yaml::parse;

/// What the command line changes.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// A profile of the file.
    pub profile: Option<String>,
    /// `key.path=value`, applied after the profile, in this order.
    pub set: Vec<String>,
    /// `factor=level`: only these levels are kept.
    pub only: Vec<String>,
    /// Rows, durations and blocks are capped: see [`crate::plan::smoke_trial`].
    pub smoke: bool,
    /// Folder with environment files, instead of the usual places.
    pub environments: Option<PathBuf>,
    /// loadlab's cache, where rows of files are kept; `None`: a folder for temporary files.
    pub cache: Option<PathBuf>,
}

/// Reads an experiment file and applies profile, `--set` and `--only`.
///
/// # Errors
/// Everything that is wrong with the file as such. When something is, the mistakes of the first treatment
/// are added, so that one pass shows as much as possible.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Spec, Diagnostics> {
    let source = files::read(path).and_then(|source| fit(source, options)).map_err(|problem| {
        let place = Place {
            source: Arc::new(Source { name: path.display().to_string(), text: String::new() }),
            start: 0,
            end: 0,
        };
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
    if let Err(problem) = count(&design) {
        found.push(problem.diagnostic(&tree));
    }
    if options.smoke {
        smoke_design(&mut design);
    }
    let mut spec = Spec {
        name: file.experiment.unwrap_or_default(),
        question: file.question.unwrap_or_default(),
        expectation: file.expectation,
        design,
        smoke: options.smoke,
        claims: Vec::new(),
        file: path.to_owned(),
        source_text: source.text.clone(),
        resolved: resolved(&tree),
        hash: String::new(),
        warnings: Diagnostics::default(),
        files: Files::new(path, options.environments.as_deref()),
        templates: Templates::default(),
        environments: Mutex::default(),
        sql: SqlCache::default(),
        rows: RowFiles::new(path.parent().unwrap_or(Path::new("")), options.cache.as_deref()),
        tree,
        environment,
    };
    let mut first_found = Diagnostics::default();
    let steps = spec.known_steps(&file.claims, &mut first_found);
    let changed = options.profile.is_some() || !options.set.is_empty();
    let claims = (file.claims.as_slice(), claim_indexes.as_slice());
    spec.claims = spec.claims(claims, &file.sources, steps.as_ref(), &whole_design, changed, &mut found);
    spec.lint(&mut found);
    if found.has_errors() {
        let broken = spec.broken_factors();
        first_found.items.retain(|item| !broken.iter().any(|name| item.message.contains(name)));
        found.extend(first_found);
        let (mut errors, _) = found.split_warnings();
        errors.sort(&source.name);
        return Err(errors);
    }
    spec.hash = spec.hash_of(&options.only);
    found.sort(&source.name);
    spec.warnings = found;
    Ok(spec)
}

/// Refuses an empty file, and a folder of environments that is none: the ones built in would silently be taken.
fn fit(source: Arc<Source>, options: &LoadOptions) -> Result<Arc<Source>, FileProblem> {
    if source.text.trim().is_empty() {
        return Err(FileProblem::new(
            format!("`{}` is empty", source.name),
            "start from experiments/quickstart.yaml",
        ));
    }
    match options.environments.as_deref().filter(|folder| !folder.is_dir()) {
        Some(folder) => Err(FileProblem::new(
            format!("`{}` is not a folder", folder.display()),
            "give `--environments` the folder of the environment files",
        )),
        None => Ok(source),
    }
}

/// Keys that every experiment has; checked here so that their absence hides nothing else.
fn missing_keys(tree: &Node, file: &ExperimentFile, found: &mut Diagnostics) {
    for (key, hint) in [
        ("experiment", "the name under which results are kept, such as `experiment: unlogged`"),
        ("question", "say what is asked, in one sentence"),
        ("tables", "every experiment has at least one table"),
        ("steps", "say what a trial does, such as `- create: orders`"),
    ] {
        // A misspelt key is an unknown key, which says what was meant.
        let misspelt = tree
            .entries()
            .iter()
            .any(|(other, _)| other.text != key && nearest(&other.text, [key]).is_some());
        if !misspelt && tree.get(key).is_none_or(|node| node.value == Value::Null) {
            found.push(tree.problem("", format!("the key `{key}` is missing")).hint(hint));
        }
    }
    if let Some(name) = &file.experiment {
        let fits = name.starts_with(|c: char| c.is_ascii_alphanumeric())
            && name.len() <= 64
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        if !fits {
            let problem = tree.problem("experiment", format!("`{name}` cannot be the name of an experiment"));
            found.push(
                problem
                    .expected("letters, digits, `-` and `_`, at most 64")
                    .hint("results go into a folder of this name"),
            );
        }
    }
    if tree
        .get("tables")
        .is_some_and(|tables| matches!(&tables.value, Value::Map(entries) if entries.is_empty()))
    {
        found.push(
            tree.problem("tables", "there are no tables").hint("every experiment has at least one table"),
        );
    }
    if tree.get("steps").is_some_and(|steps| matches!(&steps.value, Value::List(items) if items.is_empty())) {
        found.push(
            tree.problem("steps", "there are no steps")
                .hint("say what a trial does, such as `- create: orders`"),
        );
    }
}

fn environment(tree: &Node, found: &mut Diagnostics) -> Option<OneOrMany> {
    let node = tree.get("environment")?;
    let environment = bind::<OneOrMany>(node, found).0?;
    if environment.values.is_empty() {
        found.push(
            tree.problem("environment", "no environment is named").hint("leave the key away for `postgres`"),
        );
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
                Diagnostic::new(command_line("--only", option), "a level is missing here")
                    .expected("`--only factor=level`"),
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
