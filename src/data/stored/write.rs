//! Makes a row store from a file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::{FileProblem, MOST_PROBLEMS, Page, RowFile, RowFormat, Wanted, csv, field, parquet};
use crate::data::constant::constant;
use crate::data::decimal::written_scale;
use crate::data::value::OwnedValue;
use crate::model::{ColumnType, Scalar};

/// Files of a store.
pub(super) const ROWS: &str = "rows";
pub(super) const PAGES: &str = "pages";
const FACTS: &str = "facts.json";
/// A page is full when it holds so many bytes.
const PAGE_BYTES: usize = 64 * 1024;
/// Goes into the name of a store; raised when its layout or the reading of values changes.
const LAYOUT: &str = "1";
/// Longest value shown in a message.
const SHOWN: usize = 40;

/// A store that was made from a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// Its folder.
    pub folder: PathBuf,
    /// XXH3-128 of the file (hex).
    pub digest: String,
    /// Rows of the file.
    pub rows: u64,
    /// Widths of the values by wanted column.
    pub widths: Vec<StoredWidth>,
}

/// How wide the values of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct StoredWidth {
    /// Average bytes of a value that is not NULL.
    pub average: f64,
    /// Most bytes of a value.
    pub most: u32,
    /// Share of rows that are NULL, 0 to 1.
    pub nulls: f64,
}

/// `facts.json`: written last, so that a store without it is not one.
#[derive(Serialize, Deserialize)]
struct Facts {
    rows: u64,
    widths: Vec<StoredWidth>,
}

pub(super) fn convert(
    file: &RowFile,
    wanted: &[Wanted],
    cache: &Path,
) -> Result<Converted, Vec<FileProblem>> {
    let whole = |why: io::Error| vec![FileProblem::of_file(why.to_string())];
    let digest = digest(&file.path).map_err(whole)?;
    let stores = cache.join("rows");
    let folder = stores.join(name(&digest, file, wanted));
    if let Some(facts) = facts(&folder) {
        return Ok(Converted { folder, digest, rows: facts.rows, widths: facts.widths });
    }
    let writing = |error: io::Error| {
        vec![FileProblem::of_file(format!("the row store {} cannot be written: {error}", folder.display()))]
    };
    // Another process may be making the same: each in a folder of its own, and the first one stays.
    let partial = stores.join(format!(".new-{}-{}", std::process::id(), &digest[..8]));
    fs::create_dir_all(&partial).map_err(writing)?;
    let made = make(file, wanted, &partial);
    let outcome = made.and_then(|facts| {
        let text = serde_json::to_vec(&facts).map_err(|error| writing(error.into()))?;
        fs::write(partial.join(FACTS), text).map_err(writing)?;
        match fs::rename(&partial, &folder) {
            Err(error) if !folder.join(FACTS).is_file() => Err(writing(error)),
            _ => Ok(facts),
        }
    });
    if fs::exists(&partial).unwrap_or(false) {
        // Space only; its name is not used again while this process lives.
        drop(fs::remove_dir_all(&partial));
    }
    outcome.map(|facts| Converted { folder, digest, rows: facts.rows, widths: facts.widths })
}

fn facts(folder: &Path) -> Option<Facts> {
    serde_json::from_slice(&fs::read(folder.join(FACTS)).ok()?).ok()
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Xxh3::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(format!("{:032x}", hash.digest128())),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// Name of the store: everything that decides what is in it.
fn name(digest: &str, file: &RowFile, wanted: &[Wanted]) -> String {
    let mut hash = Xxh3::new();
    hash.update(format!("{LAYOUT} {digest} {:?} {wanted:?}", file.format).as_bytes());
    format!("{:032x}", hash.digest128())
}

fn make(file: &RowFile, wanted: &[Wanted], folder: &Path) -> Result<Facts, Vec<FileProblem>> {
    let mut writer =
        Writer::new(wanted, folder).map_err(|error| vec![FileProblem::of_file(error.to_string())])?;
    match &file.format {
        RowFormat::Csv(format) => csv::read(&file.path, format, wanted, &mut writer),
        RowFormat::Parquet => parquet::read(&file.path, wanted, &mut writer),
    }
    writer.finish()
}

/// Takes rows one by one, checks them, writes them.
pub(super) struct Writer<'a> {
    wanted: &'a [Wanted],
    rows: BufWriter<File>,
    pages: BufWriter<File>,
    page: Vec<u8>,
    row: Vec<u8>,
    count: u64,
    written: u64,
    sums: Vec<Sum>,
    problems: Vec<FileProblem>,
}

#[derive(Clone, Copy, Default)]
struct Sum {
    bytes: u64,
    most: usize,
    nulls: u64,
}

impl<'a> Writer<'a> {
    fn new(wanted: &'a [Wanted], folder: &Path) -> io::Result<Self> {
        let create = |name: &str| File::create(folder.join(name)).map(BufWriter::new);
        Ok(Self {
            rows: create(ROWS)?,
            pages: create(PAGES)?,
            page: Vec::with_capacity(2 * PAGE_BYTES),
            row: Vec::new(),
            count: 0,
            written: 0,
            sums: vec![Sum::default(); wanted.len()],
            problems: Vec::new(),
            wanted,
        })
    }

