//! `tables` of one treatment: SQL rendered for every copy and read, columns tied to generators.

use crate::model::{Column, ColumnType, Generator, Persistence, Scalar, Table, TableCopy};
use crate::spec::by_type::ByType;
use crate::spec::ddl::{ParsedColumn, ParsedTable, SqlFinding, parse_type};
use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::generator::Target;
use crate::spec::plausible::plausible;
use crate::spec::rows_from::RowFiles;
use crate::spec::sql_cache::SqlCache;
use crate::spec::suggest::{did_you_mean, one_of};
use crate::spec::template::{Names, Templates, to_dynamic};
use crate::spec::tree::{Node, shorten};
use crate::spec::wire::table::TableFile;

/// More rows than any table of a benchmark: beyond it, a typing mistake is likelier.
const MAX_ROWS: u64 = 1_000_000_000_000;
/// Most copies of a table.
const MAX_COPIES: u32 = 1000;

/// Binds the tables of a treatment.
pub struct TableBinder<'a> {
    /// Rendered tree, for places.
    pub tree: &'a Node,
    /// Template engine.
    pub templates: &'a Templates,
    /// Names of the treatment.
    pub names: &'a Names,
    /// Seed of tables that have none of their own.
    pub seed: u64,
    /// SQL that was read before.
    pub sql: &'a SqlCache,
    /// Files with rows.
    pub rows: &'a RowFiles,
}

/// The SQL of one copy, read.
struct Read {
    name: String,
    parsed: ParsedTable,
    indexes: Vec<String>,
    primary_key: Vec<String>,
}

