//! What a claim needs before it may be judged, and whether the run has it.

use super::Facts;
use super::judgement::Precondition;
use crate::model::{Backend, Claim, Scalar, TrialRecord};

/// Looks up every need of a claim in the trials that would be compared.
pub(super) fn preconditions(claim: &Claim, used: &[&TrialRecord], facts: &Facts) -> Vec<Precondition> {
    let steps = claim.metric.as_ref().map(|metric| metric.steps.as_slice()).unwrap_or_default();
    claim.needs.iter().map(|(name, value)| precondition(name, value, steps, used, facts)).collect()
}

fn precondition(
    name: &str,
    value: &Scalar,
    steps: &[String],
    used: &[&TrialRecord],
    facts: &Facts,
) -> Precondition {
    let text = value.to_string();
    let servers = || used.iter().filter_map(|record| record.server.as_ref());
    let (found, met) = match name {
        "rows" => number(&text, used.iter().map(|record| rows(record)), Whole),
        "seconds" => number(&text, used.iter().map(|record| seconds(record, steps)), Whole),
        "version" => {
            let versions = servers().map(|server| u64::try_from(server.version_num).ok());
            number(&text, versions, Version)
        }
        "cores" => number(&text, [facts.cores], Whole),
        "memory" => number(&text, [facts.memory_bytes], Bytes),
        "backend" => words(&text, servers().map(|server| backend(server.backend).to_owned())),
        "storage" => words(&text, servers().map(|server| server.storage.clone())),
        "connection" => words(&text, servers().map(|server| server.connection.clone())),
        "durable" => words(&text, servers().map(|server| server.durable.to_string())),
        _ => (format!("`{name}` is nothing that loadlab can look up"), false),
    };
    Precondition { need: format!("{name} {text}"), found, met }
}

/// Rows of a trial: the most that any of its steps moved or found in the table.
fn rows(record: &TrialRecord) -> Option<u64> {
    let rows = record.measurements.iter().flat_map(|step| [step.rows, step.rows_in_table]);
    rows.flatten().max()
}

/// Whole seconds of the longest of the steps that the claim is about.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "spans are not negative")]
fn seconds(record: &TrialRecord, steps: &[String]) -> Option<u64> {
    let spans = record.measurements.iter().filter(|step| steps.contains(&step.step));
    spans.map(|step| step.spans.seconds.round() as u64).max()
}

fn backend(backend: Backend) -> &'static str {
    match backend {
        Backend::Container => "container",
        Backend::Local => "local",
        Backend::External => "external",
    }
}

/// All must be the word.
fn words(wanted: &str, found: impl Iterator<Item = String>) -> (String, bool) {
    let mut found: Vec<String> = found.collect();
    found.sort_unstable();
    found.dedup();
    let met = !found.is_empty() && found.iter().all(|word| word == wanted);
    (if found.is_empty() { "not known".to_owned() } else { found.join(", ") }, met)
}

/// Units of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Whole,
    Bytes,
    Version,
}
use Unit::{Bytes, Version, Whole};

/// All must hold the bound; what is not known does not.
fn number(bound: &str, found: impl IntoIterator<Item = Option<u64>>, unit: Unit) -> (String, bool) {
    let found: Option<Vec<u64>> = found.into_iter().collect();
    let Some((low, high)) = found.and_then(|all| Some((*all.iter().min()?, *all.iter().max()?))) else {
        return ("not known".to_owned(), false);
    };
    let shown = |value: u64| match unit {
        Version => format!("{}.{}", value / 10_000, value % 10_000),
        Bytes => format!("{:.1} GB", f64::from(u32::try_from(value / 1_000_000).unwrap_or(u32::MAX)) / 1e3),
        Whole => value.to_string(),
    };
    let text = if low == high { shown(low) } else { format!("{} to {}", shown(low), shown(high)) };
    let met = parse(bound, unit).map(|(holds, limit)| {
        // `version: "15"` and `<= 15` mean every 15.x.
        let compare = |value: u64| if limit.1 { value / 10_000 * 10_000 } else { value }.cmp(&limit.0);
        holds(compare(low)) && holds(compare(high))
    });
    match met {
        Some(met) => (text, met),
        None => (format!("{text}, and `{bound}` is no bound"), false),
    }
}

