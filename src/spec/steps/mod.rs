//! `steps` of one treatment: names resolved, options checked, defaults filled in.

mod command;
mod dump;
mod load;
mod read;

use std::path::Path;
use std::time::Duration;

use crate::model::{Step, StepKind, Table};
use crate::spec::ddl::split_statements;
use crate::spec::diagnostic::Diagnostics;
use crate::spec::files::Files;
use crate::spec::suggest::{did_you_mean, one_of};
use crate::spec::tree::Node;
use crate::spec::units::{Count, Span};
use crate::spec::wire::step::{ReadFile, StepFile};

/// Longest time of a step without a word about it.
const DEFAULT_TIMEOUT: Duration = Duration::from_hours(1);
/// Most connections of one step.
const MAX_CLIENTS: u32 = 1000;
/// Most repetitions of a read inside one trial.
const MAX_REPETITIONS: u32 = 1000;

/// Binds the steps of a treatment.
pub struct StepBinder<'a> {
    /// Rendered tree, for places.
    pub tree: &'a Node,
    /// The tables that could be bound.
    pub tables: &'a [Table],
    /// Names of all tables of the file, also of those that are wrong.
    pub table_names: &'a [&'a str],
    /// Files that the experiment names.
    pub files: &'a Files,
    /// Folder of the experiment file.
    pub folder: &'a Path,
}

impl StepBinder<'_> {
    /// All steps; `indexes` are their places in the file's list.
    pub fn bind(&self, files: &[StepFile], indexes: &[usize], found: &mut Diagnostics) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for (file, index) in files.iter().zip(indexes) {
            let path = format!("steps.{index}");
            let kind = self.kind(file, &path, &steps, found);
            let (given, default, timeout, word) = header(file);
            let path = format!("{path}.{word}");
            if let Some(name) = given {
                self.check_name(name, &path, &steps, found);
            }
            let name = given.map_or_else(|| unique(default, &steps, files), str::to_owned);
            let timeout = timeout.map_or(DEFAULT_TIMEOUT, |span| span.0);
            let repeat = self.repetitions(file, &path, found);
            steps.extend(kind.map(|kind| Step { name, repeat, timeout, kind }));
        }
        dump::verify_at_end(files, &mut steps);
        steps
    }

    fn check_name(&self, name: &str, path: &str, steps: &[Step], found: &mut Diagnostics) {
        let path = format!("{path}.name");
        let fits = name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.len() <= 40
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        if !fits {
            let problem = self.tree.problem(&path, format!("`{name}` cannot be the name of a step"));
            found.push(
                problem
                    .expected("a lower-case letter, then lower-case letters, digits and `_`, at most 40")
                    .hint("metrics are called `<step>.rows_per_second`"),
            );
        }
        if steps.iter().any(|step| step.name == name) {
            found.push(
                self.tree
                    .problem(&path, format!("two steps are called `{name}`"))
                    .hint("give one of them another name"),
            );
        }
    }

    fn kind(
        &self,
        file: &StepFile,
        path: &str,
        before: &[Step],
        found: &mut Diagnostics,
    ) -> Option<StepKind> {
        match file {
            StepFile::Create(create) => {
                let table = self.table(&create.0.table, &format!("{path}.create"), found)?;
                Some(StepKind::Create { table, with_indexes: create.0.without.is_none() })
            }
            StepFile::Index(index) => {
                let table = self.table(&index.0.table, &format!("{path}.index"), found)?;
                Some(StepKind::Index { table })
            }
            StepFile::Sql(sql) => {
                let statements: Vec<String> =
                    split_statements(&sql.0.run).into_iter().map(|(_, text)| text).collect();
                if statements.is_empty() {
                    found.push(self.tree.problem(&format!("{path}.sql"), "there is no SQL statement here"));
                    return None;
                }
                Some(StepKind::Sql { statements, transaction: sql.0.transaction.unwrap_or(false) })
            }
            StepFile::Command(command) => {
                self.command(command, &format!("{path}.command"), found).map(StepKind::Command)
            }
            StepFile::Load(load) => self.load(load, &format!("{path}.load"), found).map(StepKind::Load),
            StepFile::Read(read) => self.read(read, &format!("{path}.read"), found).map(StepKind::Read),
            StepFile::Dump(dump) => self.dump(dump, &format!("{path}.dump"), found).map(StepKind::Dump),
            StepFile::Restore(restore) => {
                self.restore(restore, &format!("{path}.restore"), before, found).map(StepKind::Restore)
            }
        }
    }

    /// Index of a table; `path` may be the step itself when only the name is written.
    fn table(&self, name: &str, path: &str, found: &mut Diagnostics) -> Option<usize> {
        self.table_at(name, &format!("{path}.table"), found)
    }

    /// Index of a table whose name stands at `path`.
    fn table_at(&self, name: &str, path: &str, found: &mut Diagnostics) -> Option<usize> {
        if let Some(index) = self.tables.iter().position(|table| table.name == name) {
            return Some(index);
        }
        // Without any table, that is the mistake.
        if !self.table_names.is_empty() && !self.table_names.contains(&name) {
            let problem = self.tree.problem(path, format!("there is no table `{name}`"));
            let hint = did_you_mean(name, self.table_names.iter().copied());
            found.push(problem.expected(one_of(self.table_names.iter().copied())).maybe_hint(hint));
        }
        None
    }

    fn clients(&self, clients: Option<u32>, path: &str, found: &mut Diagnostics) -> Option<u32> {
        let clients = clients.unwrap_or(1);
        if (1..=MAX_CLIENTS).contains(&clients) {
            return Some(clients);
        }
        let problem =
            self.tree.problem(&format!("{path}.clients"), format!("{clients} clients are not possible"));
        found.push(problem.expected(format!("1 to {MAX_CLIENTS}")));
        None
    }

    /// How often a step is done in a row: 1 for all but reads that ask for more.
    fn repetitions(&self, file: &StepFile, path: &str, found: &mut Diagnostics) -> u32 {
        let StepFile::Read(ReadFile { repeat: Some(repeat), .. }) = file else { return 1 };
        if !(1..=MAX_REPETITIONS).contains(repeat) {
            let path = format!("{path}.repeat");
            let problem = self.tree.problem(&path, format!("{repeat} repetitions are not possible"));
            found.push(problem.expected(format!("1 to {MAX_REPETITIONS}")));
        }
        (*repeat).clamp(1, MAX_REPETITIONS)
    }

    /// A number of rows, which must be at least 1 where it is given.
    fn rows(&self, count: Option<Count>, path: &str, found: &mut Diagnostics) -> Option<u64> {
        if count == Some(Count(0)) {
            let problem = self.tree.problem(path, "0 rows are not possible here");
            found.push(problem.expected("at least 1, or no such key"));
        }
        count.map(|count| count.0).filter(|count| *count > 0)
    }
}

