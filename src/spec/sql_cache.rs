//! SQL that was read before: treatments share most of it, and reading it is most of the work of a check.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

use crate::spec::ddl::{
    ParsedIndexes, ParsedTable, SqlFinding, parse_indexes, parse_table, parse_table_header,
};

/// More different texts than this are not remembered.
const MOST_TEXTS: usize = 10_000;

type Read<T> = Result<T, Vec<SqlFinding>>;

/// Rendered SQL and what it says.
#[derive(Debug, Default)]
pub struct SqlCache {
    /// By text and whether the columns are declared elsewhere.
    tables: Mutex<HashMap<(String, bool), Read<ParsedTable>>>,
    indexes: Mutex<HashMap<String, Read<ParsedIndexes>>>,
}

impl SqlCache {
    /// A table's SQL; `declared` when its columns are declared elsewhere.
    ///
    /// # Errors
    /// What is wrong with the SQL.
    pub fn table(&self, sql: &str, declared: bool) -> Result<ParsedTable, Vec<SqlFinding>> {
        let read = || if declared { parse_table_header(sql) } else { parse_table(sql) };
        remembered(&self.tables, (sql.to_owned(), declared), read)
    }

    /// A table's index statements.
    ///
    /// # Errors
    /// What is wrong with the SQL.
    pub fn indexes(&self, sql: &str) -> Result<ParsedIndexes, Vec<SqlFinding>> {
        remembered(&self.indexes, sql.to_owned(), || parse_indexes(sql))
    }
}

fn remembered<K: Hash + Eq, V: Clone>(known: &Mutex<HashMap<K, V>>, key: K, read: impl FnOnce() -> V) -> V {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if known.len() >= MOST_TEXTS && !known.contains_key(&key) {
        return read();
    }
    known.entry(key).or_insert_with(read).clone()
}