type Holds = fn(std::cmp::Ordering) -> bool;

/// A bound such as `>= 100_000`, `8GB` (at least), `15`: how values must stand to it, the limit, and whether it is that of a major version.
fn parse(text: &str, unit: Unit) -> Option<(Holds, (u64, bool))> {
    let signs: [(&str, Holds); 6] = [
        (">=", std::cmp::Ordering::is_ge),
        ("<=", std::cmp::Ordering::is_le),
        ("==", std::cmp::Ordering::is_eq),
        (">", std::cmp::Ordering::is_gt),
        ("<", std::cmp::Ordering::is_lt),
        ("=", std::cmp::Ordering::is_eq),
    ];
    let text = text.trim();
    let signed = signs.iter().find_map(|(sign, holds)| Some((text.strip_prefix(sign)?, *holds)));
    // A number alone is the least, of a version the only one.
    let alone: Holds = if unit == Version { std::cmp::Ordering::is_eq } else { std::cmp::Ordering::is_ge };
    let (rest, holds) = signed.unwrap_or((text, alone));
    let rest = rest.trim().replace('_', "");
    if unit == Version {
        let (major, minor) = rest.split_once('.').map_or((rest.as_str(), None), |(a, b)| (a, Some(b)));
        let minor = minor.map(str::parse::<u64>).transpose().ok()?;
        return Some((holds, (major.parse::<u64>().ok()? * 10_000 + minor.unwrap_or(0), minor.is_none())));
    }
    let digits = rest.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match (&rest[digits.len()..], unit) {
        ("", _) => 1,
        ("kB", Bytes) => 1 << 10,
        ("MB", Bytes) => 1 << 20,
        ("GB", Bytes) => 1 << 30,
        ("TB", Bytes) => 1 << 40,
        _ => return None,
    };
    Some((holds, (digits.trim().parse::<u64>().ok()?.checked_mul(scale)?, false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(bound: &str, found: &[u64], unit: Unit) -> bool {
        number(bound, found.iter().copied().map(Some), unit).1
    }

    #[test]
    fn bounds_on_numbers() {
        assert!(met(">= 100_000", &[100_000, 200_000], Whole));
        assert!(!met(">= 100_000", &[99_999, 200_000], Whole));
        assert!(met("4", &[4, 8], Whole) && !met("4", &[2], Whole));
        assert!(met("< 4", &[3], Whole) && !met("< 4", &[4], Whole));
        assert!(met(">= 8GB", &[9 << 30], Bytes) && !met(">= 8GB", &[7 << 30], Bytes));
        assert!(!met("many", &[1], Whole));
        assert!(!number(">= 1", [None], Whole).1);
        assert!(!number(">= 1", [], Whole).1);
    }

    #[test]
    fn bounds_on_versions() {
        assert!(met("15", &[150_018], Version) && !met("15", &[160_001], Version));
        assert!(met("<= 15", &[150_018], Version) && !met("<= 15", &[160_000], Version));
        assert!(met("> 15", &[160_000], Version) && !met("> 15", &[150_018], Version));
        assert!(met(">= 17.2", &[170_002], Version) && !met(">= 17.2", &[170_001], Version));
        assert_eq!(number(">= 15", [Some(150_018), Some(170_004)], Version).0, "15.18 to 17.4");
    }

    #[test]
    fn words_are_the_same_everywhere() {
        let all = |words_: &[&str]| words("local", words_.iter().map(|word| (*word).to_owned())).1;
        assert!(all(&["local", "local"]) && !all(&["local", "container"]) && !all(&[]));
    }
}
