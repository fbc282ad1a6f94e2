//! `rows_from`: files with rows, converted once and tied to the columns of a table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::data::{Converted, CsvFormat, FileProblem, RowFile, RowFormat, Wanted, convert};
use crate::model::{Column, Generator, StoredColumn};
use crate::spec::diagnostic::{Diagnostic, Diagnostics};
use crate::spec::suggest::did_you_mean;
use crate::spec::tables::TableBinder;
use crate::spec::wire::rows::RowsFromFile;
use crate::spec::wire::table::TableFile;

/// Where stores are made when nothing says where the cache is.
const FALLBACK: &str = "loadlab";

type Outcome = Result<Arc<Converted>, Vec<FileProblem>>;

/// The files with rows of one experiment; each is read once, whatever the number of treatments.
#[derive(Debug)]
pub struct RowFiles {
    folder: PathBuf,
    cache: PathBuf,
    made: Mutex<BTreeMap<String, Outcome>>,
    /// As the experiment names them.
    named: Mutex<BTreeSet<String>>,
}

impl RowFiles {
    /// For an experiment in `folder`; stores are made below `cache`.
    #[must_use]
    pub fn new(folder: &Path, cache: Option<&Path>) -> Self {
        let cache = cache.map_or_else(|| std::env::temp_dir().join(FALLBACK), Path::to_owned);
        Self { folder: folder.to_owned(), cache, made: Mutex::default(), named: Mutex::default() }
    }

    fn convert(&self, file: &RowFile, wanted: &[Wanted]) -> Outcome {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let key = format!("{file:?} {wanted:?}");
        made.entry(key).or_insert_with(|| convert(file, wanted, &self.cache).map(Arc::new)).clone()
    }

    /// All files that were read so far, as the experiment names them.
    #[must_use]
    pub fn named(&self) -> Vec<String> {
        self.named.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Identities of all files that were read so far, for the experiment's hash.
    #[must_use]
    pub fn digests(&self) -> Vec<String> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let mut digests: Vec<String> = made.values().flatten().map(|file| file.digest.clone()).collect();
        digests.sort();
        digests.dedup();
        digests
    }
}

