//! `CREATE TABLE` around its column list.

use std::ops::Range;

use sqlparser::ast::Statement as Ast;

use super::identifier::{MAX_NAME_BYTES, relation_problem};
use super::source::{Source, SqlFinding};
use crate::model::Persistence;

/// The words of `CREATE TABLE` before and around its column list, read from the tokens alone: sqlparser
/// is not needed for them, so they are known for SQL it does not understand.
pub(super) struct Header {
    /// The table's name, folded.
    pub(super) name: String,
    /// Its part in partitioning.
    pub(super) partition: Partition,
    /// Logged or unlogged.
    pub(super) persistence: Persistence,
    name_at: usize,
    /// Token after the name.
    next: usize,
    qualified: bool,
    temporary: bool,
}

/// A table's part in partitioning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Partition {
    /// None.
    Whole,
    /// PARTITION BY: it has partitions.
    By,
    /// PARTITION OF: it is one, and perhaps has some itself.
    Of,
}

impl Header {
    /// `None` when the statement is no CREATE TABLE.
    pub(super) fn of(source: &Source) -> Option<Self> {
        let modifiers = modifiers(source)?;
        let after = modifiers.end + 1;
        let name_at = if source.are(after, &["if", "not", "exists"]) { after + 3 } else { after };
        let (name, qualified, next) = source.name(name_at).unwrap_or_default();
        let has = |words: &[&str]| source.top_level(next).any(|index| source.are(index, words));
        let modified = |word: &str| modifiers.clone().any(|index| source.is(index, word));
        Some(Self {
            name,
            partition: if has(&["partition", "of"]) {
                Partition::Of
            } else if has(&["partition", "by"]) {
                Partition::By
            } else {
                Partition::Whole
            },
            persistence: if modified("unlogged") { Persistence::Unlogged } else { Persistence::Logged },
            name_at,
            next,
            qualified,
            temporary: modified("temp") || modified("temporary"),
        })
    }

    /// The statement as sqlparser understands it. Storage clauses after the column list say nothing about the
    /// columns, so they may be beyond its grammar (`USING method`, `TABLESPACE` after `WITH`).
    pub(super) fn parse(&self, source: &Source) -> Result<Ast, SqlFinding> {
        let storage = |end: &usize| ["using", "tablespace", "with"].iter().any(|word| source.is(*end, word));
        source.parse().or_else(|finding| {
            let end = source.closed(self.next).filter(storage);
            end.and_then(|end| source.parse_until(end).ok()).ok_or(finding)
        })
    }

    /// What is wrong with the name and the kind of the table.
    pub(super) fn check(&self, source: &Source, findings: &mut Vec<SqlFinding>) {
        let place = source.token_place(self.name_at);
        if self.qualified {
            let hint = "leave the schema out: loadlab makes tables in the trial's own database";
            findings.push(place.finding(format!("the table's name `{}` has a schema", self.name), hint));
        }
        // Long names are found among all tokens already.
        if let Some(problem) = relation_problem(&self.name).filter(|_| self.name.len() <= MAX_NAME_BYTES) {
            findings.push(place.finding(problem, "choose another name"));
        }
        if self.temporary {
            let hint = "use UNLOGGED: a temporary table lives in one session, a trial uses several";
            findings.push(source.start.finding("temporary tables cannot be loaded", hint));
        }
    }
}

/// The tokens between CREATE and TABLE; `None` when the statement is no CREATE TABLE.
fn modifiers(source: &Source) -> Option<Range<usize>> {
    const KNOWN: [&str; 5] = ["global", "local", "temp", "temporary", "unlogged"];
    if !source.is(0, "create") {
        return None;
    }
    let mut end = 1;
    while KNOWN.iter().any(|word| source.is(end, word)) {
        end += 1;
    }
    source.is(end, "table").then_some(1..end)
}