/// Name as given, default name, timeout, and the key of the step's map.
fn header(file: &StepFile) -> (Option<&str>, &'static str, Option<Span>, &'static str) {
    match file {
        StepFile::Create(step) => (step.0.name.as_deref(), "create", step.0.timeout, "create"),
        StepFile::Index(step) => (step.0.name.as_deref(), "index", step.0.timeout, "index"),
        StepFile::Sql(step) => (step.0.name.as_deref(), "sql", step.0.timeout, "sql"),
        StepFile::Command(step) => (step.name.as_deref(), "command", step.timeout, "command"),
        StepFile::Load(step) => (step.name.as_deref(), load::default_name(step), step.timeout, "load"),
        StepFile::Read(step) => (step.name.as_deref(), read::default_name(step), step.timeout, "read"),
        StepFile::Dump(step) => (step.name.as_deref(), "dump", step.timeout, "dump"),
        StepFile::Restore(step) => (step.name.as_deref(), "restore", step.timeout, "restore"),
    }
}

/// `insert`, `insert_2`, ...: the first that no other step has or asks for.
fn unique(default: &str, steps: &[Step], files: &[StepFile]) -> String {
    let taken = |name: &str| {
        steps.iter().any(|step| step.name == name) || files.iter().any(|file| header(file).0 == Some(name))
    };
    let numbered = (2..).map(|number| format!("{default}_{number}"));
    std::iter::once(default.to_owned()).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
}
