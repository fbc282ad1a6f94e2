//! Arrays in text form: `{1,2}`, `{"a,b",NULL}`.

use bytes::{BufMut, BytesMut};

use super::text;
use crate::engine::postgres::encode::field::{measured, type_oid};
use crate::model::ColumnType;

/// Appends length and bytes of a one-dimensional array in binary format.
///
/// # Errors
/// Says what cannot be understood.
pub(super) fn put(element: &ColumnType, array: &str, out: &mut BytesMut) -> Result<(), String> {
    let mut done = Ok(());
    measured(out, |out| done = body(element, array, out));
    done
}

fn body(element: &ColumnType, array: &str, out: &mut BytesMut) -> Result<(), String> {
    let start = out.len();
    // Dimensions and the flag for NULL are put in when they are known.
    out.put_i32(0);
    out.put_i32(0);
    out.put_u32(type_oid(element));
    let shape = out.len();
    let (mut count, mut null) = (0_i32, false);
    each(array.as_bytes(), |item| {
        if count == 0 {
            out.put_i32(0);
            // Index of the first element.
            out.put_i32(1);
        }
        count += 1;
        if let Some(item) = item {
            return text::put(element, item, out);
        }
        null = true;
        out.put_i32(-1);
        Ok(())
    })?;
    if count > 0 {
        out[start..start + 4].copy_from_slice(&1_i32.to_be_bytes());
        out[start + 4..start + 8].copy_from_slice(&i32::from(null).to_be_bytes());
        out[shape..shape + 4].copy_from_slice(&count.to_be_bytes());
    }
    Ok(())
}

/// Hands out the elements of an array in text form; `None` is NULL.
///
/// # Errors
/// The first of `take`, or what cannot be understood: several dimensions, bounds, no end.
pub(super) fn each(
    array: &[u8],
    mut take: impl FnMut(Option<&[u8]>) -> Result<(), String>,
) -> Result<(), String> {
    let inner = array.strip_prefix(b"{").and_then(|rest| rest.strip_suffix(b"}"));
    let mut rest = inner.ok_or("an array of one dimension begins with { and ends with }")?;
    let mut buffer = Vec::new();
    if rest.is_empty() {
        return Ok(());
    }
    loop {
        if let Some(quoted) = rest.strip_prefix(b"\"") {
            rest = unquote(quoted, &mut buffer).ok_or("an element in quotes has no end")?;
            take(Some(&buffer))?;
        } else {
            let end = rest.iter().position(|byte| *byte == b',').unwrap_or(rest.len());
            let (item, after) = rest.split_at(end);
            if item.is_empty() || item.contains(&b'{') {
                return Err("an array of several dimensions is not decoded".to_owned());
            }
            take((item != b"NULL").then_some(item))?;
            rest = after;
        }
        match rest.split_first() {
            None => return Ok(()),
            Some((b',', after)) => rest = after,
            Some(_) => return Err("the elements of an array are not separated".to_owned()),
        }
    }
}

/// Puts an element in quotes into the buffer, without its backslashes; what follows the closing quote.
fn unquote<'a>(quoted: &'a [u8], buffer: &mut Vec<u8>) -> Option<&'a [u8]> {
    buffer.clear();
    let mut bytes = quoted.iter().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => return quoted.get(at + 1..),
            b'\\' => buffer.push(*bytes.next()?.1),
            byte => buffer.push(*byte),
        }
    }
    None
}
