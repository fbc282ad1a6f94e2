//! Numbers as people read them.

/// `12,345`, `123`, `1.23`, `1.23e-4`: three significant digits below 1,000, whole numbers above.
pub(super) fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 99.95 || size == 0.0 {
        grouped(value)
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size >= 0.995 {
        format!("{value:.2}")
    } else if size >= 0.0995 {
        format!("{value:.3}")
    } else {
        format!("{value:.2e}")
    }
}

/// Whole number with commas.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits.as_str()), |digits| ("-", digits));
    let mut out = String::from(sign);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1.23 s`, `45.6 ms`, `789 us`.
pub(super) fn seconds(value: f64) -> String {
    match value.abs() {
        size if size >= 0.9995 || size == 0.0 => format!("{} s", number(value)),
        size if size >= 0.000_999_5 => format!("{} ms", number(value * 1e3)),
        _ => format!("{} us", number(value * 1e6)),
    }
}

/// `4.50 MB`: powers of 1,000.
pub(super) fn bytes(value: f64) -> String {
    for (unit, size) in [("GB", 1e9), ("MB", 1e6), ("kB", 1e3)] {
        if value.abs() >= size * 0.9995 {
            return format!("{} {unit}", number(value / size));
        }
    }
    format!("{} B", number(value))
}

/// `3.4 %`, `12 %`.
pub(super) fn percent(share: f64) -> String {
    let value = share * 100.0;
    if value.abs() >= 9.95 { format!("{value:.0} %") } else { format!("{value:.1} %") }
}

/// `1.83x`.
pub(super) fn times(ratio: f64) -> String {
    if ratio > 9.999e5 || (ratio > 0.0 && ratio < 1e-4) {
        return format!("{ratio:.0e}x");
    }
    if (0.1..99.95).contains(&ratio) { format!("{ratio:.2}x") } else { format!("{}x", number(ratio)) }
}

/// `1 h 02 min`, `3 min 20 s`, `45 s`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating is right for a display"
)]
pub(super) fn duration(value: f64) -> String {
    let whole = value.max(0.0).round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m} min {s:02} s"),
        (h, m, _) => format!("{h} h {m:02} min"),
    }
}

/// `4 us`, `0.31 ms`, `12 ms`.
pub(super) fn short_seconds(seconds: f64) -> String {
    if seconds < 0.000_1 {
        format!("{:.0} us", seconds * 1e6)
    } else if seconds < 0.01 {
        format!("{:.2} ms", seconds * 1e3)
    } else {
        format!("{:.0} ms", seconds * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_grouped() {
        let written = [0.0, 0.1234, 1.234, 12.34, 99.96, 123.4, 12_345.6, 1_234_567.0, -1234.0].map(number);
        assert_eq!(written, ["0", "0.123", "1.23", "12.3", "100", "123", "12,346", "1,234,567", "-1,234"]);
    }

    #[test]
    fn units_follow_the_size() {
        assert_eq!([0.0, 1.234, 0.0456, 0.000_789].map(seconds), ["0 s", "1.23 s", "45.6 ms", "789 us"]);
        assert_eq!([512.0, 4.5e6, 16_777_216.0, 2e9].map(bytes), ["512 B", "4.50 MB", "16.8 MB", "2.00 GB"]);
        assert_eq!([0.034, 0.12, 1.5].map(percent), ["3.4 %", "12 %", "150 %"]);
        assert_eq!([1.834, 0.5, 123.0].map(times), ["1.83x", "0.50x", "123x"]);
        assert_eq!([45.4, 200.0, 3720.0, -1.0].map(duration), ["45 s", "3 min 20 s", "1 h 02 min", "0 s"]);
    }
}
