//! A load without a server: rows are made and encoded by the code of the real load, and thrown away.

use std::hint::black_box;
use std::sync::Arc;

use super::copy::ChunkedEncoder;
use super::insert;
use crate::data::{DataError, TableGenerator};
use crate::engine::postgres::encode::{ArrayParameters, RawParameter, column_list, quote_ident};
use crate::model::{Copy, CopySource, LoadMethod, Table};

/// Makes what a client of a load would send, piece by piece and without end: after the last row comes the first.
pub struct NullSink {
    generator: Arc<TableGenerator>,
    /// Rows of the table, at least 1.
    rows: u64,
    next: u64,
    work: Work,
}

/// What was made: a batch, or a chunk of COPY data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Rows in it.
    pub rows: u64,
    /// Bytes that would be sent.
    pub bytes: u64,
}

enum Work {
    Bound { rows_per_batch: u64 },
    Literals { head: String, rows_per_statement: u64, rows_per_batch: u64 },
    Arrays { arrays: Box<ArrayParameters>, rows_per_batch: u64 },
    Copy { knobs: Copy, open: Option<Box<ChunkedEncoder>> },
}

impl NullSink {
    /// The client of a method; `None` where the client makes no rows while the clock runs, or the table has none.
    ///
    /// # Errors
    /// When the rows cannot be made.
    pub fn new(table: &Table, method: &LoadMethod) -> Result<Option<Self>, DataError> {
        if table.rows == 0 {
            return Ok(None);
        }
        let generator = Arc::new(TableGenerator::new(table)?);
        let work = match method {
            LoadMethod::Insert(knobs) if knobs.prepared => {
                Work::Bound { rows_per_batch: knobs.rows_per_batch.max(1) }
            }
            LoadMethod::Insert(knobs) => Work::Literals {
                head: head(table),
                rows_per_statement: knobs.rows_per_statement.max(1),
                rows_per_batch: knobs.rows_per_batch.max(1),
            },
            LoadMethod::Unnest(knobs) => Work::Arrays {
                arrays: Box::new(ArrayParameters::new(Arc::clone(&generator))),
                rows_per_batch: knobs.rows_per_batch.max(1),
            },
            LoadMethod::Copy(knobs) if knobs.source == CopySource::Client => {
                Work::Copy { knobs: knobs.clone(), open: None }
            }
            // A file for the server is written before the clock starts.
            LoadMethod::Copy(_) | LoadMethod::Generate(_) | LoadMethod::Procedure(_) => return Ok(None),
        };
        Ok(Some(Self { generator, rows: table.rows, next: 0, work }))
    }

    /// Makes and encodes the next rows.
    pub fn piece(&mut self) -> Piece {
        if let Work::Copy { open: Some(encoder), .. } = &mut self.work {
            let left = encoder.left();
            if let Some(chunk) = encoder.next_chunk() {
                return Piece { rows: left - encoder.left(), bytes: black_box(chunk).len() as u64 };
            }
        }
        let start = if self.next < self.rows { self.next } else { 0 };
        let most = match &self.work {
            Work::Bound { rows_per_batch }
            | Work::Literals { rows_per_batch, .. }
            | Work::Arrays { rows_per_batch, .. } => *rows_per_batch,
            Work::Copy { knobs, .. } => knobs.rows_per_commit.unwrap_or(u64::MAX).max(1),
        };
        let rows = start..start.saturating_add(most).min(self.rows);
        self.next = rows.end;
        let count = rows.end - rows.start;
        let bytes = match &mut self.work {
            Work::Bound { .. } => {
                let encoded = insert::encode(&self.generator, rows);
                black_box(encoded.iter().collect::<Vec<RawParameter<'_>>>());
                encoded.bytes()
            }
            Work::Literals { head, rows_per_statement, .. } => {
                black_box(insert::spell(&self.generator, head, *rows_per_statement, rows)).len()
            }
            Work::Arrays { arrays, .. } => {
                arrays.set_rows(&rows);
                black_box(arrays.bytes())
            }
            Work::Copy { knobs, open } => {
                *open = Some(Box::new(ChunkedEncoder::new(knobs, &self.generator, rows)));
                return self.piece();
            }
        };
        Piece { rows: count, bytes: bytes as u64 }
    }
}

/// What each statement with literals begins with.
fn head(table: &Table) -> String {
    let name = table.copies.first().map_or(table.name.as_str(), |copy| copy.name.as_str());
    let columns = column_list(table.columns.iter().map(|column| column.name.as_str()));
    format!("INSERT INTO {} {columns} VALUES ", quote_ident(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{
        Column, ColumnType, CopyFormat, Generator, Insert, Persistence, SameTransaction, Scalar, TableCopy,
        Unnest,
    };

    fn table(rows: u64) -> Table {
        let generator = Generator::Sequence { start: Scalar::Int(1), step: 1.0 };
        let column = Column {
            name: "c".to_owned(),
            kind: ColumnType::Int4,
            sql_type: "integer".to_owned(),
            not_null: false,
            nulls: 0.0,
            generator,
        };
        Table {
            name: "t".to_owned(),
            copies: vec![TableCopy { name: "t".to_owned(), ddl: Vec::new(), indexes: Vec::new() }],
            columns: vec![column],
            persistence: Persistence::Logged,
            partitioned: false,
            rows,
            seed: 1,
        }
    }

    fn insert(prepared: bool) -> LoadMethod {
        LoadMethod::Insert(Insert {
            rows_per_statement: 2,
            rows_per_batch: 4,
            rows_per_commit: None,
            prepared,
        })
    }

    fn copy(source: CopySource) -> LoadMethod {
        LoadMethod::Copy(Copy {
            format: CopyFormat::Text,
            freeze: false,
            source,
            same_transaction: SameTransaction::None,
            rows_per_commit: None,
            chunk_bytes: 8,
            header: false,
        })
    }

    fn pieces(method: &LoadMethod, rows: u64, count: usize) -> Vec<(u64, u64)> {
        let mut sink = NullSink::new(&table(rows), method).unwrap().unwrap();
        (0..count).map(|_| sink.piece()).map(|piece| (piece.rows, piece.bytes)).collect()
    }

    #[test]
    fn pieces_are_those_of_the_real_load_and_never_end() {
        // Rows of a number of fields, a length and four bytes; six rows are a batch of four and one of two.
        assert_eq!(pieces(&insert(true), 6, 3), [(4, 40), (2, 20), (4, 40)]);
        // INSERT INTO "t" ("c") VALUES (1), (2);
        assert_eq!(pieces(&insert(false), 6, 2), [(4, 76), (2, 38)]);
        // Head of an array, and a length and four bytes for each row.
        let unnest = LoadMethod::Unnest(Unnest { rows_per_batch: 5, rows_per_commit: None });
        assert_eq!(pieces(&unnest, 6, 3), [(5, 60), (1, 28), (5, 60)]);
        // Lines of two bytes, four to a chunk.
        assert_eq!(pieces(&copy(CopySource::Client), 6, 3), [(4, 8), (2, 4), (4, 8)]);
    }

    #[test]
    fn rows_that_are_not_made_under_the_clock_have_no_sink() {
        assert!(NullSink::new(&table(0), &insert(true)).unwrap().is_none());
        assert!(NullSink::new(&table(6), &copy(CopySource::Server)).unwrap().is_none());
    }
}
