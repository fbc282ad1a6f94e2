//! Dates and timestamps as PostgreSQL counts, reads and prints them (proleptic Gregorian calendar, ISO style, UTC).

/// Days since 2000-01-01 that stand for `infinity`; the opposite end for `-infinity`.
pub const DATE_INFINITY: i32 = i32::MAX;
/// Microseconds since 2000-01-01 that stand for `infinity`; [`i64::MIN`] for `-infinity`.
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;

/// 4714-11-24 BC, the first day PostgreSQL knows.
pub(super) const FIRST_DAY: i64 = -2_451_545;
/// 5874897-12-31, the last `date`.
pub(super) const LAST_DAY: i64 = 2_145_031_948;
/// Microseconds of a second.
pub(super) const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// First timestamp.
pub(super) const FIRST_INSTANT: i64 = FIRST_DAY * DAY;
/// Last timestamp, 294276-12-31 23:59:59.999999.
pub(super) const LAST_INSTANT: i64 = 9_223_371_331_200_000_000 - 1;
/// Days from 1970-01-01 to 2000-01-01.
const EPOCH_SHIFT: i64 = 10_957;

/// Days since 2000-01-01 of a date, by Hinnant's "chrono-compatible low-level date algorithms"; year 0 is 1 BC.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year
        - 719_468
        - EPOCH_SHIFT
}

/// Year, month and day of a day; the inverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_SHIFT + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// Reads `YYYY-MM-DD`, with ` BC` after it if so, or `infinity` and `-infinity`.
pub fn parse_date(text: &str) -> Option<i32> {
    let text = text.trim();
    match text {
        "infinity" => return Some(DATE_INFINITY),
        "-infinity" => return Some(i32::MIN),
        _ => {}
    }
    let (date, before_christ) = strip_era(text);
    let days = parse_day(date, before_christ)?;
    (FIRST_DAY..=LAST_DAY).contains(&days).then(|| i32::try_from(days).ok()).flatten()
}

/// Reads a date, optionally `T` or a blank and `HH:MM[:SS[.ffffff]]`, a zone (`Z`, `+02`, `+02:00`), ` BC`.
///
/// Like the server, a `timestamp` ignores the zone; a `timestamptz` without one is taken as UTC.
pub fn parse_timestamp(text: &str, zoned: bool) -> Option<i64> {
    let text = text.trim();
    match text {
        "infinity" => return Some(TIMESTAMP_INFINITY),
        "-infinity" => return Some(i64::MIN),
        _ => {}
    }
    let (text, before_christ) = strip_era(text);
    let (date, clock) = text.split_once(['T', 't', ' ']).unwrap_or((text, ""));
    let days = parse_day(date, before_christ)?;
    let (clock, offset) = split_zone(clock.trim())?;
    let instant = days.checked_mul(DAY)?.checked_add(parse_clock(clock)?)?;
    let instant = if zoned { instant.checked_sub(offset * SECOND)? } else { instant };
    (FIRST_INSTANT..=LAST_INSTANT).contains(&instant).then_some(instant)
}

fn strip_era(text: &str) -> (&str, bool) {
    match text.strip_suffix("BC").or_else(|| text.strip_suffix("bc")) {
        Some(rest) => (rest.trim_end(), true),
        None => (text, false),
    }
}

fn parse_day(date: &str, before_christ: bool) -> Option<i64> {
    let mut parts = date.split('-');
    let year_text = parts.next()?;
    let (year, month, day) = (number(year_text)?, number(parts.next()?)?, number(parts.next()?)?);
    if parts.next().is_some() || year_text.len() < 4 || !(1..=5_874_897).contains(&year) {
        return None;
    }
    let year = if before_christ { 1 - year } else { year };
    let days = days_from_civil(year, month, day);
    // A day that does not exist, such as 31 June, comes back as another one.
    ((1..=12).contains(&month) && civil_from_days(days) == (year, month, day)).then_some(days)
}

fn number(digits: &str) -> Option<i64> {
    (!digits.is_empty() && digits.len() <= 7 && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())
        .flatten()
}

/// Splits the zone off; its offset in seconds east of UTC.
fn split_zone(clock: &str) -> Option<(&str, i64)> {
    if let Some(clock) = clock.strip_suffix(['Z', 'z']) {
        return Some((clock.trim_end(), 0));
    }
    let Some(at) = clock.find(['+', '-']) else {
        return Some((clock, 0));
    };
    let (clock, zone) = clock.split_at(at);
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let digits: String = zone[1..].chars().filter(|character| *character != ':').collect();
    // Zones of before standard time have seconds: -04:56:02.
    let (hours, minutes, seconds) = match digits.len() {
        2 => (number(&digits)?, 0, 0),
        4 => (number(&digits[..2])?, number(&digits[2..])?, 0),
        6 => (number(&digits[..2])?, number(&digits[2..4])?, number(&digits[4..])?),
        _ => return None,
    };
    let offset = sign * (hours * 3600 + minutes * 60 + seconds);
    (hours < 16 && minutes < 60 && seconds < 60).then(|| (clock.trim_end(), offset))
}

