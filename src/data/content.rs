//! What a table holds, as two numbers, and how its rows are shared out.

use std::fmt;
use std::ops::Range;

use xxhash_rust::xxh3::xxh3_128;

/// Number of rows and a checksum that does not depend on their order.
///
/// The checksum is the wrapping sum of XXH3-128 of each row, a row being its fields in PostgreSQL's binary format, each
/// after its length as a big-endian `i32` (-1 for NULL): the body of a row of binary COPY. Two rows swapped give
/// the same sum; a row lost, doubled or changed does not. Contents of parts can be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Content {
    /// Rows.
    pub rows: u64,
    /// Sum of the rows' hashes.
    pub checksum: u128,
}

impl Content {
    /// Adds a row by the bytes of its fields with their lengths.
    #[inline]
    pub fn add_row(&mut self, body: &[u8]) {
        self.rows += 1;
        self.checksum = self.checksum.wrapping_add(row_hash(body));
    }

    /// Content of both parts together.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        Self { rows: self.rows + other.rows, checksum: self.checksum.wrapping_add(other.checksum) }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows, checksum {:032x}", self.rows, self.checksum)
    }
}

/// Hash of one row by the bytes of its fields with their lengths.
#[inline]
pub fn row_hash(body: &[u8]) -> u128 {
    xxh3_128(body)
}

/// The `index`-th of `parts` contiguous parts of `rows`, whose sizes differ by at most one row.
///
/// Empty for an index that is no part.
pub fn share(rows: u64, parts: u64, index: u64) -> Range<u64> {
    share_of(0..rows, parts, index)
}

/// The `index`-th of `parts` contiguous parts of a range of rows, as [`share`] makes them.
pub fn share_of(range: Range<u64>, parts: u64, index: u64) -> Range<u64> {
    let rows = u128::from(range.end.saturating_sub(range.start));
    let (parts, index) = (u128::from(parts.max(1)), u128::from(index));
    let edge = |index: u128| {
        let offset = rows * index.min(parts) / parts;
        range.start + u64::try_from(offset).unwrap_or(u64::MAX)
    };
    edge(index)..edge(index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_cover_all_rows_once() {
        for rows in [0, 1, 7, 10, 1_000_003, u64::MAX] {
            for parts in [1, 2, 3, 7, 64] {
                let shares: Vec<Range<u64>> = (0..parts).map(|index| share(rows, parts, index)).collect();
                assert_eq!((shares[0].start, shares[shares.len() - 1].end), (0, rows));
                assert!(shares.windows(2).all(|pair| pair[0].end == pair[1].start));
                let sizes: Vec<u64> = shares.iter().map(|share| share.end - share.start).collect();
                let (least, most) = (sizes.iter().min(), sizes.iter().max());
                assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{sizes:?}");
            }
        }
        assert!(share(10, 3, 3).is_empty() && share(10, 0, 5).is_empty());
        assert_eq!(share_of(100..110, 2, 1), 105..110);
    }

    #[test]
    fn order_does_not_matter_but_everything_else_does() {
        let of = |rows: &[&[u8]]| {
            let mut content = Content::default();
            for row in rows {
                content.add_row(row);
            }
            content
        };
        assert_eq!(of(&[b"a", b"b"]), of(&[b"b", b"a"]));
        assert_ne!(of(&[b"a", b"a"]), of(&[b"b", b"b"]));
        assert_ne!(of(&[b"a"]).checksum, of(&[b"a", b"a"]).checksum);
        assert_eq!(of(&[b"a"]).merge(of(&[b"b"])), of(&[b"a", b"b"]));
    }
}
