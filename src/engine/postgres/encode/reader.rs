//! The rows of a binary COPY stream, cut out of chunks of any size.

use bytes::{Buf, BytesMut};
use thiserror::Error;

/// First bytes of every binary COPY stream.
const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Signature, flags and the length of the extension.
const FIXED_HEADER: usize = 19;

/// Why a stream is not a whole binary COPY.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StreamError {
    /// It does not begin as one.
    #[error("the stream is no binary COPY: it begins with {0:02x?}")]
    Signature(Vec<u8>),
    /// A length that cannot be.
    #[error("row {row} of the binary COPY stream has a {what} of {found}")]
    Length {
        /// Row, from 0.
        row: u64,
        /// What the length is of.
        what: &'static str,
        /// The length.
        found: i32,
    },
    /// Bytes after the trailer.
    #[error("{0} bytes follow the end of the binary COPY stream")]
    Trailing(usize),
    /// No trailer.
    #[error("the binary COPY stream ends early, after {0} rows")]
    Truncated(u64),
}

/// Cuts a stream into rows. Memory: one row and one chunk.
#[derive(Debug, Default)]
pub struct CopyRows {
    state: State,
    carry: BytesMut,
    rows: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Header,
    Rows,
    Done,
}

/// What stands at the front of the bytes at hand.
enum Front {
    Header(usize),
    /// Length of the row with its field count.
    Row(usize),
    Trailer,
    Incomplete,
}

impl CopyRows {
    /// Takes the next chunk; `on_row` gets the fields of each complete row, each after its length.
    pub fn push(&mut self, chunk: &[u8], mut on_row: impl FnMut(&[u8])) -> Result<(), StreamError> {
        if self.carry.is_empty() {
            let used = self.consume(chunk, &mut on_row)?;
            self.carry.extend_from_slice(&chunk[used..]);
        } else {
            let mut carry = std::mem::take(&mut self.carry);
            carry.extend_from_slice(chunk);
            let used = self.consume(&carry, &mut on_row)?;
            carry.advance(used);
            self.carry = carry;
        }
        Ok(())
    }

    /// The number of rows, when the stream was whole.
    pub fn finish(&self) -> Result<u64, StreamError> {
        match self.state {
            State::Done => Ok(self.rows),
            State::Header | State::Rows => Err(StreamError::Truncated(self.rows)),
        }
    }

    /// Hands out all complete rows; how many bytes they and the header took.
    fn consume(&mut self, bytes: &[u8], on_row: &mut impl FnMut(&[u8])) -> Result<usize, StreamError> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match self.front(rest)? {
                Front::Incomplete => return Ok(used),
                Front::Header(length) => {
                    self.state = State::Rows;
                    used += length;
                }
                Front::Row(length) => {
                    on_row(&rest[2..length]);
                    self.rows += 1;
                    used += length;
                }
                Front::Trailer => {
                    self.state = State::Done;
                    used += 2;
                }
            }
        }
    }

    fn front(&self, rest: &[u8]) -> Result<Front, StreamError> {
        match self.state {
            State::Header => header(rest),
            State::Rows => self.row(rest),
            State::Done if rest.is_empty() => Ok(Front::Incomplete),
            State::Done => Err(StreamError::Trailing(rest.len())),
        }
    }

    fn row(&self, rest: &[u8]) -> Result<Front, StreamError> {
        let wrong = |what, found| StreamError::Length { row: self.rows, what, found };
        let Some(count) = rest.first_chunk::<2>() else { return Ok(Front::Incomplete) };
        let fields = match i16::from_be_bytes(*count) {
            -1 => return Ok(Front::Trailer),
            count => u16::try_from(count).map_err(|_| wrong("field count", i32::from(count)))?,
        };
        let mut end = 2_usize;
        for _ in 0..fields {
            let Some(length) = rest.get(end..).and_then(|rest| rest.first_chunk::<4>()) else {
                return Ok(Front::Incomplete);
            };
            end += 4;
            match i32::from_be_bytes(*length) {
                -1 => {}
                length => end += usize::try_from(length).map_err(|_| wrong("field length", length))?,
            }
        }
        Ok(if end <= rest.len() { Front::Row(end) } else { Front::Incomplete })
    }
}

fn header(rest: &[u8]) -> Result<Front, StreamError> {
    let begin = &rest[..rest.len().min(SIGNATURE.len())];
    if !SIGNATURE.starts_with(begin) {
        return Err(StreamError::Signature(begin.to_vec()));
    }
    let Some(extension) = rest.get(FIXED_HEADER - 4..).and_then(|rest| rest.first_chunk::<4>()) else {
        return Ok(Front::Incomplete);
    };
    let found = i32::from_be_bytes(*extension);
    let wrong = |_| StreamError::Length { row: 0, what: "header extension", found };
    let length = FIXED_HEADER + usize::try_from(found).map_err(wrong)?;
    Ok(if rest.len() >= length { Front::Header(length) } else { Front::Incomplete })
}
