//! Rules for names, as the server has them.

use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

/// PostgreSQL's `NAMEDATALEN - 1`.
pub(super) const MAX_NAME_BYTES: usize = 63;

/// Columns every table has already (`pg_attribute` rows with a negative number).
const SYSTEM_COLUMNS: [&str; 6] = ["ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"];

/// Why `name` (unquoted) cannot be an SQL identifier: empty, too long, NUL inside. `None` when it can.
///
/// PostgreSQL cuts names of more than 63 bytes with no more than a notice, so two long names can become
/// the same table.
#[must_use]
pub fn identifier_problem(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("a name is empty".to_owned());
    }
    if name.contains('\0') {
        return Some(format!("the name {name:?} holds a NUL character"));
    }
    (name.len() > MAX_NAME_BYTES).then(|| {
        format!(
            "the name `{name}` is {} bytes long; PostgreSQL cuts names after {MAX_NAME_BYTES} bytes",
            name.len()
        )
    })
}

/// Why `name` cannot be the name of a table or index of an experiment.
pub(super) fn relation_problem(name: &str) -> Option<String> {
    let reserved = name.starts_with("pg_");
    identifier_problem(name).or_else(|| {
        reserved.then(|| format!("the name `{name}` begins with `pg_`, which is the server's own"))
    })
}

/// Why `name` cannot be the name of a column.
pub(super) fn column_problem(name: &str) -> Option<String> {
    let system = SYSTEM_COLUMNS.contains(&name);
    identifier_problem(name)
        .or_else(|| system.then(|| format!("the name `{name}` is a system column of every table")))
}

/// The name as the server stores it: quoted names as written, others in lower case (ASCII only, as the
/// server does for UTF-8).
pub(super) fn fold(ident: &Ident) -> String {
    fold_word(&ident.value, ident.quote_style)
}

/// [`fold`] for a token.
pub(super) fn fold_word(value: &str, quote: Option<char>) -> String {
    if quote.is_some() { value.to_owned() } else { value.to_ascii_lowercase() }
}

/// The last part of a name, folded, and whether parts stand before it.
pub(super) fn fold_object(name: &ObjectName) -> (String, bool) {
    let last = match name.0.last() {
        Some(ObjectNamePart::Identifier(ident)) => fold(ident),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    (last, name.0.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_up_to_63_bytes_are_fine() {
        assert_eq!(identifier_problem(&"a".repeat(63)), None);
        assert!(identifier_problem(&"a".repeat(64)).is_some());
        assert!(identifier_problem(&"ü".repeat(32)).is_some(), "bytes count, not characters");
        assert_eq!(identifier_problem("a\"b; c%\n"), None);
    }

    #[test]
    fn empty_and_nul_are_refused() {
        assert!(identifier_problem("").is_some());
        assert!(identifier_problem("a\0b").is_some());
    }

    #[test]
    fn the_servers_own_names_are_refused() {
        assert!(relation_problem("pg_class").is_some());
        assert_eq!(relation_problem("pgbench"), None);
        assert!(column_problem("xmin").is_some());
        assert_eq!(column_problem("pg_x"), None);
    }
}
