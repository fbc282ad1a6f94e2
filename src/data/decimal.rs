//! Exact decimal numbers as canonical text, the way `numeric` prints them.

/// `text` as `numeric` would print it after storing it: no leading zeros, no exponent, no negative zero,
/// rounded (half away from zero) to `scale` digits after the point, or with as many as written.
///
/// `None` for text that is no decimal number or is beyond `numeric`'s 131072 digits before and 16383 after the point.
pub(super) fn canonical(text: &str, scale: Option<u32>) -> Option<String> {
    let text = text.trim();
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    match unsigned.to_ascii_lowercase().as_str() {
        "nan" if unsigned.len() == text.len() => return Some("NaN".to_owned()),
        "inf" | "infinity" => return Some(if negative { "-Infinity" } else { "Infinity" }.to_owned()),
        _ => {}
    }
    let (digits, point) = split(unsigned)?;
    let written = u32::try_from(i64::try_from(digits.len()).ok()?.checked_sub(point)?.max(0)).ok()?;
    let scale = scale.unwrap_or(written);
    if point > 131_072 || scale > 16_383 || point < -16_384 {
        return None;
    }
    let rounded = round(&digits, point, i64::from(scale));
    Some(print(&rounded, scale as usize, negative))
}

/// Digits without point and the number of digits before the point (may be negative or beyond the end).
fn split(unsigned: &str) -> Option<(Vec<u8>, i64)> {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).collect();
    let valid = !digits.is_empty() && digits.len() <= 200_000 && digits.iter().all(u8::is_ascii_digit);
    valid.then_some((digits, i64::try_from(whole.len()).ok()? + i64::from(exponent)))
}

/// The digits of the number times `10^scale`, rounded half away from zero.
fn round(digits: &[u8], point: i64, scale: i64) -> Vec<u8> {
    let keep = point + scale;
    if keep < 0 {
        return Vec::new();
    }
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    let mut kept = digits[..keep.min(digits.len())].to_vec();
    if keep >= digits.len() {
        kept.resize(keep, b'0');
    } else if digits[keep] >= b'5' {
        increment(&mut kept);
    }
    kept
}

fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
    digits.insert(0, b'1');
}

fn print(digits: &[u8], scale: usize, negative: bool) -> String {
    let significant = &digits[digits.iter().position(|digit| *digit != b'0').unwrap_or(digits.len())..];
    let mut text = String::with_capacity(significant.len().max(scale) + 3);
    if negative && !significant.is_empty() {
        text.push('-');
    }
    let whole = significant.len().saturating_sub(scale);
    if whole == 0 {
        text.push('0');
    }
    text.extend(significant[..whole].iter().map(|digit| char::from(*digit)));
    if scale > 0 {
        text.push('.');
        text.extend(std::iter::repeat_n('0', scale - (significant.len() - whole)));
        text.extend(significant[whole..].iter().map(|digit| char::from(*digit)));
    }
    text
}

/// The number times `10^scale`, rounded; `None` when it is special, no number or beyond 128 bits.
pub(super) fn mantissa(text: &str, scale: u32) -> Option<i128> {
    let mut text = canonical(text, Some(scale))?;
    text.retain(|character| character != '.');
    text.parse().ok()
}

/// Digits after the point as written; `None` when it is no finite decimal number.
pub(super) fn written_scale(text: &str) -> Option<u32> {
    let text = canonical(text, None)?;
    let finite = text.ends_with(|character: char| character.is_ascii_digit());
    let fraction = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    finite.then(|| u32::try_from(fraction).ok()).flatten()
}

/// Appends `mantissa / 10^scale` with all digits of the scale.
pub(super) fn write_fixed(mantissa: i128, scale: u32, out: &mut String) {
    let mut buffer = itoa::Buffer::new();
    if mantissa < 0 {
        out.push('-');
    }
    let digits = match u64::try_from(mantissa.unsigned_abs()) {
        Ok(small) => buffer.format(small),
        Err(_) => buffer.format(mantissa.unsigned_abs()),
    };
    let scale = scale as usize;
    if scale == 0 {
        out.push_str(digits);
        return;
    }
    let whole = digits.len().saturating_sub(scale);
    out.push_str(if whole == 0 { "0" } else { &digits[..whole] });
    out.push('.');
    out.extend(std::iter::repeat_n('0', scale - (digits.len() - whole)));
    out.push_str(&digits[whole..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_as_the_server_does() {
        for (text, scale, expected) in [
            ("5", Some(2), "5.00"),
            ("007.50", None, "7.50"),
            ("-0.004", Some(2), "0.00"),
            ("-0.005", Some(2), "-0.01"),
            ("9.995", Some(2), "10.00"),
            ("1e3", None, "1000"),
            ("1.5e3", None, "1500"),
            ("1E-2", None, "0.01"),
            ("12345e-2", Some(0), "123"),
            (".5", None, "0.5"),
            ("5.", None, "5"),
            ("+1", None, "1"),
            ("nan", Some(2), "NaN"),
            ("-inf", None, "-Infinity"),
            ("0.0000001", Some(3), "0.000"),
        ] {
            assert_eq!(canonical(text, scale).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_number() {
        for text in ["", ".", "-", "1e", "1.2.3", "abc", "1e999999", "-nan", "0x10", "1_000"] {
            assert_eq!(canonical(text, None), None, "{text}");
        }
    }

    #[test]
    fn fixed_point_is_written_with_its_scale() {
        for (mantissa, scale, expected) in
            [(5, 2, "0.05"), (-5, 2, "-0.05"), (500, 2, "5.00"), (0, 3, "0.000"), (-12, 0, "-12")]
        {
            let mut text = String::new();
            write_fixed(mantissa, scale, &mut text);
            assert_eq!(text, expected);
            assert_eq!(super::mantissa(&text, scale), Some(mantissa));
        }
        assert_eq!((written_scale("1.50"), written_scale("NaN")), (Some(2), None));
    }
}
