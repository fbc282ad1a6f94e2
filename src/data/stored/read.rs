//! Rows of a store by their number.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Page, field, write};
use crate::data::value::{Scratch, Value};
use crate::model::ColumnType;

/// An open row store. Readers share it; each has its own page in its [`Scratch`].
#[derive(Debug)]
pub(in crate::data) struct RowStore {
    /// Tells pages of different stores in one scratch apart.
    number: u64,
    path: PathBuf,
    rows: File,
    pages: Vec<Page>,
}

/// The page and row that a reader has before it.
#[derive(Debug, Default)]
pub(in crate::data) struct Cursor {
    store: u64,
    page: usize,
    bytes: Vec<u8>,
    /// Row whose fields are known.
    row: u64,
    /// Where the fields of `row` begin in `bytes`.
    fields: Vec<usize>,
    /// Where the row after it begins.
    next: usize,
}

#[cfg(test)]
impl Cursor {
    /// Bytes of memory held.
    pub(super) fn held(&self) -> usize {
        self.bytes.capacity() + self.fields.capacity() * size_of::<usize>()
    }
}

static NUMBER: AtomicU64 = AtomicU64::new(1);

impl RowStore {
    /// Opens a store by its folder.
    ///
    /// # Errors
    /// When it is not there or not whole.
    pub(in crate::data) fn open(folder: &Path) -> io::Result<Self> {
        let rows = File::open(folder.join(write::ROWS))?;
        let pages = write::read_pages(&fs::read(folder.join(write::PAGES))?)?;
        let whole = pages.last().map_or(0, |page| page.bytes.end);
        if rows.metadata()?.len() != whole {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the rows are not whole"));
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Ok(Self { number, path: folder.to_owned(), rows, pages })
    }

    /// The value of a column in a row.
    ///
    /// # Panics
    /// When the store, which was whole when it was opened, cannot be read any more: rows that are silently other than the
    /// file's would be worse.
    pub(in crate::data) fn value<'s>(
        &self,
        row: u64,
        column: usize,
        kind: &'s ColumnType,
        scratch: &'s mut Scratch,
    ) -> Value<'s> {
        let cursor = scratch.cursor();
        let found = self.seek(row, cursor).and_then(|()| {
            let bytes = cursor.bytes.get(*cursor.fields.get(column)?..)?;
            field::value(field::split(bytes)?.0, kind)
        });
        let folder = self.path.display();
        found.unwrap_or_else(|| {
            panic!("row {row} of the row store {folder} cannot be read; remove that folder")
        })
    }

    /// Puts the cursor on a row.
    fn seek(&self, row: u64, cursor: &mut Cursor) -> Option<()> {
        if cursor.store == self.number && cursor.row == row && !cursor.fields.is_empty() {
            return Some(());
        }
        let same_page = cursor.store == self.number
            && self.pages.get(cursor.page).is_some_and(|page| page.rows.contains(&row))
            && !cursor.fields.is_empty();
        let mut ahead = if same_page && row > cursor.row {
            row - cursor.row - 1
        } else {
            if !same_page {
                self.load(row, cursor)?;
            }
            cursor.next = 0;
            row - self.pages.get(cursor.page)?.rows.start
        };
        let mut at = cursor.next;
        loop {
            at = fields(&cursor.bytes, at, &mut cursor.fields)?;
            if ahead == 0 {
                break;
            }
            ahead -= 1;
        }
        cursor.row = row;
        cursor.next = at;
        Some(())
    }

    fn load(&self, row: u64, cursor: &mut Cursor) -> Option<()> {
        cursor.store = 0;
        cursor.fields.clear();
        let number = self.pages.partition_point(|page| page.rows.end <= row);
        let page = self.pages.get(number)?;
        let length = usize::try_from(page.bytes.end - page.bytes.start).ok()?;
        cursor.bytes.resize(length, 0);
        self.rows.read_exact_at(&mut cursor.bytes, page.bytes.start).ok()?;
        cursor.store = self.number;
        cursor.page = number;
        Some(())
    }
}

/// Finds the fields of the row at `at`: the number of fields, then the fields. Returns where the next row begins.
fn fields(bytes: &[u8], at: usize, fields: &mut Vec<usize>) -> Option<usize> {
    let (count, mut rest) = bytes.get(at..)?.split_first_chunk::<4>()?;
    fields.clear();
    for _ in 0..u32::from_le_bytes(*count) {
        fields.push(bytes.len() - rest.len());
        rest = field::split(rest)?.1;
    }
    Some(bytes.len() - rest.len())
}