/// Microseconds of the day.
fn parse_clock(clock: &str) -> Option<i64> {
    if clock.is_empty() {
        return Some(0);
    }
    let mut parts = clock.split(':');
    let (hours, minutes) = (number(parts.next()?)?, number(parts.next()?)?);
    let (seconds, fraction) = match parts.next() {
        Some(text) => text.split_once('.').unwrap_or((text, "")),
        None => ("0", ""),
    };
    let seconds = number(seconds)?;
    let micros =
        if fraction.is_empty() { 0 } else { number(fraction)? * 10_i64.pow(6 - digits_of(fraction)?) };
    let valid = parts.next().is_none() && hours < 24 && minutes < 60 && seconds < 60;
    valid.then_some((hours * 3600 + minutes * 60 + seconds) * SECOND + micros)
}

fn digits_of(fraction: &str) -> Option<u32> {
    u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 6)
}

/// Appends a date as PostgreSQL prints it.
pub fn write_date(days: i32, out: &mut String) {
    if days == DATE_INFINITY || days == i32::MIN {
        out.push_str(if days > 0 { "infinity" } else { "-infinity" });
        return;
    }
    if write_day(i64::from(days), out) {
        out.push_str(" BC");
    }
}

/// Appends a timestamp as PostgreSQL prints it; `zoned` with the offset `+00`.
pub fn write_timestamp(micros: i64, zoned: bool, out: &mut String) {
    if micros == TIMESTAMP_INFINITY || micros == i64::MIN {
        out.push_str(if micros > 0 { "infinity" } else { "-infinity" });
        return;
    }
    let before_christ = write_day(micros.div_euclid(DAY), out);
    let (seconds, fraction) = (micros.rem_euclid(DAY) / SECOND, micros.rem_euclid(SECOND));
    out.push(' ');
    pad(seconds / 3600, 2, out);
    out.push(':');
    pad(seconds / 60 % 60, 2, out);
    out.push(':');
    pad(seconds % 60, 2, out);
    if fraction != 0 {
        out.push('.');
        pad(fraction, 6, out);
        out.truncate(out.trim_end_matches('0').len());
    }
    if zoned {
        out.push_str("+00");
    }
    if before_christ {
        out.push_str(" BC");
    }
}

/// Appends year, month and day; true for a year before Christ.
fn write_day(days: i64, out: &mut String) -> bool {
    let (year, month, day) = civil_from_days(days);
    pad(if year > 0 { year } else { 1 - year }, 4, out);
    out.push('-');
    pad(month, 2, out);
    out.push('-');
    pad(day, 2, out);
    year <= 0
}

fn pad(number: i64, width: usize, out: &mut String) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number);
    out.extend(std::iter::repeat_n('0', width.saturating_sub(digits.len())));
    out.push_str(digits);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_survive_both_ways() {
        for (text, days) in [
            ("2000-01-01", 0),
            ("1970-01-01", -10_957),
            ("2017-06-08", 6_368),
            ("4714-11-24 BC", -2_451_545),
            ("5874897-12-31", 2_145_031_948),
            ("0001-12-31 BC", -730_120),
            ("infinity", i32::MAX),
            ("-infinity", i32::MIN),
        ] {
            assert_eq!(parse_date(text), Some(days), "{text}");
            let mut printed = String::new();
            write_date(days, &mut printed);
            assert_eq!(printed, text);
        }
    }

    #[test]
    fn timestamps_survive_both_ways() {
        for text in [
            "2017-06-08 00:00:00+00",
            "294276-12-31 23:59:59.999999+00",
            "4714-11-24 00:00:00+00 BC",
            "1999-12-31 23:59:59.5+00",
            "infinity",
            "-infinity",
        ] {
            let micros = parse_timestamp(text, true).unwrap_or_else(|| panic!("{text}"));
            let mut printed = String::new();
            write_timestamp(micros, true, &mut printed);
            assert_eq!(printed, text);
        }
        assert_eq!(parse_timestamp("2000-01-01T02:00:00+02:00", true), Some(0));
        assert_eq!(parse_timestamp("2000-01-01T02:00:00+02:00", false), Some(7200 * SECOND));
        assert_eq!(parse_timestamp("1999-12-31 19:03:58-04:56:02", true), Some(0));
        assert_eq!(parse_timestamp("2000-01-01T00:00:00.000001Z", true), Some(1));
        assert_eq!(parse_timestamp("2000-01-02", true), Some(DAY));
    }

    #[test]
    fn impossible_ones_are_refused() {
        for text in
            ["", "2017-02-29", "2017-13-01", "0000-01-01", "17-01-01", "4714-11-23 BC", "2017-1-1-1", "x"]
        {
            assert_eq!(parse_date(text), None, "{text}");
            assert_eq!(parse_timestamp(text, true), None, "{text}");
        }
        for text in ["294277-01-01", "2017-01-01 24:00", "2017-01-01 10", "2017-01-01 10:00:00.1234567"] {
            assert_eq!(parse_timestamp(text, true), None, "{text}");
        }
    }
}