impl TableBinder<'_> {
    /// Ties the columns of a table to the file its rows come from. Returns how many rows the table has.
    pub(super) fn stored(
        &self,
        path: &str,
        file: &TableFile,
        rows_from: &RowsFromFile,
        columns: &mut [Column],
        found: &mut Diagnostics,
    ) -> Option<u64> {
        for key in ["values", "values_by_type"] {
            let written = format!("{path}.{key}");
            if self.tree.find(&written).is_some() {
                let problem = self.tree.problem(&written, "the values of this table come from a file");
                found.push(problem.hint(format!("take `{key}` or `rows_from` out")));
            }
        }
        let path = format!("{path}.rows_from");
        let (row_file, key) = self.row_file(rows_from, &path, found)?;
        let wanted: Vec<Wanted> = columns.iter().map(wanted).collect();
        let converted = match self.rows.convert(&row_file, &wanted) {
            Ok(converted) => converted,
            Err(problems) => {
                let name = rows_from.csv.as_ref().or(rows_from.parquet.as_ref()).map_or("", String::as_str);
                let place = self.tree.find_place(&format!("{path}.{key}")).0.first_line();
                for problem in problems {
                    found.push(diagnostic(Diagnostic::new(place.clone(), ""), name, problem, &wanted));
                }
                return None;
            }
        };
        for (index, (column, width)) in columns.iter_mut().zip(&converted.widths).enumerate() {
            column.nulls = width.nulls;
            column.generator = Generator::Stored(StoredColumn {
                store: converted.folder.clone(),
                digest: converted.digest.clone(),
                column: index,
                average_bytes: width.average,
                most_bytes: width.most,
            });
        }
        self.rows_of(file, &path, converted.rows, found)
    }

    fn rows_of(&self, file: &TableFile, path: &str, there: u64, found: &mut Diagnostics) -> Option<u64> {
        match file.rows {
            Some(asked) if asked.0 > there => {
                let path = format!("{}.rows", path.trim_end_matches(".rows_from"));
                let problem = self.tree.problem(&path, format!("the file has {there} rows only"));
                found.push(problem.expected(format!("at most {there}, or no `rows` for all of them")));
                None
            }
            asked => Some(asked.map_or(there, |asked| asked.0)),
        }
    }

    /// The file as it is to be read, and the key that names it.
    fn row_file(
        &self,
        file: &RowsFromFile,
        path: &str,
        found: &mut Diagnostics,
    ) -> Option<(RowFile, &'static str)> {
        let before = found.items.len();
        let (name, key) = match (&file.csv, &file.parquet) {
            (Some(name), None) => (name, "csv"),
            (None, Some(name)) => (name, "parquet"),
            _ => {
                let problem = self.tree.problem(path, "rows come from exactly one file");
                found.push(problem.expected("either `csv` or `parquet`"));
                return None;
            }
        };
        let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if name.is_empty() || !Path::new(name).components().all(inside) {
            let problem = self
                .tree
                .problem(&format!("{path}.{key}"), format!("`{name}` is outside of the experiment's folder"));
            found.push(
                problem
                    .expected("a file beside the experiment or in a folder below it, without `..`")
                    .hint("a link there may lead to a large file elsewhere"),
            );
        }
        let format = if key == "csv" {
            RowFormat::Csv(CsvFormat {
                header: file.header.unwrap_or(true),
                delimiter: self.character(file.delimiter.as_ref(), b',', &format!("{path}.delimiter"), found),
                quote: self.character(file.quote.as_ref(), b'"', &format!("{path}.quote"), found),
                null: file.null.clone().unwrap_or_default(),
            })
        } else {
            for key in ["header", "delimiter", "quote", "null"] {
                let path = format!("{path}.{key}");
                if self.tree.find(&path).is_some() {
                    found.push(
                        self.tree
                            .problem(&path, format!("a Parquet file has no `{key}`"))
                            .hint("take it out"),
                    );
                }
            }
            RowFormat::Parquet
        };
        let row_file = RowFile { path: self.rows.folder.join(name), format };
        self.rows.named.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
        (found.items.len() == before).then_some((row_file, key))
    }

    /// One character of ASCII that is no line end.
    fn character(&self, written: Option<&String>, default: u8, path: &str, found: &mut Diagnostics) -> u8 {
        let Some(written) = written else { return default };
        match written.as_bytes() {
            [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | 0) => *byte,
            _ => {
                let problem = self.tree.problem(path, format!("`{written}` is not one character"));
                found.push(problem.expected("one ASCII character, such as `,`, `;` or `\"\\t\"`"));
                default
            }
        }
    }
}

fn wanted(column: &Column) -> Wanted {
    Wanted {
        name: column.name.clone(),
        kind: column.kind.clone(),
        sql_type: column.sql_type.clone(),
        not_null: column.not_null,
    }
}

/// `data/x.csv, line 7, column amount: ...`
fn diagnostic(blank: Diagnostic, file: &str, problem: FileProblem, wanted: &[Wanted]) -> Diagnostic {
    let mut message = format!("`{file}`");
    if !problem.place.is_empty() {
        message = format!("{message}, {}", problem.place);
    }
    if let Some(column) = &problem.column {
        message = format!("{message}, column `{column}`");
    }
    let names = || wanted.iter().map(|column| column.name.as_str());
    let hint = problem.unknown.as_deref().and_then(|name| did_you_mean(name, names()));
    let mut diagnostic =
        Diagnostic { message: format!("{message}: {}", problem.message), ..blank }.maybe_hint(hint);
    diagnostic.expected = problem.expected;
    diagnostic
}
