//! A loaded experiment, and the way from a treatment to a bound trial.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::model::{BoundTrial, Claim, Design, Scalar, Treatment};
use crate::plan::smoke_trial;
use crate::spec::bind::bind;
use crate::spec::design::treatments;
use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::files::Files;
use crate::spec::lint::warnings;
use crate::spec::needs::needs;
use crate::spec::render::{Renderer, names_of};
use crate::spec::rows_from::RowFiles;
use crate::spec::server::{self, EnvironmentAsWritten};
use crate::spec::sql_cache::SqlCache;
use crate::spec::steps::StepBinder;
use crate::spec::tables::TableBinder;
use crate::spec::template::{Names, Templates, to_dynamic};
use crate::spec::tree::{Node, Source, Value};
use crate::spec::wire::experiment::TrialFile;
use crate::spec::wire::scalar::OneOrMany;

/// The environment of an experiment that names none.
const DEFAULT_ENVIRONMENT: &str = "postgres";

/// Treatments that are asked for the name of their environment when the hash is made.
const MOST_ENVIRONMENT_NAMES: usize = 4096;

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
    /// Whether [`Spec::bind`] gives treatments with capped rows and durations.
    pub smoke: bool,
    /// Published statements that are re-tested.
    pub claims: Vec<Claim>,
    /// The file.
    pub file: PathBuf,
    /// The file as written.
    pub source_text: String,
    /// The file after profile and `--set`, templates not rendered.
    pub resolved: serde_json::Value,
    /// SHA-256 of `resolved`, of `--only`, of `--smoke` and of every file the experiment names.
    pub hash: String,
    /// What is probably not meant.
    pub warnings: Diagnostics,
    pub(super) tree: Node,
    pub(super) environment: Option<OneOrMany>,
    pub(super) templates: Templates,
    pub(super) files: Files,
    /// Environment files that were read; what was wrong with them is kept as well.
    pub(super) environments: Mutex<BTreeMap<String, Result<Arc<EnvironmentAsWritten>, Diagnostics>>>,
    pub(super) sql: SqlCache,
    /// Files with rows.
    pub(super) rows: RowFiles,
}

/// A bound trial and the trees its values come from.
pub(super) struct Bound {
    pub(super) trial: BoundTrial,
    /// `needs`, `server`, `tables` and `steps`, rendered.
    pub(super) tree: Node,
    /// The environment file.
    pub(super) environment: Arc<EnvironmentAsWritten>,
}

impl Spec {
    /// One treatment with every template rendered, every name resolved and every value checked.
    ///
    /// # Errors
    /// Everything that is wrong with this treatment, but for what only [`Spec::check_all`] looks at.
    pub fn bind(&self, treatment: &Treatment) -> Result<BoundTrial, Diagnostics> {
        let mut found = Diagnostics::default();
        match self.bind_into(treatment, &mut found) {
            Some(mut bound) if !found.has_errors() => {
                if self.smoke {
                    smoke_trial(&mut bound.trial);
                }
                Ok(bound.trial)
            }
            _ => {
                found.sort(&self.tree.place.source.name);
                Err(found)
            }
        }
    }

