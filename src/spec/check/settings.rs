//! Rules for the server's settings.

use super::catalogue::{self, MAJORS};
use super::finding::Finding;
use super::value;
use crate::model::{BoundTrial, EnvironmentSpec, Scalar};

/// Why a setting cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingProblem {
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub expected: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

/// Settings loadlab sets itself, with the reason.
const OWN: [(&str, &str); 14] = [
    ("client_encoding", "the client speaks UTF-8 and says so when it connects"),
    ("listen_addresses", "the environment's `connection` decides how the server is reached"),
    ("port", "the environment's `connection` decides how the server is reached"),
    ("unix_socket_directories", "the environment's `connection` decides how the server is reached"),
    ("unix_socket_group", "the socket's folder is private to loadlab"),
    ("unix_socket_permissions", "the socket's folder is private to loadlab"),
    ("data_directory", "every trial has a fresh data directory"),
    ("config_file", "every trial has a fresh configuration"),
    ("hba_file", "every trial has a fresh configuration"),
    ("ident_file", "every trial has a fresh configuration"),
    ("external_pid_file", "loadlab watches the server process itself"),
    ("log_destination", "the end of the server's log is shown when a trial fails"),
    ("logging_collector", "the end of the server's log is shown when a trial fails"),
    ("synchronous_standby_names", "there is no standby, so every commit would wait for ever"),
];

/// Settings that are fixed when the cluster or the server is made, with the place to say it.
const FIXED: [(&str, &str); 4] = [
    ("wal_segment_size", "use the environment's `initdb: {wal_segment_size: ...}`"),
    ("data_checksums", "use the environment's `initdb: {checksums: ...}`"),
    ("server_encoding", "use the environment's `initdb: {encoding: ...}`"),
    ("block_size", "it is fixed when PostgreSQL is compiled: name other binaries or another image"),
];