impl TableBinder<'_> {
    /// One table; `None` when something is wrong with it.
    pub fn bind(&self, name: &str, file: &TableFile, found: &mut Diagnostics) -> Option<Table> {
        let path = format!("tables.{name}");
        let before = found.items.len();
        let copies = file.copies.unwrap_or(1);
        if let Some(rows) = file.rows.filter(|rows| rows.0 > MAX_ROWS) {
            let problem = self
                .tree
                .problem(&format!("{path}.rows"), format!("{} rows are more than can be loaded", rows.0));
            found.push(problem.expected("at most 1_000_000_000_000 (10^12) rows"));
        }
        let written = |key: &str| self.tree.find(&format!("{path}.{key}")).is_some();
        if !written("rows") && !written("rows_from") {
            let problem = self.tree.key_problem("tables", name, "the key `rows` is missing here");
            found.push(problem.hint("say how many rows there are, or take them `rows_from` a file"));
        }
        if copies == 0 || copies > MAX_COPIES {
            let problem = self
                .tree
                .problem(&format!("{path}.copies"), format!("{copies} copies of a table are not possible"));
            found.push(problem.expected(format!("1 to {MAX_COPIES}")));
            return None;
        }
        let sql_names = if copies == 1 {
            vec![name.to_owned()]
        } else {
            (1..=copies).map(|copy| format!("{name}_{copy}")).collect()
        };
        let read: Option<Vec<Read>> =
            sql_names.iter().map(|sql_name| self.read(&path, sql_name, copies > 1, file, found)).collect();
        let read = read?;
        let first = read.first()?;
        let mut columns = self.columns(&path, file, first, found);
        let mut rows = asked(file);
        if let Some(rows_from) = file.rows_from.as_ref().filter(|_| found.items.len() == before) {
            rows = self.stored(&path, file, rows_from, &mut columns, found)?;
        }
        if found.items.len() > before {
            return None;
        }
        Some(Table {
            name: name.to_owned(),
            columns,
            persistence: file.persistence.map_or(first.parsed.persistence, Persistence::from),
            partitioned: first.parsed.partitioned,
            rows,
            seed: file.seed.unwrap_or(self.seed),
            copies: read
                .into_iter()
                .map(|read| TableCopy { name: read.name, ddl: read.parsed.statements, indexes: read.indexes })
                .collect(),
        })
    }

    fn names_of(&self, sql_name: &str, file: &TableFile) -> Names {
        let mut names = self.names.clone();
        names.insert("table".to_owned(), to_dynamic(&Scalar::Text(sql_name.to_owned())));
        if let Some(rows) = file.rows {
            let rows = i64::try_from(rows.0).unwrap_or(i64::MAX);
            names.insert("rows".to_owned(), to_dynamic(&Scalar::Int(rows)));
        }
        names
    }

    fn read(
        &self,
        path: &str,
        sql_name: &str,
        several: bool,
        file: &TableFile,
        found: &mut Diagnostics,
    ) -> Option<Read> {
        let names = self.names_of(sql_name, file);
        let ddl_path = format!("{path}.ddl");
        let ddl = self.render(&ddl_path, &file.ddl, &names, found);
        let indexes_path = format!("{path}.indexes");
        let indexes = match &file.indexes {
            Some(text) => self.render(&indexes_path, text, &names, found),
            None => Some(String::new()),
        };
        let (ddl, indexes) = (ddl?, indexes?);
        let parsed = self.sql.table(&ddl, file.columns.is_some());
        let parsed = parsed.map_err(|findings| self.findings(&ddl_path, &ddl, findings, found)).ok()?;
        if several && parsed.name != sql_name {
            let problem =
                self.tree.problem(&ddl_path, format!("every copy would be called `{}`", parsed.name));
            found.push(
                problem
                    .expected(format!("`CREATE TABLE {{{{ table }}}} (...)`, which gives `{sql_name}` here"))
                    .hint("use `{{ table }}` in `indexes` as well"),
            );
            return None;
        }
        let read = if indexes.trim().is_empty() { None } else { Some(self.sql.indexes(&indexes)) };
        let (statements, primary_key) = match read {
            None => (Vec::new(), Vec::new()),
            Some(Err(findings)) => {
                self.findings(&indexes_path, &indexes, findings, found);
                return None;
            }
            Some(Ok(read)) => {
                let mut known: Vec<&str> = parsed.columns.iter().map(|column| column.name.as_str()).collect();
                known.extend(parsed.computed.iter().map(String::as_str));
                known.extend(file.columns.iter().flatten().map(|(name, _)| name.as_str()));
                for column in read.columns.iter().filter(|column| !known.contains(&column.name.as_str())) {
                    let finding = SqlFinding {
                        line: column.line,
                        column: column.column,
                        message: format!("there is no column `{}`", column.name),
                        hint: did_you_mean(&column.name, known.iter().copied()),
                    };
                    self.findings(&indexes_path, &indexes, vec![finding], found);
                }
                if let Some(other) = read.tables.iter().find(|table| **table != parsed.name) {
                    let message =
                        format!("these statements are about `{other}`, the table is `{}`", parsed.name);
                    found.push(
                        self.tree
                            .problem(&indexes_path, message)
                            .hint("write them in a `sql` step if that is meant"),
                    );
                }
                (read.statements, read.primary_key)
            }
        };
        Some(Read { name: parsed.name.clone(), parsed, indexes: statements, primary_key })
    }

    /// Renders SQL. `written` is the text in the tree, with the place of its node.
    fn render(&self, path: &str, written: &str, names: &Names, found: &mut Diagnostics) -> Option<String> {
        let place = self.tree.find(path).map(|node| node.place.clone())?;
        self.templates.render_text(written, &place, names, found)
    }

    /// Findings inside rendered SQL, at the same words where they are written.
    fn findings(&self, path: &str, sql: &str, findings: Vec<SqlFinding>, found: &mut Diagnostics) {
        let Some(node) = self.tree.find(path) else { return };
        for finding in findings {
            let start: usize =
                sql.split_inclusive('\n').take(finding.line.saturating_sub(1)).map(str::len).sum();
            let line = sql[start.min(sql.len())..].lines().next().unwrap_or_default();
            let offset: usize = line.chars().take(finding.column.saturating_sub(1)).map(char::len_utf8).sum();
            let rest = &line[offset..];
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            let length = rest.find(|c| !is_word(c)).filter(|length| *length > 0);
            let word = &rest[..length.unwrap_or_else(|| rest.chars().next().map_or(0, char::len_utf8))];
            let place = node.place.narrow(sql, start + offset, word);
            found.push(Diagnostic::new(place, finding.message).maybe_hint(finding.hint));
        }
    }

    fn columns(&self, path: &str, file: &TableFile, read: &Read, found: &mut Diagnostics) -> Vec<Column> {
        let declared;
        let columns = match &file.columns {
            Some(columns) => {
                declared =
                    columns.iter().map(|(name, sql_type)| declare(name, sql_type, read)).collect::<Vec<_>>();
                &declared
            }
            None => &read.parsed.columns,
        };
        self.unknown_columns(path, file, columns, &read.parsed.computed, found);
        let by_type = self.by_type(path, file, columns, found);
        let in_key = |column: &ParsedColumn| column.primary_key || read.primary_key.contains(&column.name);
        let key_width = columns.iter().filter(|column| in_key(column)).count();
        let mut counted = false;
        let mut bound = Vec::new();
        for column in columns {
            let key = in_key(column);
            let integer =
                column.kind.as_ref().is_some_and(|kind| crate::spec::fits::number_range(kind).is_some());
            let count_up = key && integer && !counted;
            counted |= count_up;
            bound.extend(self.column(
                path,
                file,
                column,
                Key { part: key, only: key && key_width == 1, count_up },
                &by_type,
                found,
            ));
        }
        bound
    }

    /// Generators of `values_by_type`, each made once for every type that occurs.
    fn by_type(
        &self,
        path: &str,
        file: &TableFile,
        columns: &[ParsedColumn],
        found: &mut Diagnostics,
    ) -> ByType {
        let mut by_type = ByType::default();
        if file.values_by_type.is_empty() {
            return by_type;
        }
        let names = self.names_of(path.rsplit('.').next().unwrap_or(path), file);
        let rows = asked(file);
        let target = Target { tree: self.tree, templates: self.templates, names: &names, rows };
        let path = format!("{path}.values_by_type");
        let unnamed = columns.iter().filter(|column| !file.values.contains_key(&column.name));
        let kinds: Vec<&ColumnType> = unnamed.filter_map(|column| column.kind.as_ref()).collect();
        by_type.fill(&file.values_by_type, &kinds, &target, &path, found);
        by_type
    }

    fn column(
        &self,
        path: &str,
        file: &TableFile,
        column: &ParsedColumn,
        key: Key,
        by_type: &ByType,
        found: &mut Diagnostics,
    ) -> Option<Column> {
        let name = &column.name;
        let value_path = format!("{path}.values.{name}");
        let Some(kind) = &column.kind else {
            let place =
                if file.columns.is_some() { format!("{path}.columns.{name}") } else { format!("{path}.ddl") };
            let message =
                format!("rows cannot be generated for the type `{}` of column `{name}`", column.sql_type);
            let mut problem = self.tree.problem(&place, message);
            if let Some(node) = self.tree.find(&place).filter(|_| file.columns.is_none()) {
                problem.place = node.place.narrow(node.text().unwrap_or_default(), 0, name);
            }
            found.push(problem.expected("boolean, smallint, integer, bigint, real, double precision, numeric, text, varchar, char, bytea, date, timestamp, timestamptz, uuid, json, jsonb, or an array of these"));
            return None;
        };
        let not_null = column.not_null || key.part;
        let (generator, nulls) = match file.values.get(name) {
            None => match by_type.get(kind).filter(|_| !key.part) {
                Some((generator, nulls)) => (generator.clone(), if not_null { 0.0 } else { *nulls }),
                None => (plausible(kind, key.count_up), 0.0),
            },
            Some(value) => {
                let names = self.names_of(path.rsplit('.').next().unwrap_or(path), file);
                let rows = asked(file);
                let target = Target { tree: self.tree, templates: self.templates, names: &names, rows };
                target.make(value, kind, &value_path, found)?
            }
        };
        if not_null && nulls > 0.0 {
            let why = if key.part { "part of the primary key" } else { "NOT NULL" };
            let place = if self.tree.find(&format!("{value_path}.nulls")).is_some() {
                format!("{value_path}.nulls")
            } else {
                value_path
            };
            found.push(
                self.tree
                    .problem(&place, format!("the column `{name}` is {why}"))
                    .hint("leave `nulls` away, or change the DDL"),
            );
            return None;
        }
        let repeats = matches!(
            generator,
            Generator::Constant(_)
                | Generator::Choice { .. }
                | Generator::Zipf { .. }
                | Generator::Normal { .. }
        );
        if key.only && repeats && asked(file) > 1 {
            let problem = self
                .tree
                .problem(&value_path, format!("`{name}` is the primary key, but these values repeat"));
            found.push(
                problem.hint("use `sequence` or `shuffle` (or `template` with `{{ row }}`, or `uuid`)"),
            );
            return None;
        }
        Some(Column {
            name: name.clone(),
            kind: kind.clone(),
            sql_type: column.sql_type.clone(),
            not_null,
            nulls,
            generator,
        })
    }

    fn unknown_columns(
        &self,
        path: &str,
        file: &TableFile,
        columns: &[ParsedColumn],
        computed: &[String],
        found: &mut Diagnostics,
    ) {
        let names = || columns.iter().map(|column| column.name.as_str());
        for name in file.values.keys().filter(|name| !names().any(|known| known == name.as_str())) {
            let problem = if computed.contains(name) {
                self.tree
                    .key_problem(
                        &format!("{path}.values"),
                        name,
                        format!("the server computes the column `{name}` itself"),
                    )
                    .hint("take it out of `values`")
            } else {
                self.tree
                    .key_problem(
                        &format!("{path}.values"),
                        name,
                        format!("the table has no column `{}`", shorten(name)),
                    )
                    .expected(one_of(names()))
                    .maybe_hint(did_you_mean(name, names()))
            };
            found.push(problem);
        }
    }
}

/// Rows that are asked for; 0 where the file decides.
fn asked(file: &TableFile) -> u64 {
    file.rows.map_or(0, |rows| rows.0)
}

/// What a column has to do with the primary key.
#[derive(Clone, Copy)]
struct Key {
    part: bool,
    only: bool,
    /// The first integer column of it: a sequence unless `values` says otherwise.
    count_up: bool,
}

/// A column of `columns:`.
fn declare(name: &str, sql_type: &str, read: &Read) -> ParsedColumn {
    let lower = sql_type.to_lowercase();
    let bare =
        lower.strip_suffix("not null").map_or(sql_type, |bare| &sql_type[..bare.len()]).trim().to_owned();
    ParsedColumn {
        name: name.to_owned(),
        kind: parse_type(&bare),
        not_null: lower.ends_with("not null"),
        sql_type: bare,
        primary_key: read.primary_key.iter().any(|key| key == name),
        line: 1,
        column: 1,
    }
}
