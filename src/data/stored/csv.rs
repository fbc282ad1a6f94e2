//! CSV as PostgreSQL's COPY reads it, row by row.
//!
//! Quotes may begin anywhere in a field and are doubled inside; a field is NULL when it is written as the null text without
//! any quote. A quoted field may hold line ends. The rules are those of the documentation of COPY, "CSV Format".

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use super::write::Writer;
use super::{CsvFormat, FileProblem, Wanted, by_name};

/// Longest row: a quote that is never closed must not pull the whole file into memory.
const LONGEST_ROW: usize = 256 << 20;

/// Reads all rows into a store; what is wrong is noted there.
pub(super) fn read(path: &Path, format: &CsvFormat, wanted: &[Wanted], writer: &mut Writer<'_>) {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => {
            writer.problem(FileProblem::of_file(error.to_string()));
            return;
        }
    };
    let mut rows = Rows::new(BufReader::with_capacity(1 << 20, file), format);
    if let Err(problem) = all(&mut rows, format, wanted, writer) {
        writer.problem(problem);
    }
}

fn all<R: BufRead>(
    rows: &mut Rows<R>,
    format: &CsvFormat,
    wanted: &[Wanted],
    writer: &mut Writer<'_>,
) -> Result<(), FileProblem> {
    let mut places: Vec<usize> = (0..wanted.len()).collect();
    if format.header {
        if !rows.next()? {
            return Err(FileProblem::of_file(
                "the file is empty, without even a line that names its columns",
            ));
        }
        let names: Result<Vec<String>, FileProblem> =
            (0..rows.fields()).map(|field| Ok(rows.text(field)?.trim().to_owned())).collect();
        match by_name(&names?, wanted) {
            Ok(found) => places = found,
            Err(problems) => {
                for problem in problems {
                    writer.problem(problem);
                }
                return Ok(());
            }
        }
    }
    while rows.next()? {
        let line = rows.line;
        let place = move || format!("line {line}");
        if rows.fields() != wanted.len() {
            let problem = FileProblem {
                place: place(),
                expected: Some(format!("{} fields, one for each column", wanted.len())),
                ..FileProblem::of_file(format!("this row has {} fields", rows.fields()))
            };
            if !writer.problem(problem) {
                return Ok(());
            }
            continue;
        }
        for field in 0..rows.fields() {
            rows.text(field)?;
        }
        let null = format.null.as_str();
        let text = |column: usize| {
            let field = places[column];
            // Checked just above.
            rows.text(field).ok().filter(|text| rows.quoted[field] || *text != null)
        };
        if !writer.row(&place, text) {
            return Ok(());
        }
    }
    Ok(())
}

/// The rows of a file; one at a time is in memory.
struct Rows<R> {
    from: R,
    delimiter: u8,
    quote: u8,
    /// The row as it stands in the file.
    raw: Vec<u8>,
    /// Its fields without quotes, one after the other.
    text: Vec<u8>,
    /// Where each field ends in `text`.
    ends: Vec<usize>,
    /// Whether a field had quotes.
    quoted: Vec<bool>,
    /// Line on which the row begins, from 1.
    line: u64,
    /// Line after it.
    next_line: u64,
}

impl<R: BufRead> Rows<R> {
    fn new(from: R, format: &CsvFormat) -> Self {
        Self {
            from,
            delimiter: format.delimiter,
            quote: format.quote,
            raw: Vec::new(),
            text: Vec::new(),
            ends: Vec::new(),
            quoted: Vec::new(),
            line: 0,
            next_line: 1,
        }
    }

    fn problem(&self, message: impl Into<String>) -> FileProblem {
        FileProblem { place: format!("line {}", self.line), ..FileProblem::of_file(message) }
    }

    /// The next row; false at the end of the file.
    fn next(&mut self) -> Result<bool, FileProblem> {
        self.raw.clear();
        self.line = self.next_line;
        let mut inside = false;
        loop {
            let start = self.raw.len();
            let read = self.read_line().map_err(|error| self.problem(error.to_string()))?;
            if read == 0 {
                if inside {
                    return Err(self.problem("a quote that begins in this row is never closed"));
                }
                return Ok(false);
            }
            if self.line == 1 && start == 0 && self.raw.starts_with(b"\xef\xbb\xbf") {
                // A mark that some programs put before UTF-8.
                self.raw.drain(..3);
            }
            self.next_line += 1;
            // A doubled quote ends and begins again, which comes to the same.
            for byte in &self.raw[start..] {
                inside ^= *byte == self.quote;
            }
            if !inside {
                break;
            }
            if self.raw.len() > LONGEST_ROW {
                return Err(self.problem("a quote that begins in this row is not closed within 256 MiB"));
            }
        }
        self.split()?;
        Ok(true)
    }