/// The value of a setting as the server of that major shows it in `pg_settings.setting`: `on` and `off`,
/// plain numbers in the setting's own unit, the first name of an enum's value. Text is left as it is, and so
/// are settings of extensions (with a dot in their name). Applying it twice changes nothing, so requested and
/// effective values can both be normalised and compared.
///
/// Block sizes other than 8 kB are not known here. A value of -1 often means "the server decides" and is
/// then shown as what it decided (`wal_buffers`).
///
/// # Errors
/// An unknown, read-only or loadlab's own setting, or a value that the server would refuse.
pub fn normalise_setting(name: &str, value: &str, major: u32) -> Result<String, SettingProblem> {
    if name.contains('.') {
        return Ok(value.to_owned());
    }
    let setting = catalogue::find(name, major).ok_or_else(|| unknown(name, major))?;
    let known = |list: &[(&str, &'static str)]| {
        list.iter().find(|(other, _)| setting.name.eq_ignore_ascii_case(other)).map(|(_, reason)| *reason)
    };
    if let Some(reason) = known(&OWN) {
        let message = format!("`{}` is set by loadlab", setting.name);
        return Err(SettingProblem { message, expected: None, hint: Some(reason.to_owned()) });
    }
    if setting.context == "internal" {
        let message = format!("`{}` is read only", setting.name);
        return Err(SettingProblem { message, expected: None, hint: known(&FIXED).map(str::to_owned) });
    }
    value::normalise(setting, value).map_err(|problem| SettingProblem {
        message: problem.message,
        expected: Some(problem.expected),
        hint: problem.hint,
    })
}

fn unknown(name: &str, major: u32) -> SettingProblem {
    let (message, hint) = match catalogue::known_in(name) {
        Some((first, _)) if first > major => (
            format!("PostgreSQL {major} has no setting `{name}`, it came with {first}"),
            Some(format!("use an environment of version {first} or later")),
        ),
        Some((_, last)) => (
            format!("PostgreSQL {major} has no setting `{name}`, it went after {last}"),
            Some(format!("use an environment of version {last} or earlier")),
        ),
        None => (
            format!("PostgreSQL {major} has no setting `{name}`"),
            catalogue::nearest(name, major).map(|nearest| format!("did you mean `{nearest}`?")),
        ),
    };
    SettingProblem { message, expected: None, hint }
}

/// All findings about the settings of a trial.
pub(super) fn check(trial: &BoundTrial) -> Vec<Finding> {
    let environment = &trial.environment;
    let mut findings: Vec<Finding> =
        environment.settings.iter().filter_map(|(name, value)| single(environment, name, value)).collect();
    if findings.is_empty() {
        findings.extend(together(environment));
    }
    findings
}

/// The first major of the environment's range for which a setting is wrong, said once.
fn single(environment: &EnvironmentSpec, name: &str, value: &Scalar) -> Option<Finding> {
    let pointer = format!("server.settings.{name}");
    if *value == Scalar::Null {
        let finding = Finding::new(pointer, format!("`{name}` has no value"));
        return Some(finding.hint("leave the setting out to get the server's default"));
    }
    if let Some(problem) = malformed(environment, name, &value.to_string()) {
        return Some(Finding::new(pointer, problem));
    }
    let problem =
        majors(environment).find_map(|major| normalise_setting(name, &value.to_string(), major).err())?;
    let SettingProblem { message, expected, hint } = problem;
    Some(Finding { pointer, message, expected, hint })
}

/// What no server takes, whatever the setting: broken names and values, one setting twice.
fn malformed(environment: &EnvironmentSpec, name: &str, value: &str) -> Option<String> {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    let part = |part: &str| {
        part.starts_with(letter) && part.chars().all(|c| letter(c) || c.is_ascii_digit() || c == '$')
    };
    if !name.split('.').all(part) {
        return Some(format!("{name:?} is no name of a setting"));
    }
    if value.contains(['\0', '\n', '\r']) {
        return Some(format!("the value of `{name}` holds a line end or a NUL character"));
    }
    let twin = environment.settings.keys().find(|other| *other != name && other.eq_ignore_ascii_case(name));
    twin.map(|other| format!("`{name}` and `{other}` are the same setting"))
}

fn majors(environment: &EnvironmentSpec) -> impl Iterator<Item = u32> {
    let versions = environment.versions;
    MAJORS.filter(move |major| versions.contains(*major))
}

/// What a setting will be: as asked for, or the built-in default of the newest major in the range.
fn in_force(environment: &EnvironmentSpec, name: &str) -> Option<String> {
    let major = majors(environment).last().unwrap_or(*MAJORS.end());
    let asked = environment.settings.iter().find(|(asked, _)| asked.eq_ignore_ascii_case(name));
    match asked {
        Some((_, value)) => normalise_setting(name, &value.to_string(), major).ok(),
        None => catalogue::find(name, major).map(|setting| setting.default.to_owned()),
    }
}

/// A whole-number setting in its own unit.
fn number_in_force(environment: &EnvironmentSpec, name: &str) -> Option<i64> {
    in_force(environment, name)?.parse().ok()
}

/// Combinations with which the server refuses to start.
fn together(environment: &EnvironmentSpec) -> Vec<Finding> {
    let mut findings = Vec::new();
    let minimal = in_force(environment, "wal_level").as_deref() == Some("minimal");
    if minimal && number_in_force(environment, "max_wal_senders") != Some(0) {
        let message =
            "the server does not start with `wal_level: minimal` while `max_wal_senders` is above 0";
        let finding = Finding::new("server.settings.wal_level", message);
        findings
            .push(finding.expected("max_wal_senders: 0").hint("add `max_wal_senders: 0` to the settings"));
    }
    if minimal && in_force(environment, "archive_mode").is_some_and(|mode| mode != "off") {
        let message = "the server does not start with `wal_level: minimal` while `archive_mode` is on";
        findings.push(Finding::new("server.settings.archive_mode", message).expected("archive_mode: off"));
    }
    findings.extend(["min_wal_size", "max_wal_size"].iter().filter_map(|name| wal_size(environment, name)));
    findings.extend(reserved_connections(environment));
    findings
}

fn wal_size(environment: &EnvironmentSpec, name: &str) -> Option<Finding> {
    environment.settings.get(name)?;
    let segment = i64::from(environment.init.wal_segment_mib.unwrap_or(16));
    let size = number_in_force(environment, name)?;
    (size < 2 * segment).then(|| {
        let message = format!("`{name}` must be at least twice the WAL segment size of {segment} MB");
        Finding::new(format!("server.settings.{name}"), message)
            .expected(format!("{}MB or more", 2 * segment))
    })
}

/// Whether that many clients can connect beside loadlab's own two sessions. Reserved connections are not for
/// them: they are no superusers.
pub(super) fn connections(environment: &EnvironmentSpec, clients: u32, pointer: String) -> Option<Finding> {
    let max = number_in_force(environment, "max_connections")?;
    let needed = i64::from(clients) + reserved(environment) + 2;
    (needed > max).then(|| {
        let message = format!("{clients} clients do not fit in `max_connections: {max}`");
        let hint = format!("set `max_connections: {needed}` or more under `server.settings`");
        Finding::new(pointer, message)
            .expected(format!("{} clients or fewer", max - reserved(environment) - 2))
            .hint(hint)
    })
}

/// Connections only a superuser gets.
fn reserved(environment: &EnvironmentSpec) -> i64 {
    let names = ["superuser_reserved_connections", "reserved_connections"];
    names.iter().filter_map(|name| number_in_force(environment, name)).sum()
}

fn reserved_connections(environment: &EnvironmentSpec) -> Option<Finding> {
    let max = number_in_force(environment, "max_connections")?;
    let reserved = reserved(environment);
    (reserved >= max).then(|| {
        let message = format!("the server does not start when {reserved} of {max} connections are reserved");
        Finding::new("server.settings.max_connections", message).expected(format!("more than {reserved}"))
    })
}