    /// Notes what is wrong; false when enough is known and reading may end.
    pub(super) fn problem(&mut self, problem: FileProblem) -> bool {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem);
        }
        self.problems.len() < MOST_PROBLEMS
    }

    /// Adds a row: the text of each wanted column, `None` for NULL. `place` names it in messages. False when reading
    /// may end.
    pub(super) fn row<'t>(
        &mut self,
        place: &dyn Fn() -> String,
        text: impl Fn(usize) -> Option<&'t str>,
    ) -> bool {
        let count = u32::try_from(self.wanted.len()).unwrap_or(u32::MAX);
        self.row.clear();
        self.row.extend_from_slice(&count.to_le_bytes());
        for (index, column) in self.wanted.iter().enumerate() {
            let value = match text(index) {
                None if column.not_null => Err("NULL is not allowed here".to_owned()),
                None => Ok(OwnedValue::Null),
                Some(text) => exactly(text, &column.kind),
            };
            match value {
                Ok(value) => {
                    let start = self.row.len();
                    field::put(&value, &mut self.row);
                    self.sums[index].add(&value, self.row.len() - start - 4);
                }
                Err(why) => {
                    let problem = FileProblem {
                        place: place(),
                        column: Some(column.name.clone()),
                        message: shorten(&why),
                        expected: Some(format!("a value of type {}", column.sql_type)),
                        unknown: None,
                    };
                    if !self.problem(problem) {
                        return false;
                    }
                }
            }
        }
        self.count += 1;
        self.page.extend_from_slice(&self.row);
        if self.page.len() < PAGE_BYTES {
            return true;
        }
        match self.flush() {
            Ok(()) => true,
            Err(error) => {
                self.problem(FileProblem::of_file(format!("the row store cannot be written: {error}")));
                false
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.page.is_empty() {
            return Ok(());
        }
        self.rows.write_all(&self.page)?;
        self.written += self.page.len() as u64;
        self.pages.write_all(&self.count.to_le_bytes())?;
        self.pages.write_all(&self.written.to_le_bytes())?;
        self.page.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<Facts, Vec<FileProblem>> {
        let flushed = self.flush().and_then(|()| self.rows.flush()).and_then(|()| self.pages.flush());
        let synced = flushed.and_then(|()| self.rows.get_ref().sync_all());
        if let Err(error) = synced {
            self.problem(FileProblem::of_file(format!("the row store cannot be written: {error}")));
        }
        if !self.problems.is_empty() {
            return Err(self.problems);
        }
        let widths = self.sums.iter().map(|sum| sum.width(self.count));
        Ok(Facts { rows: self.count, widths: widths.collect() })
    }
}

impl Sum {
    fn add(&mut self, value: &OwnedValue, bytes: usize) {
        if *value == OwnedValue::Null {
            self.nulls += 1;
        } else {
            self.bytes += bytes as u64;
            self.most = self.most.max(bytes);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "averages and shares")]
    fn width(&self, rows: u64) -> StoredWidth {
        let values = rows - self.nulls;
        StoredWidth {
            average: if values == 0 { 0.0 } else { self.bytes as f64 / values as f64 },
            most: u32::try_from(self.most).unwrap_or(u32::MAX),
            nulls: if rows == 0 { 0.0 } else { self.nulls as f64 / rows as f64 },
        }
    }
}

/// Messages repeat the value, which may be a whole book.
fn shorten(text: &str) -> String {
    let length = text.chars().count();
    if length <= 4 * SHOWN {
        return text.to_owned();
    }
    let head: String = text.chars().take(SHOWN).collect();
    let tail: String = text.chars().skip(length - 2 * SHOWN).collect();
    format!("{head}...{tail}")
}

/// Pages as written: for each the number of rows and of bytes up to its end.
pub(super) fn read_pages(bytes: &[u8]) -> io::Result<Vec<Page>> {
    let (entries, rest) = bytes.as_chunks::<16>();
    if !rest.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the list of pages is not whole"));
    }
    let mut pages: Vec<Page> = Vec::with_capacity(entries.len());
    let (mut row, mut byte) = (0, 0);
    for entry in entries {
        let number = |at: usize| {
            entry[at..at + 8].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let (row_end, byte_end) = (number(0), number(8));
        if row_end <= row || byte_end <= byte {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the list of pages is damaged"));
        }
        pages.push(Page { rows: row..row_end, bytes: byte..byte_end });
        (row, byte) = (row_end, byte_end);
    }
    Ok(pages)
}

/// The value of a text; a number that the column would round is refused, for the file would not be what is stored.
fn exactly(text: &str, kind: &ColumnType) -> Result<OwnedValue, String> {
    if let ColumnType::Numeric { precision: Some(_), scale } = kind
        && written_scale(text).is_some_and(|written| written > *scale)
    {
        return Err(format!("{text} has more than {scale} digits after the point and would be rounded"));
    }
    constant(&Scalar::Text(text.to_owned()), kind)
}
