//! `load` steps: options checked, defaults filled in.

use std::time::Duration;

use super::StepBinder;
use crate::model::{
    Copy, CopyFormat, CopySource, Generate, Insert, Load, LoadMethod, Procedure, SameTransaction, Unnest,
    Until, Verify, Window,
};
use crate::spec::diagnostic::Diagnostics;
use crate::spec::units::Count;
use crate::spec::wire::step::{
    CopyFile, GenerateFile, InsertFile, LoadFile, LoadMethodFile, ProcedureFile, UnnestFile, VerifyWord,
    WindowFile,
};

/// Shortest distance of samples without a word about it, and how many there are at least then.
const SAMPLE_EVERY: Duration = Duration::from_millis(250);
const POINTS: u32 = 480;
/// Rows of one statement of unnest, where nothing else is said.
const ROWS_OF_ARRAYS: u64 = 1000;
/// Bytes of one COPY message, smallest, default and largest.
const CHUNK_BYTES: (u32, u32, u32) = (1024, 64 * 1024, 64 * 1024 * 1024);

impl StepBinder<'_> {
    pub(super) fn load(&self, file: &LoadFile, path: &str, found: &mut Diagnostics) -> Option<Load> {
        let table = self.table(&file.table, path, found);
        let clients = self.clients(file.clients, path, found);
        let method = match &file.method {
            LoadMethodFile::Insert(insert) => self.insert(insert, path, found).map(LoadMethod::Insert),
            LoadMethodFile::Copy(copy) => self.copy(copy, path, found).map(LoadMethod::Copy),
            LoadMethodFile::Unnest(unnest) => Some(LoadMethod::Unnest(self.unnest(unnest, path, found))),
            LoadMethodFile::Generate(generate) => {
                Some(LoadMethod::Generate(self.generate(generate, path, found)))
            }
            LoadMethodFile::Procedure(procedure) => {
                Some(LoadMethod::Procedure(self.procedure(procedure, path, found)))
            }
        };
        let rate = self.rate(file.rate, path, found);
        Some(Load {
            table: table?,
            method: method?,
            clients: clients?,
            until: file.until.map_or(Until::Committed, Until::from),
            // `auto` is decided when all steps are known.
            verify: if file.verify == Some(VerifyWord::End) { Verify::End } else { Verify::Now },
            duration: file.duration.as_ref().map(window),
            rate,
        })
    }

    /// The rate, which must be at least 1 where it is given.
    fn rate(&self, rate: Option<Count>, path: &str, found: &mut Diagnostics) -> Option<u64> {
        if rate == Some(Count(0)) {
            let problem =
                self.tree.problem(&format!("{path}.rate"), "at 0 rows per second nothing is ever loaded");
            found.push(problem.expected("at least 1, or no `rate` for as fast as it goes"));
        }
        rate.map(|rate| rate.0).filter(|rate| *rate > 0)
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

    fn unnest(&self, file: &UnnestFile, path: &str, found: &mut Diagnostics) -> Unnest {
        let path = format!("{path}.method.unnest");
        let per_batch = self.rows(file.rows_per_batch, &format!("{path}.rows_per_batch"), found);
        Unnest {
            rows_per_batch: per_batch.unwrap_or(ROWS_OF_ARRAYS),
            rows_per_commit: self.rows(file.rows_per_commit, &format!("{path}.rows_per_commit"), found),
        }
    }

    fn generate(&self, file: &GenerateFile, path: &str, found: &mut Diagnostics) -> Generate {
        let path = format!("{path}.method.generate.rows_per_commit");
        Generate {
            rows_per_commit: self.rows(file.rows_per_commit, &path, found),
            expressions: file.expressions.clone().unwrap_or_default(),
        }
    }

    fn procedure(&self, file: &ProcedureFile, path: &str, found: &mut Diagnostics) -> Procedure {
        let path = format!("{path}.method.procedure.rows_per_commit");
        Procedure {
            rows_per_commit: self.rows(file.rows_per_commit, &path, found),
            expressions: file.expressions.clone().unwrap_or_default(),
            body: file.body.clone(),
        }
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
}

/// A window with its defaults.
fn window(file: &WindowFile) -> Window {
    let warm_up = file.warm_up.map_or(Duration::ZERO, |span| span.0);
    let measure = file.measure.0;
    let sample_every =
        file.sample_every.map_or_else(|| SAMPLE_EVERY.max((warm_up + measure) / POINTS), |span| span.0);
    Window { warm_up, measure, sample_every }
}

/// The method is the name of a step that has none.
pub(super) fn default_name(step: &LoadFile) -> &'static str {
    match step.method {
        LoadMethodFile::Insert(_) => "insert",
        LoadMethodFile::Copy(_) => "copy",
        LoadMethodFile::Unnest(_) => "unnest",
        LoadMethodFile::Generate(_) => "generate",
        LoadMethodFile::Procedure(_) => "procedure",
    }
}