    /// Folder of the experiment file; what steps and tables name is relative to it.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
    }

    pub(super) fn bind_into(&self, treatment: &Treatment, found: &mut Diagnostics) -> Option<Bound> {
        let mut names = names_of(&self.design, treatment);
        // What a program is told to do cannot be capped from outside: it has to be able to ask.
        names.entry("smoke".to_owned()).or_insert_with(|| to_dynamic(&Scalar::Bool(self.smoke)));
        let environment_name = self.environment_name(&mut names, found);
        let renderer = Renderer { templates: &self.templates, files: &self.files };
        let tree = renderer.trial(&self.tree, &names, found);
        let (file, bound_tree) = bind::<TrialFile>(&tree, found);
        let step_indexes = surviving(&bound_tree, "steps");
        let file = file?;
        let binder = TableBinder {
            tree: &tree,
            templates: &self.templates,
            names: &names,
            seed: self.design.seed,
            sql: &self.sql,
            rows: &self.rows,
        };
        let tables: Vec<_> =
            file.tables.iter().filter_map(|(name, table)| binder.bind(name, table, found)).collect();
        let table_names: Vec<&str> = tree
            .get("tables")
            .map(Node::entries)
            .unwrap_or_default()
            .iter()
            .map(|(key, _)| key.text.as_str())
            .collect();
        let binder = StepBinder {
            tree: &tree,
            tables: &tables,
            table_names: &table_names,
            folder: self.folder(),
            files: &self.files,
        };
        let steps = binder.bind(&file.steps, &step_indexes, found);
        let environment_name = environment_name?;
        let environment = self.environment_file(&environment_name, found)?;
        let needs = needs(&file.needs, &tree, found);
        let spec = environment.resolve(&file.server, &needs, &tree, found)?;
        let trial = BoundTrial { environment: spec, needs, tables, steps };
        (!found.has_errors()).then(|| Bound { trial, tree: without_broken_steps(tree), environment })
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

    fn environment_file(&self, name: &str, found: &mut Diagnostics) -> Option<Arc<EnvironmentAsWritten>> {
        let mut read = self.environments.lock().unwrap_or_else(PoisonError::into_inner);
        let file = read.entry(name.to_owned()).or_insert_with(|| {
            let mut problems = Diagnostics::default();
            let file = match self.files.environment(name) {
                Ok(source) => server::read(name, &source, &mut problems),
                Err(problem) => {
                    let list = self.tree.get("environment").map(Node::items).unwrap_or_default();
                    let place =
                        list.iter().find(|item| item.text() == Some(name)).map(|item| item.place.clone());
                    let place = place.unwrap_or_else(|| self.tree.find_place("environment").0);
                    problems.push(Diagnostic::new(place, problem.message).maybe_hint(problem.hint));
                    None
                }
            };
            file.map(Arc::new).filter(|_| problems.is_empty()).ok_or(problems)
        });
        match file {
            Ok(file) => Some(Arc::clone(file)),
            Err(problems) => {
                found.extend(problems.clone());
                None
            }
        }
    }

    /// Factors of the file that could not be understood: templates that use them are not to blame.
    pub(super) fn broken_factors(&self) -> Vec<String> {
        let written = self.tree.find("design.factors").map(Node::entries).unwrap_or_default().iter();
        let known = |name: &str| self.design.factors.iter().any(|factor| factor.name == name);
        written.filter(|(key, _)| !known(&key.text)).map(|(key, _)| format!("`{}`", key.text)).collect()
    }

    pub(super) fn lint(&self, found: &mut Diagnostics) {
        let sql: Vec<Arc<Source>> = self.files.used().into_iter().map(|(_, source)| source).collect();
        found.extend(warnings(&self.tree, &self.design, &self.templates, &sql));
    }

    /// Reads every environment that a treatment may ask for, so that the hash covers them all. Whether one
    /// can be read is found when it is bound.
    fn read_environments(&self) {
        for treatment in treatments(&self.design).take(MOST_ENVIRONMENT_NAMES) {
            let mut names = names_of(&self.design, &treatment);
            if let Some(name) = self.environment_name(&mut names, &mut Diagnostics::default()) {
                let _ = self.files.environment(&name);
            }
            if self.environment.is_none() {
                return;
            }
        }
    }

    /// Reads every file with rows that a treatment names, for the same reason.
    fn read_row_files(&self) {
        let tables = self.tree.get("tables").map(Node::entries).unwrap_or_default();
        if tables.iter().any(|(_, table)| table.get("rows_from").is_some()) {
            for treatment in treatments(&self.design).take(MOST_ENVIRONMENT_NAMES) {
                // What is wrong with one is told when it is checked.
                drop(self.bind_into(&treatment, &mut Diagnostics::default()));
            }
        }
    }

    pub(super) fn hash_of(&self, only: &[String]) -> String {
        self.read_environments();
        let mut hash = Sha256::new();
        let mut part = |text: &str| {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        };
        part(&self.resolved.to_string());
        part(&only.join("\n"));
        if self.smoke {
            part("smoke");
        }
        self.read_row_files();
        for digest in self.rows.digests() {
            part(&digest);
        }
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
}

/// Indexes of the elements of a list that could be bound.
pub(super) fn surviving(tree: &Node, key: &str) -> Vec<usize> {
    let items = tree.get(key).map(Node::items).unwrap_or_default();
    items.iter().enumerate().filter(|(_, item)| item.value != Value::Broken).map(|(index, _)| index).collect()
}

/// The tree with the steps that a treatment really has, so that the n-th step is the n-th of the trial.
fn without_broken_steps(mut tree: Node) -> Node {
    if let Value::Map(entries) = &mut tree.value {
        for (_, steps) in entries.iter_mut().filter(|(key, _)| key.text == "steps") {
            if let Value::List(items) = &mut steps.value {
                items.retain(|item| item.value != Value::Broken);
            }
        }
    }
    tree
}

#[cfg(test)]
mod tests {
    use crate::model::{ColumnType, Generator, LoadMethod, Persistence, StepKind, TemplatePart};
    use crate::spec::load::{LoadOptions, load};

    use super::*;

    const UNLOGGED: &str = r#"
experiment: unlogged
question: How much does an UNLOGGED table gain on bulk INSERT, with and without indexes?
sources:
  jalvingh-2017: {title: PostgreSQL performance tests, author: F. Jalvingh, date: 2017-06-08, system: PostgreSQL through JDBC}
environment: postgres
design:
  factors:
    storage: [logged, unlogged]
    indexes: [none, pk and two]
    batch: [1, 500, 5000]
    load:
      one: {clients: 1, tables: 1}
      three into one: {clients: 3, tables: 1}
  exclude: [{storage: unlogged, batch: 1}]
  blocks: 6
  seed: 20170608
profiles:
  quick: {tables.h_boekingdetail.rows: 20_000, design.blocks: 2}
server:
  settings: {max_wal_size: 8GB, checkpoint_timeout: 1h, fsync: off}
tables:
  h_boekingdetail:
    ddl: |
      CREATE {{ "UNLOGGED" if storage == "unlogged" }} TABLE h_boekingdetail (
        id_h integer, source_system_id integer, organisation_id integer, load_dts timestamptz, boekingdetailid varchar(255))
    indexes: |
      {% if indexes != "none" %}
      ALTER TABLE h_boekingdetail ADD PRIMARY KEY (id_h);
      CREATE INDEX ON h_boekingdetail (boekingdetailid);
      {% endif %}
    rows: 1_000_000
    values:
      id_h: {sequence: {start: 1_000_000}}
      source_system_id: 1
      organisation_id: 12
      load_dts: 2017-06-08T00:00:00Z
      boekingdetailid: {template: "boe{{ row }}kingdetail{{ row + batch_offset | pad(8) }}"}
steps:
  - create: h_boekingdetail
  - load:
      name: insert
      table: h_boekingdetail
      method: {insert: {rows_per_batch: "{{ batch }}", rows_per_commit: 50_000}}
      clients: "{{ load.clients }}"
claims:
  - id: unlogged-gain
    source: jalvingh-2017
    quote: 1M rows in 7,025 and 6,940 ms UNLOGGED against 7,500 and 7,410 ms logged
    metric: insert.rows_per_second
    ratio: {of: {storage: unlogged}, to: {storage: logged}, where: {indexes: none, batch: 5000}}
    published: 1.07
    needs: {rows: ">= 100_000"}
"#;

    fn loaded(text: &str, options: &LoadOptions) -> Result<Spec, Diagnostics> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x.yaml");
        std::fs::write(&path, text).expect("written");
        load(&path, options)
    }

    fn unlogged(options: &LoadOptions) -> Spec {
        let text = UNLOGGED.replace("row + batch_offset", "row % 10 + 1");
        loaded(&text, options).unwrap_or_else(|found| panic!("{found}"))
    }

    #[test]
    fn the_sketch_of_the_design_is_understood() {
        let spec = unlogged(&LoadOptions::default());
        let report = spec.check_all().unwrap_or_else(|found| panic!("{found}"));
        assert_eq!((report.treatments, report.trials), (20, 120));
        assert!(report.exhaustive && report.warnings.is_empty(), "{}", report.warnings);
        assert_eq!(spec.claims.len(), 1);
        let last = Treatment { levels: vec![1, 1, 2, 1] };
        let trial = spec.bind(&last).unwrap_or_else(|found| panic!("{found}"));
        let table = &trial.tables[0];
        assert_eq!(
            (table.persistence, table.rows, table.seed),
            (Persistence::Unlogged, 1_000_000, 20_170_608)
        );
        assert_eq!(table.copies[0].indexes.len(), 2);
        assert!(table.columns[0].not_null);
        assert_eq!(table.columns[4].kind, ColumnType::Varchar(Some(255)));
        let Generator::Template(parts) = &table.columns[4].generator else { panic!("a template") };
        assert_eq!(parts.len(), 4);
        assert_eq!(parts[3], TemplatePart::Row { divide: 1, modulo: 10, multiply: 1, add: 1, pad: 8 });
        let StepKind::Load(load) = &trial.steps[1].kind else { panic!("a load") };
        assert_eq!(load.clients, 3);
        let LoadMethod::Insert(insert) = &load.method else { panic!("an insert") };
        assert_eq!((insert.rows_per_batch, insert.rows_per_commit), (5000, Some(50_000)));
        assert_eq!(trial.environment.settings.get("fsync"), Some(&Scalar::Text("off".to_owned())));
        let logged = spec.bind(&Treatment { levels: vec![0, 0, 0, 0] }).expect("binds");
        assert!(logged.tables[0].copies[0].indexes.is_empty());
        assert_eq!(logged.tables[0].persistence, Persistence::Logged);
    }

    #[test]
    fn a_spec_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Spec>();
    }

    #[test]
    fn an_environment_may_be_a_template() {
        let text = "
experiment: template
question: q
environment: 'postgres-{{ major }}'
design: {factors: {major: [15, 16, 18]}}
tables: {t: {ddl: CREATE TABLE t (id bigint), rows: 1}}
steps: [{create: t}]
";
        let spec = loaded(text, &LoadOptions::default()).unwrap_or_else(|found| panic!("{found}"));
        let found = spec.check_all().expect_err("there is no 16").to_string();
        assert!(found.contains("there is no environment `postgres-16`"), "{found}");
        assert!(found.contains("when major=16 (1 of 3 treatments)"), "{found}");
    }

    #[test]
    fn profile_set_and_only_change_the_experiment_and_its_hash() {
        let plain = unlogged(&LoadOptions::default());
        let options = LoadOptions {
            profile: Some("quick".to_owned()),
            set: vec![
                "tables.h_boekingdetail.rows=10".to_owned(),
                "server.settings.work_mem=64MB".to_owned(),
            ],
            only: vec!["batch=500".to_owned(), "load=one".to_owned()],
            ..LoadOptions::default()
        };
        let changed = unlogged(&options);
        assert_eq!(changed.design.blocks.max, 2);
        let report = changed.check_all().unwrap_or_else(|found| panic!("{found}"));
        assert_eq!(report.treatments, 4);
        let trial = changed.bind(&Treatment { levels: vec![0, 0, 0, 0] }).expect("binds");
        assert_eq!(trial.tables[0].rows, 10);
        assert!(trial.environment.settings.contains_key("work_mem"));
        assert_ne!(plain.hash, changed.hash);
        assert_eq!(plain.hash, unlogged(&LoadOptions::default()).hash);
    }

    #[test]
    fn unknown_names_beside_row_are_found() {
        let found = loaded(UNLOGGED, &LoadOptions::default())
            .and_then(|spec| spec.check_all())
            .expect_err("misspelt");
        assert!(found.to_string().contains("`batch_offset` is not possible together with `row`"), "{found}");
    }

    #[test]
    fn copies_and_environments_as_factors() {
        let text = "
experiment: copies
question: q
environment: [postgres-15, postgres-18]
design: {factors: {tables: [1, 3]}}
tables:
  t:
    ddl: CREATE TABLE {{ table | ident }} (id bigint PRIMARY KEY, doc jsonb, tags text[])
    indexes: CREATE INDEX ON {{ table }} (id)
    rows: 30
    copies: '{{ tables }}'
    values:
      doc: {object: {n: {uniform: {min: 1, max: '{{ rows }}'}}}, nulls: 10%}
      tags: {array: {length: {min: 0, max: 3}, of: {choice: {a: 3, b: 1}}}}
steps: [{create: {table: t, without: indexes}}, {load: {table: t, method: copy, clients: 3}}, {index: t}, {read: {table: t, method: select}}]
";
        let spec = loaded(text, &LoadOptions::default()).unwrap_or_else(|found| panic!("{found}"));
        let trial = spec.bind(&Treatment { levels: vec![1, 1] }).unwrap_or_else(|found| panic!("{found}"));
        assert_eq!(trial.environment.versions.min, 18);
        assert_eq!(trial.environment.image, "postgres:18");
        let names: Vec<&str> = trial.tables[0].copies.iter().map(|copy| copy.name.as_str()).collect();
        assert_eq!(names, ["t_1", "t_2", "t_3"]);
        assert!((trial.tables[0].columns[1].nulls - 0.1).abs() < 1e-9);
        let StepKind::Load(load) = &trial.steps[1].kind else { panic!("a load") };
        assert_eq!(load.verify, crate::model::Verify::End);
        assert_eq!(trial.steps[3].name, "select");
        let single = spec.bind(&Treatment { levels: vec![0, 0] }).unwrap_or_else(|found| panic!("{found}"));
        assert_eq!(single.tables[0].copies[0].name, "t");
    }

    #[test]
    fn columns_may_be_declared_where_the_sql_is_not_understood() {
        let text = "
experiment: declared
question: q
tables:
  t:
    ddl: CREATE UNLOGGED TABLE t (LIKE other INCLUDING ALL)
    columns: {id: bigint not null, note: varchar(10)}
    rows: 30
steps: [{create: t}]
";
        let spec = loaded(text, &LoadOptions::default()).unwrap_or_else(|found| panic!("{found}"));
        let trial = spec.bind(&Treatment { levels: vec![] }).unwrap_or_else(|found| panic!("{found}"));
        let table = &trial.tables[0];
        assert_eq!(table.persistence, Persistence::Unlogged);
        assert!(table.columns[0].not_null && table.columns[0].kind == ColumnType::Int8);
        assert_eq!(table.columns[1].kind, ColumnType::Varchar(Some(10)));
    }

    #[test]
    fn a_thousand_treatments_are_checked_in_reasonable_time() {
        let levels = (1..=16).map(|level| level.to_string()).collect::<Vec<_>>().join(", ");
        let text = UNLOGGED
            .replace("row + batch_offset", "row")
            .replace(
                "batch: [1, 500, 5000]",
                &format!(
                    "batch: [{levels}]\n    x: [1, 2, 3, 4, 5, 6, 7, 8]\n    y: [1, 2, 3, 4, 5, 6, 7, 8]"
                ),
            )
            .replace(
                "exclude: [{storage: unlogged, batch: 1}]",
                "exclude: [{storage: unlogged}, {indexes: none}, {load: one}]",
            )
            .replace("where: {indexes: none, batch: 5000}", "where: {batch: 5}")
            .replace(
                "- create: h_boekingdetail",
                "- create: h_boekingdetail\n  - sql: SELECT {{ x }} + {{ y }}",
            );
        let text = text[..text.find("claims:").expect("there")].to_owned();
        let started = std::time::Instant::now();
        let spec = loaded(&text, &LoadOptions::default()).unwrap_or_else(|found| panic!("{found}"));
        let report = spec.check_all().unwrap_or_else(|found| panic!("{found}"));
        assert_eq!((report.checked, report.exhaustive), (1024, true));
        assert!(started.elapsed().as_secs() < 20);
    }
}
