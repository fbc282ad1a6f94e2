//! What a table's SQL says, read without a server.
//!
//! The SQL itself is never rewritten: statements are split as psql splits them and sent as they are
//! written. Parsing only answers what loadlab must know before a server starts: the table's name,
//! whether it is logged and partitioned, its columns with their types, its primary key. sqlparser's
//! grammar is smaller than the server's, so a statement that only changes details (`ALTER TABLE ...
//! SET STORAGE`) is kept when it cannot be parsed, and a `CREATE TABLE` that cannot be parsed is
//! answered with the place and the remedy: declare the columns.

mod alter;
mod columns;
mod header;
mod identifier;
mod indexes;
mod source;
mod split;
mod table;
mod types;

pub use identifier::identifier_problem;
pub use indexes::{NamedColumn, ParsedIndexes, parse_indexes};
pub use source::SqlFinding;
pub use split::split_statements;
pub use table::{MAX_COLUMNS, ParsedColumn, ParsedTable, parse_table, parse_table_header};
pub use types::parse_type;

#[cfg(test)]
mod tests;