    fn read_line(&mut self) -> io::Result<usize> {
        let most = LONGEST_ROW as u64 + 1;
        io::Read::take(&mut self.from, most).read_until(b'\n', &mut self.raw)
    }

    fn split(&mut self) -> Result<(), FileProblem> {
        let end = self.raw.strip_suffix(b"\n").map_or(self.raw.len(), <[u8]>::len);
        let end = self.raw[..end].strip_suffix(b"\r").map_or(end, <[u8]>::len);
        self.text.clear();
        self.ends.clear();
        self.quoted.clear();
        let (mut inside, mut quoted) = (false, false);
        let mut bytes = self.raw[..end].iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if byte == self.quote {
                if inside && bytes.next_if_eq(&self.quote).is_some() {
                    self.text.push(byte);
                } else {
                    inside = !inside;
                    quoted = true;
                }
            } else if byte == self.delimiter && !inside {
                self.ends.push(self.text.len());
                self.quoted.push(quoted);
                quoted = false;
            } else if byte == b'\r' && !inside {
                return Err(self.problem("a carriage return stands in the middle of a line, without quotes"));
            } else {
                self.text.push(byte);
            }
        }
        self.ends.push(self.text.len());
        self.quoted.push(quoted);
        Ok(())
    }

    fn fields(&self) -> usize {
        self.ends.len()
    }

    fn text(&self, field: usize) -> Result<&str, FileProblem> {
        let start = if field == 0 { 0 } else { self.ends[field - 1] };
        std::str::from_utf8(&self.text[start..self.ends[field]])
            .map_err(|_| self.problem(format!("field {} is not UTF-8 text", field + 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: CsvFormat = CsvFormat { header: false, delimiter: b',', quote: b'"', null: String::new() };

    /// Rows with their line and fields; `~` for a field that is NULL.
    fn rows(text: &str) -> Result<Vec<(u64, Vec<String>)>, FileProblem> {
        let mut rows = Rows::new(text.as_bytes(), &FORMAT);
        let mut all = Vec::new();
        while rows.next()? {
            let field = |field: usize| {
                let text = rows.text(field)?;
                Ok(if text.is_empty() && !rows.quoted[field] { "~".to_owned() } else { text.to_owned() })
            };
            all.push((rows.line, (0..rows.fields()).map(field).collect::<Result<_, FileProblem>>()?));
        }
        Ok(all)
    }

    #[test]
    fn quotes_nulls_and_line_ends_are_read_as_copy_reads_them() {
        let found = rows("\u{feff}a,\"b \"\"c\"\"\",,\"\"\r\n1,\"two\nlines\",x\"y,z\"w,\n\\.,\t, \"\" ,'\n")
            .unwrap();
        let expected = [
            (1, vec!["a", "b \"c\"", "~", ""]),
            (2, vec!["1", "two\nlines", "xy,zw", "~"]),
            (4, vec!["\\.", "\t", "  ", "'"]),
        ];
        for ((line, fields), (expected_line, expected)) in found.iter().zip(&expected) {
            assert_eq!(
                (line, fields),
                (expected_line, &expected.iter().map(ToString::to_string).collect::<Vec<_>>())
            );
        }
        assert_eq!(found.len(), 3);
        assert_eq!(rows("a\nb").unwrap().len(), 2, "the last line may have no end");
        assert_eq!(rows("a\n\nb\n").unwrap()[1], (2, vec!["~".to_owned()]), "an empty line is a row");
    }

    #[test]
    fn broken_files_are_told_with_their_line() {
        let problem = |text: &str| rows(text).expect_err("broken");
        assert_eq!(problem("a\n\"b\nc\n").place, "line 2");
        assert!(problem("a\rb\n").message.contains("carriage return"));
    }
}
