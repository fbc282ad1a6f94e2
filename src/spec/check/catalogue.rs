//! The server settings of every supported major, as real servers report them.
//!
//! `settings.tsv` is `pg_settings` of PostgreSQL 14 to 18, made by `environments/settings-catalogue.sh`
//! from one server of each major. A setting whose attributes changed has one line per range of majors.

use std::sync::LazyLock;

/// Majors the catalogue knows.
pub(super) const MAJORS: std::ops::RangeInclusive<u32> = 14..=18;

/// One setting over a range of majors.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    pub(super) name: &'static str,
    pub(super) first: u32,
    pub(super) last: u32,
    pub(super) kind: Kind,
    /// `internal` settings are read only.
    pub(super) context: &'static str,
    /// Unit of plain numbers: `kB`, `8kB`, `ms` ...; empty for none.
    pub(super) unit: &'static str,
    pub(super) min: f64,
    pub(super) max: f64,
    /// Values of an enum, in the server's order.
    pub(super) values: Vec<&'static str>,
    /// Built-in default; empty when it depends on the build.
    pub(super) default: &'static str,
}

/// Type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Bool,
    Integer,
    Real,
    Enum,
    Text,
}

static CATALOGUE: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let lines = include_str!("settings.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| read(line).expect("settings.tsv is generated and covered by a test")).collect()
});

fn read(line: &'static str) -> Option<Setting> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [name, first, last, kind, context, unit, min, max, values, default] = fields.try_into().ok()?;
    let number = |text: &str, otherwise: f64| text.parse().unwrap_or(otherwise);
    Some(Setting {
        name,
        first: first.parse().ok()?,
        last: last.parse().ok()?,
        kind: match kind {
            "bool" => Kind::Bool,
            "integer" => Kind::Integer,
            "real" => Kind::Real,
            "enum" => Kind::Enum,
            "string" => Kind::Text,
            _ => return None,
        },
        context,
        unit,
        min: number(min, f64::NEG_INFINITY),
        max: number(max, f64::INFINITY),
        values: values.split(',').filter(|value| !value.is_empty()).collect(),
        default,
    })
}

/// The setting of that name (in any case, as for the server) in a major.
pub(super) fn find(name: &str, major: u32) -> Option<&'static Setting> {
    let major = major.clamp(*MAJORS.start(), *MAJORS.end());
    named(name).find(|setting| (setting.first..=setting.last).contains(&major))
}

/// The first and last major that know the setting.
pub(super) fn known_in(name: &str) -> Option<(u32, u32)> {
    let first = named(name).map(|setting| setting.first).min()?;
    let last = named(name).map(|setting| setting.last).max()?;
    Some((first, last))
}

/// The setting of a major whose name is nearest to a misspelt one.
pub(super) fn nearest(name: &str, major: u32) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    CATALOGUE
        .iter()
        .filter(|setting| (setting.first..=setting.last).contains(&major) && setting.context != "internal")
        .map(|setting| (strsim::jaro_winkler(&name, &setting.name.to_ascii_lowercase()), setting.name))
        .filter(|(similarity, _)| *similarity > 0.85)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, name)| name)
}

fn named(name: &str) -> impl Iterator<Item = &'static Setting> {
    CATALOGUE.iter().filter(move |setting| setting.name.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_catalogue_is_readable() {
        assert!(CATALOGUE.len() > 380);
        for major in MAJORS {
            assert!(find("max_wal_size", major).is_some(), "{major}");
        }
        for setting in CATALOGUE.iter() {
            assert!(setting.first <= setting.last && MAJORS.contains(&setting.first), "{}", setting.name);
            assert_eq!(setting.kind == Kind::Enum, !setting.values.is_empty(), "{}", setting.name);
            let overlapping = named(setting.name)
                .filter(|other| other.first <= setting.last && setting.first <= other.last);
            assert_eq!(overlapping.count(), 1, "{} has overlapping lines", setting.name);
        }
    }

    #[test]
    fn settings_belong_to_majors() {
        assert_eq!(find("io_method", 17), None);
        assert_eq!(find("io_method", 18).map(|setting| setting.default), Some("worker"));
        assert_eq!(find("wal_compression", 14).map(|setting| setting.kind), Some(Kind::Bool));
        assert_eq!(find("wal_compression", 15).map(|setting| setting.kind), Some(Kind::Enum));
        assert_eq!(known_in("force_parallel_mode"), Some((14, 15)));
        assert_eq!(find("datestyle", 15).map(|setting| setting.name), Some("DateStyle"));
    }

    #[test]
    fn misspelt_names_find_their_neighbour() {
        assert_eq!(nearest("max_wal_sizes", 15), Some("max_wal_size"));
        assert_eq!(nearest("shared_bufers", 15), Some("shared_buffers"));
        assert_eq!(nearest("chekpoint_timeout", 15), Some("checkpoint_timeout"));
        assert_eq!(nearest("qqqq", 15), None);
    }
}
