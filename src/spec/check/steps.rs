//! Rules for the sequence of steps: what must have happened before.

use std::collections::HashSet;

use super::finding::Finding;
use super::{dump, load, read, sql};
use crate::model::{BoundTrial, Dump, Load, LoadMethod, Read, Restore, SameTransaction, Step, StepKind};

/// Most clients of a step: PostgreSQL forks a process for each.
const MAX_CLIENTS: u32 = 1000;

/// All findings about the steps of a trial.
pub(super) fn check(trial: &BoundTrial) -> Vec<Finding> {
    let mut history = History::new(trial);
    for index in 0..trial.steps.len() {
        history.step(index);
    }
    let mut findings = history.findings;
    let works = |kind: &StepKind| {
        matches!(kind, StepKind::Load(_) | StepKind::Sql { .. } | StepKind::Restore(_) | StepKind::Command(_))
    };
    if !trial.steps.iter().any(|step| works(&step.kind)) {
        let message = "no step loads rows, runs SQL or a command, so there is nothing to measure";
        findings.push(Finding::new("steps", message).hint("add a `load` step"));
    }
    findings
}

/// What the steps so far have done to each table.
#[derive(Clone, Default)]
struct Past {
    /// Step that created it.
    created: Option<usize>,
    /// Step that made its indexes.
    indexed: Option<usize>,
    /// Step that loaded it.
    loaded: Option<usize>,
}

struct History<'a> {
    trial: &'a BoundTrial,
    tables: Vec<Past>,
    names: HashSet<&'a str>,
    /// Whether an `sql` step has run: it may have created, filled or emptied anything.
    sql: bool,
    findings: Vec<Finding>,
}

impl<'a> History<'a> {
    fn new(trial: &'a BoundTrial) -> Self {
        let tables = vec![Past::default(); trial.tables.len()];
        Self { trial, tables, names: HashSet::new(), sql: false, findings: Vec::new() }
    }

    fn step(&mut self, index: usize) {
        let step = &self.trial.steps[index];
        if !self.names.insert(&step.name) {
            let pointer = format!("steps.{index}.{}.name", key(&step.kind));
            let message = format!("a step named `{}` stands above already", step.name);
            self.findings.push(Finding::new(pointer, message).hint("give the step its own `name`"));
        }
        if step.timeout.is_zero() {
            let pointer = format!("steps.{index}.{}.timeout", key(&step.kind));
            self.findings
                .push(Finding::new(pointer, "a step cannot be done in no time").expected("a time above 0"));
        }
        match &step.kind {
            StepKind::Create { table, with_indexes } => self.create(index, *table, *with_indexes),
            StepKind::Index { table } => self.index(index, *table),
            StepKind::Sql { statements, transaction } => self.sql_step(index, statements, *transaction),
            // A program may do anything that SQL may do.
            StepKind::Command(_) => self.sql = true,
            StepKind::Load(load) => self.load(index, load),
            StepKind::Read(read) => self.read(index, read),
            StepKind::Dump(dump) => self.dump(index, dump),
            StepKind::Restore(restore) => self.restore(index, restore),
        }
    }

    fn report(&mut self, pointer: String, message: String, hint: &str) {
        self.findings.push(Finding::new(pointer, message).hint(hint));
    }

