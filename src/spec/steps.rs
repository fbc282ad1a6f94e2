//! `steps` of one treatment: names resolved, options checked, defaults filled in.

use std::time::Duration;

use crate::model::{
    Cache, Copy, CopyFormat, CopySource, Decode, Insert, Load, LoadMethod, Read, ReadMethod, SameTransaction,
    SelectMode, Step, StepKind, Table, TextOrBinary, Until, Verify,
};
use crate::spec::ddl::split_statements;
use crate::spec::diagnostic::Diagnostics;
use crate::spec::suggest::{did_you_mean, one_of};
use crate::spec::tree::Node;
use crate::spec::units::{Count, Span};
use crate::spec::wire::step::{
    CopyFile, InsertFile, LoadFile, LoadMethodFile, ReadFile, ReadMethodFile, SelectModeFile, StepFile,
    VerifyWord,
};

/// Longest time of a step without a word about it.
const DEFAULT_TIMEOUT: Duration = Duration::from_hours(1);
/// Most connections of one step.
const MAX_CLIENTS: u32 = 1000;
/// Bytes of one COPY message, smallest, default and largest.
const CHUNK_BYTES: (u32, u32, u32) = (1024, 64 * 1024, 64 * 1024 * 1024);

/// Binds the steps of a treatment.
pub struct StepBinder<'a> {
    /// Rendered tree, for places.
    pub tree: &'a Node,
    /// The tables that could be bound.
    pub tables: &'a [Table],
    /// Names of all tables of the file, also of those that are wrong.
    pub table_names: &'a [&'a str],
}

impl StepBinder<'_> {
    /// All steps; `indexes` are their places in the file's list.
    pub fn bind(&self, files: &[StepFile], indexes: &[usize], found: &mut Diagnostics) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        for (file, index) in files.iter().zip(indexes) {
            let path = format!("steps.{index}");
            let kind = self.kind(file, &path, found);
            let (given, default, timeout, word) = header(file);
            let path = format!("{path}.{word}");
            if let Some(name) = given {
                self.check_name(name, &path, &steps, found);
            }
            let name = given.map_or_else(|| unique(default, &steps, files), str::to_owned);
            let timeout = timeout.map_or(DEFAULT_TIMEOUT, |span| span.0);
            steps.extend(kind.map(|kind| Step { name, timeout, kind }));
        }
        verify_at_end(files, &mut steps);
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

    fn kind(&self, file: &StepFile, path: &str, found: &mut Diagnostics) -> Option<StepKind> {
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
            StepFile::Load(load) => self.load(load, &format!("{path}.load"), found).map(StepKind::Load),
            StepFile::Read(read) => self.read(read, &format!("{path}.read"), found).map(StepKind::Read),
        }
    }

    /// Index of a table; `path` may be the step itself when only the name is written.
    fn table(&self, name: &str, path: &str, found: &mut Diagnostics) -> Option<usize> {
        if let Some(index) = self.tables.iter().position(|table| table.name == name) {
            return Some(index);
        }
        // Without any table, that is the mistake.
        if !self.table_names.is_empty() && !self.table_names.contains(&name) {
            let problem = self.tree.problem(&format!("{path}.table"), format!("there is no table `{name}`"));
            let hint = did_you_mean(name, self.table_names.iter().copied());
            found.push(problem.expected(one_of(self.table_names.iter().copied())).maybe_hint(hint));
        }
        None
    }

    fn load(&self, file: &LoadFile, path: &str, found: &mut Diagnostics) -> Option<Load> {
        let table = self.table(&file.table, path, found);
        let clients = self.clients(file.clients, path, found);
        let method = match &file.method {
            LoadMethodFile::Insert(insert) => self.insert(insert, path, found).map(LoadMethod::Insert),
            LoadMethodFile::Copy(copy) => self.copy(copy, path, found).map(LoadMethod::Copy),
        };
        Some(Load {
            table: table?,
            method: method?,
            clients: clients?,
            until: file.until.map_or(Until::Committed, Until::from),
            // `auto` is decided when all steps are known.
            verify: if file.verify == Some(VerifyWord::End) { Verify::End } else { Verify::Now },
        })
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

    /// A number of rows, which must be at least 1 where it is given.
    fn rows(&self, count: Option<Count>, path: &str, found: &mut Diagnostics) -> Option<u64> {
        if count == Some(Count(0)) {
            let problem = self.tree.problem(path, "0 rows are not possible here");
            found.push(problem.expected("at least 1, or no such key"));
        }
        count.map(|count| count.0).filter(|count| *count > 0)
    }

    fn insert(&self, file: &InsertFile, path: &str, found: &mut Diagnostics) -> Option<Insert> {
        let path = format!("{path}.method.insert");
        let per_statement = self.rows(file.rows_per_statement, &format!("{path}.rows_per_statement"), found);
        let per_batch = self.rows(file.rows_per_batch, &format!("{path}.rows_per_batch"), found);
        let per_commit = self.rows(file.rows_per_commit, &format!("{path}.rows_per_commit"), found);
        let rows_per_statement = per_statement.unwrap_or(1);
        let rows_per_batch = per_batch.unwrap_or(rows_per_statement);
        if !rows_per_batch.is_multiple_of(rows_per_statement) {
            let message = format!(
                "a batch of {rows_per_batch} rows is not made of whole statements of {rows_per_statement} rows"
            );
            let problem = self.tree.problem(&format!("{path}.rows_per_batch"), message);
            found.push(problem.expected(format!("a multiple of {rows_per_statement}")));
            return None;
        }
        Some(Insert {
            rows_per_statement,
            rows_per_batch,
            rows_per_commit: per_commit,
            prepared: file.prepared.unwrap_or(true),
        })
    }

    fn copy(&self, file: &CopyFile, path: &str, found: &mut Diagnostics) -> Option<Copy> {
        let path = format!("{path}.method.copy");
        let rows_per_commit = self.rows(file.rows_per_commit, &format!("{path}.rows_per_commit"), found);
        let (smallest, default, largest) = CHUNK_BYTES;
        let chunk = file.chunk.map_or(u64::from(default), |size| size.0);
        let chunk_bytes = u32::try_from(chunk).ok().filter(|bytes| (smallest..=largest).contains(bytes));
        if chunk_bytes.is_none() {
            let problem = self
                .tree
                .problem(&format!("{path}.chunk"), format!("a message of {chunk} bytes is not possible"));
            found.push(problem.expected("`1kB` to `64MB`"));
        }
        Some(Copy {
            format: file.format.map_or(CopyFormat::Text, CopyFormat::from),
            freeze: file.freeze.unwrap_or(false),
            source: file.source.map_or(CopySource::Client, CopySource::from),
            same_transaction: file.same_transaction.map_or(SameTransaction::None, SameTransaction::from),
            rows_per_commit,
            chunk_bytes: chunk_bytes?,
            header: file.header.unwrap_or(false),
        })
    }

    fn read(&self, file: &ReadFile, path: &str, found: &mut Diagnostics) -> Option<Read> {
        let table = self.table(&file.table, path, found);
        let clients = self.clients(file.clients, path, found);
        let method = match &file.method {
            ReadMethodFile::Select(select) => {
                let mode = match &select.mode {
                    None | Some(SelectModeFile::All) => SelectMode::All,
                    Some(SelectModeFile::Streamed) => SelectMode::Streamed,
                    Some(SelectModeFile::Portal(portal)) => {
                        SelectMode::Portal { fetch_size: portal.fetch_size }
                    }
                };
                if mode == (SelectMode::Portal { fetch_size: 0 }) {
                    let problem = self.tree.problem(
                        &format!("{path}.method.select.mode.portal.fetch_size"),
                        "a fetch size of 0 reads nothing",
                    );
                    found.push(problem.expected("at least 1"));
                    return None;
                }
                ReadMethod::Select {
                    mode,
                    format: select.format.map_or(TextOrBinary::Binary, TextOrBinary::from),
                }
            }
            ReadMethodFile::CopyOut(copy) => {
                ReadMethod::CopyOut { format: copy.format.map_or(CopyFormat::Text, CopyFormat::from) }
            }
        };
        let table = table?;
        Some(Read {
            table,
            columns: self.read_columns(file.columns.as_ref(), &self.tables[table], path, found)?,
            method,
            decode: file.decode.map_or(Decode::None, Decode::from),
            clients: clients?,
            cache: file.cache.map_or(Cache::AsIs, Cache::from),
        })
    }

    fn read_columns(
        &self,
        names: Option<&Vec<String>>,
        table: &Table,
        path: &str,
        found: &mut Diagnostics,
    ) -> Option<Vec<String>> {
        let known = || table.columns.iter().map(|column| column.name.as_str());
        let Some(names) = names else { return Some(known().map(str::to_owned).collect()) };
        if names.is_empty() {
            found.push(
                self.tree
                    .problem(&format!("{path}.columns"), "no columns would be read")
                    .hint("leave `columns` away for all"),
            );
            return None;
        }
        let mut fine = true;
        for (index, name) in names.iter().enumerate() {
            if !known().any(|column| column == name) {
                let problem = self.tree.problem(
                    &format!("{path}.columns.{index}"),
                    format!("the table `{}` has no column `{name}`", table.name),
                );
                found.push(problem.expected(one_of(known())).maybe_hint(did_you_mean(name, known())));
                fine = false;
            }
        }
        fine.then(|| names.clone())
    }
}

