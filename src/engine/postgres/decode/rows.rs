//! Rows of COPY's text and CSV formats cut into fields. The server sends each row as one message.

use super::Decoder;
use crate::engine::postgres::load::WorkError;

/// Takes a row of the text format: tabs between fields, `\N` for NULL, backslash escapes.
pub(in crate::engine::postgres) fn text_row(decoder: &mut Decoder, message: &[u8]) -> Result<(), WorkError> {
    let line = line(message)?;
    let mut buffer = std::mem::take(&mut decoder.buffer);
    for field in line.split(|byte| *byte == b'\t') {
        if field == b"\\N" {
            decoder.text(None)?;
        } else if field.contains(&b'\\') {
            unescape(field, &mut buffer);
            decoder.text(Some(&buffer))?;
        } else {
            decoder.text(Some(field))?;
        }
    }
    decoder.buffer = buffer;
    decoder.end_row()
}

/// Takes a row of the CSV format: an empty field is NULL, an empty text is `""`.
pub(in crate::engine::postgres) fn csv_row(decoder: &mut Decoder, message: &[u8]) -> Result<(), WorkError> {
    let mut rest = line(message)?;
    let mut buffer = std::mem::take(&mut decoder.buffer);
    loop {
        if let Some(quoted) = rest.strip_prefix(b"\"") {
            rest = unquote(quoted, &mut buffer)
                .ok_or_else(|| WorkError::Protocol("a CSV field in quotes has no end".to_owned()))?;
            decoder.text(Some(&buffer))?;
        } else {
            let end = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
            let (field, after) = rest.split_at(end);
            decoder.text((!field.is_empty()).then_some(field))?;
            rest = after;
        }
        match rest.split_first() {
            None => break,
            Some((b',', after)) => rest = after,
            Some(_) => return Err(WorkError::Protocol("CSV fields are not separated".to_owned())),
        }
    }
    decoder.buffer = buffer;
    decoder.end_row()
}

fn line(message: &[u8]) -> Result<&[u8], WorkError> {
    let line = message.strip_suffix(b"\n");
    line.ok_or_else(|| WorkError::Protocol("a message of COPY is no whole row".to_owned()))
}

fn unescape(field: &[u8], buffer: &mut Vec<u8>) {
    buffer.clear();
    let mut bytes = field.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'\\' {
            buffer.push(*byte);
            continue;
        }
        buffer.extend(bytes.next().map(|escaped| match escaped {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 11,
            other => *other,
        }));
    }
}

/// Puts a field in quotes into the buffer, with double quotes made single; what follows the closing quote.
fn unquote<'a>(quoted: &'a [u8], buffer: &mut Vec<u8>) -> Option<&'a [u8]> {
    buffer.clear();
    let mut rest = quoted;
    loop {
        let at = rest.iter().position(|byte| *byte == b'"')?;
        buffer.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        match rest.strip_prefix(b"\"") {
            Some(after) => {
                buffer.push(b'"');
                rest = after;
            }
            None => return Some(rest),
        }
    }
}
