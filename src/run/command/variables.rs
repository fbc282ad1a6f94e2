//! The environment of a client program: where the server is, what is run, and a few harmless variables of the host.

use std::ffi::OsString;
use std::path::Path;

use crate::engine::postgres::{Reach, WORKER};
use crate::environment::process::MARK;
use crate::model::{PlannedTrial, Scalar, Table};

/// Variables of the host that are passed on. None of them holds secrets; everything else may.
const PASSED_ON: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"];

/// What a program is told about its trial.
pub(in crate::run) struct Telling<'a> {
    pub(in crate::run) experiment: &'a str,
    pub(in crate::run) step: &'a str,
    pub(in crate::run) trial: &'a PlannedTrial,
    pub(in crate::run) factors: &'a [(String, Scalar)],
    pub(in crate::run) tables: &'a [Table],
    pub(in crate::run) scratch: Option<&'a Path>,
}

/// All variables of a program; `host` gives those of this process.
pub(in crate::run) fn variables(
    reach: &Reach,
    password_file: &Path,
    mark: &str,
    telling: &Telling<'_>,
    host: impl Fn(&str) -> Option<OsString>,
) -> Vec<(String, String)> {
    let passed_on =
        PASSED_ON.iter().filter_map(|name| Some(((*name).to_owned(), host(name)?.into_string().ok()?)));
    let mut all: Vec<(String, String)> = passed_on.collect();
    let mut set = |name: &str, value: String| all.push((name.to_owned(), value));
    set("PGHOST", reach.host.clone());
    set("PGPORT", reach.port.to_string());
    set("PGUSER", reach.user.clone());
    set("PGDATABASE", reach.database.clone());
    set("PGPASSFILE", password_file.display().to_string());
    // The runner's own connections use no TLS either; counters wait for sessions of this name.
    set("PGSSLMODE", "disable".to_owned());
    set("PGAPPNAME", WORKER.to_owned());
    if let Some(options) = &reach.options {
        set("PGOPTIONS", options.clone());
    }
    set(MARK, mark.to_owned());
    set("LOADLAB_EXPERIMENT", telling.experiment.to_owned());
    set("LOADLAB_STEP", telling.step.to_owned());
    set("LOADLAB_TRIAL", telling.trial.number.to_string());
    set("LOADLAB_BLOCK", telling.trial.block.to_string());
    if let Some(scratch) = telling.scratch {
        set("LOADLAB_SCRATCH", scratch.display().to_string());
    }
    for (factor, level) in telling.factors {
        set(&format!("LOADLAB_FACTOR_{}", shouted(factor)), level.to_string());
    }
    for table in telling.tables {
        set(&format!("LOADLAB_ROWS_{}", shouted(&table.name)), table.rows.to_string());
    }
    // NUL ends a variable: what holds one cannot be told.
    all.retain(|(name, value)| !name.contains(['\0', '=']) && !value.contains('\0'));
    all
}

/// The line of a password file; empty where the server asks for no password.
pub(in crate::run) fn password_line(reach: &Reach) -> String {
    let Some(password) = &reach.password else { return String::new() };
    let escaped = password.0.replace('\\', "\\\\").replace(':', "\\:");
    format!("*:*:*:*:{escaped}\n")
}

/// `batch size` as `BATCH_SIZE`.
fn shouted(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::postgres::Secret;
    use crate::model::Treatment;

    fn reach() -> Reach {
        Reach {
            host: "/run/x".to_owned(),
            port: 5433,
            user: "loadlab".to_owned(),
            database: "loadlab".to_owned(),
            password: Some(Secret("a:b\\c".to_owned())),
            options: None,
        }
    }

    #[test]
    fn secrets_of_the_host_stay_there() {
        let trial = PlannedTrial {
            number: 3,
            block: 1,
            position: 0,
            treatment_index: 0,
            treatment: Treatment { levels: Vec::new() },
            control: false,
        };
        let factors = [("batch size".to_owned(), Scalar::Int(500))];
        let telling = Telling {
            experiment: "x",
            step: "pgbench",
            trial: &trial,
            factors: &factors,
            tables: &[],
            scratch: None,
        };
        let host = |name: &str| Some(OsString::from(format!("canary of {name}")));
        let all = variables(&reach(), Path::new("/p"), "m", &telling, host);
        let value = |name: &str| all.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        assert_eq!(value("PGHOST"), Some("/run/x"));
        assert_eq!(value("LOADLAB_FACTOR_BATCH_SIZE"), Some("500"));
        assert_eq!(value("LOADLAB_COMMAND"), Some("m"));
        let canaries = all.iter().filter(|(_, value)| value.starts_with("canary")).count();
        assert_eq!(canaries, PASSED_ON.len(), "{all:?}");
        assert!(!all.iter().any(|(_, value)| value.contains("a:b")), "a password in the environment");
    }

    #[test]
    fn a_password_file_escapes_what_separates_its_fields() {
        assert_eq!(password_line(&reach()), "*:*:*:*:a\\:b\\\\c\n");
        assert_eq!(password_line(&Reach { password: None, ..reach() }), "");
    }
}
