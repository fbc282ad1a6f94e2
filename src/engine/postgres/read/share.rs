//! Shares of several clients: ranges of pages, or ranges of a key. Each row is in exactly one.

use super::super::{Session, quote_ident};
use crate::engine::postgres::load::WorkError;

/// One of several shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    /// Which, from 0.
    pub(super) index: u32,
    /// Of how many.
    pub(super) of: u32,
}

impl Part {
    /// Where the part begins and ends among numbers from `first` to `last`; `None` at the two ends, which are open:
    /// whatever lies beyond them is read as well.
    fn bounds(self, first: i64, last: i64) -> (Option<i128>, Option<i128>) {
        let span = i128::from(last) - i128::from(first) + 1;
        let edge = |part: u32| i128::from(first) + span * i128::from(part) / i128::from(self.of);
        let from = (self.index > 0).then(|| edge(self.index));
        let to = (self.index + 1 < self.of).then(|| edge(self.index + 1));
        (from, to)
    }
}

/// ` WHERE ctid ...` for one of several clients; nothing when there is only one.
pub(super) async fn pages(session: &Session, table: &str, part: Part) -> Result<String, WorkError> {
    if part.of == 1 {
        return Ok(String::new());
    }
    let sql = "SELECT pg_relation_size($1::text::regclass) / current_setting('block_size')::int8";
    let pages: i64 = session.client.query_one(sql, &[&quote_ident(table)]).await?.get(0);
    let (from, to) = part.bounds(0, pages - 1);
    // The first page is 0: a condition on it keeps the same plan for all clients.
    let from = format!(" WHERE ctid >= '({},0)'", from.unwrap_or(0));
    Ok(to.map_or(from.clone(), |to| format!("{from} AND ctid < '({to},0)'")))
}

/// Smallest and largest value of an integer column in one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRange {
    /// Quoted name of the column.
    column: String,
    /// Smallest and largest value; `None` in a table without values.
    ends: Option<(i64, i64)>,
    /// Whether rows can have no value.
    nullable: bool,
}

impl KeyRange {
    /// Asks the server for both ends. Without an index on the column it scans the table.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn ask(
        session: &Session,
        table: &str,
        column: &str,
        nullable: bool,
    ) -> Result<Self, WorkError> {
        let column = quote_ident(column);
        let sql = format!("SELECT min({column})::int8, max({column})::int8 FROM {}", quote_ident(table));
        let row = session.client.query_one(&sql, &[]).await?;
        let (min, max): (Option<i64>, Option<i64>) = (row.get(0), row.get(1));
        Ok(Self { column, ends: min.zip(max), nullable })
    }

    /// ` WHERE key ...` for one of several clients; nothing when there is only one.
    pub(super) fn share(&self, part: Part) -> String {
        if part.of == 1 {
            return String::new();
        }
        let column = &self.column;
        let (min, max) = self.ends.unwrap_or((0, 0));
        let (from, to) = part.bounds(min, max);
        let from = from.map(|from| format!("{column} >= {from}"));
        let to = to.map(|to| format!("{column} < {to}"));
        let range = match (from, to) {
            (Some(from), Some(to)) => format!("{from} AND {to}"),
            // The first client also takes the rows without a key.
            (None, Some(to)) if self.nullable => format!("{to} OR {column} IS NULL"),
            (from, to) => from.or(to).unwrap_or_else(|| "true".to_owned()),
        };
        format!(" WHERE {range}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(ends: Option<(i64, i64)>, nullable: bool) -> KeyRange {
        KeyRange { column: "id".to_owned(), ends, nullable }
    }

    #[test]
    fn shares_meet_and_are_open_at_both_ends() {
        let range = range(Some((1, 10)), false);
        let shares: Vec<String> = (0..3).map(|index| range.share(Part { index, of: 3 })).collect();
        assert_eq!(shares, [" WHERE id < 4", " WHERE id >= 4 AND id < 7", " WHERE id >= 7"]);
        assert_eq!(range.share(Part { index: 0, of: 1 }), "");
    }

    #[test]
    fn rows_without_a_key_belong_to_the_first() {
        let range = range(Some((0, 9)), true);
        assert_eq!(range.share(Part { index: 0, of: 2 }), " WHERE id < 5 OR id IS NULL");
        assert_eq!(range.share(Part { index: 1, of: 2 }), " WHERE id >= 5");
    }

    #[test]
    fn the_whole_range_of_bigint_is_shared() {
        let range = range(Some((i64::MIN, i64::MAX)), false);
        assert_eq!(range.share(Part { index: 1, of: 2 }), " WHERE id >= 0");
        let one = range.share(Part { index: 0, of: 4 });
        assert_eq!(one, " WHERE id < -4611686018427387904");
        assert_eq!(self::range(None, true).share(Part { index: 1, of: 2 }), " WHERE id >= 0");
    }
}
