//! What tables should hold, by the generator.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::data::{Content, DataError, TableGenerator, floats_of_rows, share};
use crate::engine::postgres::encode::content_of;
use crate::model::Table;

/// What the generator says tables hold, computed once per distinct table of a run.
#[derive(Default)]
pub(super) struct Expectations {
    contents: HashMap<String, Vec<Content>>,
    /// Rows of each copy of the tables of this trial that a load by duration filled, by name of the table.
    loaded: HashMap<String, Vec<Range<u64>>>,
}

impl Expectations {
    /// The tables of the next trial are new.
    pub(super) fn begin_trial(&mut self) {
        self.loaded.clear();
    }

    /// A load has put these rows into each copy of a table; none are named when it loaded all of them.
    pub(super) fn loaded(&mut self, table: &Table, rows: Vec<Range<u64>>) {
        if rows.is_empty() {
            self.loaded.remove(&table.name);
        } else {
            self.loaded.insert(table.name.clone(), rows);
        }
    }

    /// Row numbers that each copy of a table should hold.
    pub(super) fn rows_of(&self, table: &Table) -> Vec<Range<u64>> {
        let copies = table.copies.len() as u64;
        let all = || (0..copies).map(|copy| share(table.rows, copies, copy)).collect();
        self.loaded.get(&table.name).cloned().unwrap_or_else(all)
    }

    /// Rows that all copies of a table should hold.
    pub(super) fn count(&self, table: &Table) -> u64 {
        self.rows_of(table).iter().map(|rows| rows.end - rows.start).sum()
    }

    /// Content of each copy of a table.
    pub(super) fn of(&mut self, table: &Table) -> Result<Vec<Content>, DataError> {
        self.get(table, "all", || TableGenerator::new(table), content_of)
    }

    /// Content of some columns of all rows, in the order they are read.
    pub(super) fn of_columns(&mut self, table: &Table, columns: &[String]) -> Result<Content, DataError> {
        let generator = || TableGenerator::select(table, columns);
        self.get(table, &format!("{columns:?}"), generator, content_of).map(together)
    }

    /// Numbers in those of some columns that hold floats, of all rows.
    pub(super) fn floats_of_columns(
        &mut self,
        table: &Table,
        columns: &[String],
    ) -> Result<Content, DataError> {
        let floats: Vec<String> =
            columns.iter().filter(|name| table.numbers_in(name).is_some()).cloned().collect();
        let generator = || TableGenerator::select(table, &floats);
        self.get(table, &format!("floats {floats:?}"), generator, |generator, rows| {
            floats_of_rows(generator, rows)
        })
        .map(together)
    }

    fn get(
        &mut self,
        table: &Table,
        what: &str,
        generator: impl FnOnce() -> Result<TableGenerator, DataError>,
        content: impl Fn(&Arc<TableGenerator>, Range<u64>) -> Content,
    ) -> Result<Vec<Content>, DataError> {
        let rows = self.rows_of(table);
        let key = format!("{:?} {} {} {rows:?} {what}", table.columns, table.rows, table.seed);
        if let Some(contents) = self.contents.get(&key) {
            return Ok(contents.clone());
        }
        let generator = Arc::new(generator()?);
        let contents: Vec<Content> = rows.into_iter().map(|rows| content(&generator, rows)).collect();
        self.contents.insert(key, contents.clone());
        Ok(contents)
    }
}

/// All copies.
fn together(copies: Vec<Content>) -> Content {
    copies.into_iter().fold(Content::default(), Content::merge)
}