    fn name(&self, table: usize) -> &'a str {
        &self.trial.tables[table].name
    }

    fn step_name(&self, step: usize) -> &'a str {
        &self.trial.steps[step].name
    }

    fn create(&mut self, index: usize, table: usize, with_indexes: bool) {
        if let Some(before) = self.tables[table].created {
            let message = format!(
                "table `{}` is created by step `{}` already",
                self.name(table),
                self.step_name(before)
            );
            self.report(format!("steps.{index}.create"), message, "take one of them out");
        }
        self.tables[table].created.get_or_insert(index);
        if with_indexes {
            self.tables[table].indexed = Some(index);
        }
    }

    fn index(&mut self, index: usize, table: usize) {
        self.needs_table(index, "index", table);
        let has_indexes = self.trial.tables[table].copies.iter().any(|copy| !copy.indexes.is_empty());
        if let Some(before) = self.tables[table].indexed.filter(|_| has_indexes) {
            let message = format!(
                "step `{}` makes the indexes of table `{}` already",
                self.step_name(before),
                self.name(table)
            );
            let hint = "create the table with `{table: ..., without: indexes}`";
            self.report(format!("steps.{index}.index"), message, hint);
        }
        self.tables[table].indexed.get_or_insert(index);
    }

    fn sql_step(&mut self, index: usize, statements: &[String], transaction: bool) {
        self.sql = true;
        self.findings.extend(sql::check(index, statements, transaction, self.trial.environment.versions));
        let empties = |sql: &String| {
            let upper = sql.to_ascii_uppercase();
            ["TRUNCATE", "DELETE", "DROP"].iter().any(|word| upper.contains(word))
        };
        if statements.iter().any(empties) {
            self.tables.iter_mut().for_each(|past| past.loaded = None);
        }
    }

    /// A load that creates its table leaves the indexes out.
    fn indexes_come_later(&mut self, index: usize, table: usize) {
        let has_indexes = self.trial.tables[table].copies.iter().any(|copy| !copy.indexes.is_empty());
        let later = self.trial.steps.iter().skip(index);
        let made = |step: &Step| matches!(step.kind, StepKind::Index { table: made } if made == table);
        if has_indexes && !later.clone().any(made) {
            let message = format!("nothing makes the indexes of table `{}`", self.name(table));
            let pointer = format!("steps.{index}.load.method.copy.same_transaction");
            let hint = "add `- index: TABLE` after this step, or take `indexes` out of the table";
            self.report(pointer, message, hint);
        }
    }

    fn load(&mut self, index: usize, load: &Load) {
        let table = load.table;
        let same_transaction = match &load.method {
            LoadMethod::Copy(copy) => copy.same_transaction,
            _ => SameTransaction::None,
        };
        match (same_transaction, self.tables[table].created) {
            (SameTransaction::Create, Some(before)) => {
                let message = format!(
                    "this load creates table `{}` itself, but step `{}` has created it",
                    self.name(table),
                    self.step_name(before)
                );
                let pointer = format!("steps.{index}.load.method.copy.same_transaction");
                self.report(
                    pointer,
                    message,
                    "take the earlier step out, or use `same_transaction: truncate`",
                );
            }
            (SameTransaction::Create, None) => {
                self.tables[table].created = Some(index);
                self.indexes_come_later(index, table);
            }
            _ => self.needs_table(index, "load", table),
        }
        if same_transaction != SameTransaction::Truncate
            && let Some(before) = self.tables[table].loaded
        {
            let message = format!(
                "step `{}` has loaded table `{}` already: the same rows would come twice, keys would collide and no count would hold",
                self.step_name(before),
                self.name(table)
            );
            let hint = "use `same_transaction: truncate` (copy), an `sql` step with TRUNCATE before it, or a second table";
            self.report(format!("steps.{index}.load.table"), message, hint);
        }
        self.tables[table].loaded = Some(index);
        self.clients(index, "load", load.clients);
        let (table, timeout) = (&self.trial.tables[table], self.trial.steps[index].timeout);
        self.findings.extend(load::check(index, load, table, timeout));
    }

    fn read(&mut self, index: usize, read: &Read) {
        self.needs_table(index, "read", read.table);
        let past = &self.tables[read.table];
        if past.created.is_some() && past.loaded.is_none() && !self.sql {
            let message =
                format!("table `{}` is read, but no step before has loaded it", self.name(read.table));
            self.report(format!("steps.{index}.read.table"), message, "put a `load` step before it");
        }
        self.clients(index, "read", read.clients);
        let table = &self.trial.tables[read.table];
        self.findings.extend(read::check(index, read, table, &self.trial.environment));
        self.findings.extend(read::never_cold(index, read, &self.trial.needs));
    }

    fn dump(&mut self, index: usize, dump: &Dump) {
        self.findings.extend(dump::dump(index, dump));
        for table in &dump.tables {
            if self.tables[*table].created.is_none() && !self.sql {
                let message =
                    format!("table `{}` does not exist here, so it cannot be dumped", self.name(*table));
                let hint = "name the tables that exist: `tables: [...]`, or create and load it before";
                self.report(format!("steps.{index}.dump"), message, hint);
            }
            if dump.drop {
                self.tables[*table] = Past::default();
            }
        }
    }

    fn restore(&mut self, index: usize, restore: &Restore) {
        self.findings.extend(dump::restore(index, restore));
        for table in &restore.tables {
            if let Some(before) = self.tables[*table].created.filter(|_| !self.sql) {
                let message = format!(
                    "table `{}` would be restored, but step `{}` has created it and nothing has dropped it",
                    self.name(*table),
                    self.step_name(before)
                );
                let hint = "leave the `dump` step's `drop` at true, or take the earlier step out";
                self.report(format!("steps.{index}.restore.from"), message, hint);
            }
            let indexed = restore.with_indexes.then_some(index);
            self.tables[*table] = Past { created: Some(index), indexed, loaded: Some(index) };
        }
        // A dump that no table describes may bring anything.
        self.sql |= restore.tables.is_empty();
        let pointer = format!("steps.{index}.restore.jobs");
        self.findings.extend(super::settings::connections(&self.trial.environment, restore.jobs, pointer));
    }

    fn needs_table(&mut self, index: usize, key: &str, table: usize) {
        if self.tables[table].created.is_some() {
            return;
        }
        let pointer = if key == "index" {
            format!("steps.{index}.index")
        } else {
            format!("steps.{index}.{key}.table")
        };
        let message = format!("table `{}` does not exist yet", self.name(table));
        let hint = format!("put `- create: {}` before it", self.name(table));
        self.report(pointer, message, &hint);
        // Said once; what follows is checked as if it existed.
        self.tables[table].created = Some(index);
    }

    fn clients(&mut self, index: usize, key: &str, clients: u32) {
        let pointer = format!("steps.{index}.{key}.clients");
        if clients == 0 || clients > MAX_CLIENTS {
            let finding = Finding::new(pointer, format!("a step cannot have {clients} clients"));
            self.findings.push(finding.expected(format!("1 to {MAX_CLIENTS}")));
            return;
        }
        self.findings.extend(super::settings::connections(&self.trial.environment, clients, pointer));
    }
}

/// The key of a step in the file.
fn key(kind: &StepKind) -> &'static str {
    match kind {
        StepKind::Create { .. } => "create",
        StepKind::Index { .. } => "index",
        StepKind::Sql { .. } => "sql",
        StepKind::Command(_) => "command",
        StepKind::Load(_) => "load",
        StepKind::Read(_) => "read",
        StepKind::Dump(_) => "dump",
        StepKind::Restore(_) => "restore",
    }
}