/// Name as given, default name, timeout, and the key of the step's map.
fn header(file: &StepFile) -> (Option<&str>, &'static str, Option<Span>, &'static str) {
    match file {
        StepFile::Create(step) => (step.0.name.as_deref(), "create", step.0.timeout, "create"),
        StepFile::Index(step) => (step.0.name.as_deref(), "index", step.0.timeout, "index"),
        StepFile::Sql(step) => (step.0.name.as_deref(), "sql", step.0.timeout, "sql"),
        StepFile::Load(step) => {
            let method = match step.method {
                LoadMethodFile::Insert(_) => "insert",
                LoadMethodFile::Copy(_) => "copy",
            };
            (step.name.as_deref(), method, step.timeout, "load")
        }
        StepFile::Read(step) => {
            let method = match step.method {
                ReadMethodFile::Select(_) => "select",
                ReadMethodFile::CopyOut(_) => "copy_out",
            };
            (step.name.as_deref(), method, step.timeout, "read")
        }
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

/// `verify: auto`: at the end when a later step reads the table, so that the read meets it as it was loaded.
fn verify_at_end(files: &[StepFile], steps: &mut [Step]) {
    if files.len() != steps.len() {
        return;
    }
    for index in 0..steps.len() {
        let StepFile::Load(LoadFile { verify: None | Some(VerifyWord::Auto), .. }) = &files[index] else {
            continue;
        };
        let StepKind::Load(Load { table, .. }) = steps[index].kind else { continue };
        let read_later = steps[index + 1..]
            .iter()
            .any(|step| matches!(&step.kind, StepKind::Read(read) if read.table == table));
        if let (true, StepKind::Load(load)) = (read_later, &mut steps[index].kind) {
            load.verify = Verify::End;
        }
    }
}
