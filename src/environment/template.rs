//! Data directories: made by initdb, once per (binaries, initdb options, first SQL), and kept as a
//! template that trials start from.
//!
//! A template also fixes the system identifier, object ids and password verifiers, so that trials are
//! more alike than with initdb each time. The trial's database is made here: CREATE DATABASE on an
//! overlay has to copy all of its files.

use std::fs::{self, File};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{OpenOptionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::account::{Account, OnParentDeath, run, words};
use super::discover::Binaries;
use super::files::{ensure_folder, failed, hex, new_folder, random_hex};
use super::ledger::{Ledger, Thing};
use super::{EnvironmentError, process};
use crate::engine::postgres::{ADMIN, Secret, init_statements};
use crate::model::{Checksums, InitOptions, block_size_words};

/// How long making one cluster may take, on a slow and busy disk.
const DEADLINE: Duration = Duration::from_mins(3);
/// Changes when the way a template is made changes.
const FORMAT: u32 = 1;

/// A data directory that was shut down cleanly and is never written again.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    /// The data directory.
    pub(crate) data: PathBuf,
    /// Password of both roles.
    pub(crate) password: Secret,
}

/// What it takes to make a cluster.
#[derive(Clone, Copy)]
pub(crate) struct Maker<'a> {
    pub(crate) cache: &'a Path,
    pub(crate) binaries: &'a Binaries,
    pub(crate) account: &'a Account,
    pub(crate) ledger: &'a Arc<Ledger>,
}

impl Maker<'_> {
    /// The template for some initdb options; made when it is missing.
    ///
    /// # Errors
    /// When it cannot be made, with the words of initdb or the server.
    pub(crate) async fn template(&self, init: &InitOptions) -> Result<Template, EnvironmentError> {
        let templates = self.cache.join("templates");
        ensure_folder(&templates)?;
        let key = key(&self.binaries.checksum(self.cache)?, init);
        let folder = templates.join(&key);
        if !folder.exists() {
            let _lock = lock(templates.join(format!("{key}.lock"))).await?;
            // Another run may have made it while this one waited.
            if !folder.exists() {
                self.build(&templates, &folder, init).await?;
            }
        }
        self.open(&folder)
    }

    fn open(&self, folder: &Path) -> Result<Template, EnvironmentError> {
        let reading = |file: &Path| {
            fs::read_to_string(file)
                .map_err(failed(format!("{}: reading a template (remove its folder)", file.display())))
        };
        let data = folder.join("data");
        let major = reading(&data.join("PG_VERSION"))?;
        if major.trim() != self.binaries.major.to_string() {
            return Err(EnvironmentError::Unavailable {
                reason: format!(
                    "{}: a template of PostgreSQL {}, not {}",
                    folder.display(),
                    major.trim(),
                    self.binaries.major
                ),
                remedy: "remove that folder; it is made again".to_owned(),
            });
        }
        let password = Secret(reading(&folder.join("password"))?.trim().to_owned());
        Ok(Template { data, password })
    }

    /// Makes a template under a temporary name and moves it to its place.
    async fn build(
        &self,
        templates: &Path,
        folder: &Path,
        init: &InitOptions,
    ) -> Result<(), EnvironmentError> {
        let making = templates.join(format!(".new-{}", random_hex(6)?));
        let thing = Thing::Directory(making.clone());
        self.ledger.record(&thing)?;
        new_folder(&making, 0o700, self.account.owner())?;
        let made = self.cluster(&making, init).await;
        let placed = made.and_then(|_| {
            fs::rename(&making, folder)
                .map_err(failed(format!("{}: moving the finished template", folder.display())))
        });
        if placed.is_err() {
            drop(super::files::remove_tree(&making));
        }
        self.ledger.forget(&thing)?;
        placed
    }

    /// Makes a cluster in `<folder>/data`, with `<folder>/password` beside it.
    ///
    /// # Errors
    /// With the words of initdb or the server.
    pub(crate) async fn cluster(
        &self,
        folder: &Path,
        init: &InitOptions,
    ) -> Result<Template, EnvironmentError> {
        let password = Secret(random_hex(16)?);
        let data = folder.join("data");
        let password_file = folder.join("password");
        write_private(&password_file, &password.0, self.account.owner())?;
        let mut initdb = self.server_command("initdb", folder);
        initdb.args(initdb_arguments(init, self.binaries.major));
        initdb.arg("--pwfile").arg(&password_file).arg("--pgdata").arg(&data);
        finish(initdb, "initdb").await?;
        self.first_sql(folder, &data, &password).await?;
        self.check(folder, &data).await?;
        Ok(Template { data, password })
    }

    /// Runs the first SQL in single-user mode: no socket, no port, a clean shutdown at the end of input.
    async fn first_sql(&self, folder: &Path, data: &Path, password: &Secret) -> Result<(), EnvironmentError> {
        let mut server = self.server_command("postgres", folder);
        server.arg("--single").arg("-j").args(["-c", "exit_on_error=on", "-D"]).arg(data).arg("postgres");
        // With -j a statement ends with a semicolon and an empty line.
        let sql: String = init_statements(&password.0).iter().flat_map(|s| [s.as_str(), ";\n\n"]).collect();
        server.stdin(Stdio::from(anonymous_file(&sql)?));
        finish(server, "the server in single-user mode").await
    }

    /// A clean shutdown is a condition for starting from a copy or an overlay.
    async fn check(&self, folder: &Path, data: &Path) -> Result<(), EnvironmentError> {
        if !self.binaries.tools.iter().any(|tool| tool == "pg_controldata") {
            return Ok(());
        }
        let mut command = self.server_command("pg_controldata", folder);
        command.arg(data);
        let output = run(command, DEADLINE).await.map_err(failed("pg_controldata"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = |what: &str| {
            text.lines().find_map(|line| line.strip_prefix(what)?.strip_prefix(':')).map(str::trim)
        };
        let blocks = said("Database block size").and_then(|bytes| bytes.parse().ok());
        if let Some(bytes) = blocks.filter(|bytes| *bytes != self.binaries.block_size) {
            let (is, wanted) = (block_size_words(bytes), block_size_words(self.binaries.block_size));
            return Err(EnvironmentError::NotReady {
                reason: format!(
                    "the new cluster has blocks of {is}; its server was taken for one of {wanted}"
                ),
            });
        }
        let state = said("Database cluster state");
        if state == Some("shut down") {
            return Ok(());
        }
        let reason = format!(
            "the new cluster is not shut down cleanly; pg_controldata says {}",
            state.unwrap_or(&text)
        );
        Err(EnvironmentError::NotReady { reason })
    }

    fn server_command(&self, program: &str, folder: &Path) -> Command {
        self.binaries.command(self.account, &[], program, folder, OnParentDeath::Nothing)
    }
}

async fn finish(command: Command, what: &str) -> Result<(), EnvironmentError> {
    let output = run(command, DEADLINE).await.map_err(failed(format!("running {what}")))?;
    if output.status.success() {
        return Ok(());
    }
    let words = words(&output);
    let reason = format!("{what} failed ({}):\n{words}", output.status);
    Err(locale_missing(&words).unwrap_or(EnvironmentError::NotReady { reason }))
}

/// What initdb's words say when the server cannot have the locale that was asked for.
pub(super) fn locale_missing(words: &str) -> Option<EnvironmentError> {
    let unavailable = |reason: String, remedy: &str| {
        Some(EnvironmentError::Unavailable { reason, remedy: remedy.to_owned() })
    };
    if words.contains("ICU is not supported") {
        return unavailable(
            "this server was built without ICU, which `locale_provider: icu` needs".to_owned(),
            "use the system's package or another builder (`loadlab env list` shows what there is), or a container",
        );
    }
    let line = words.lines().find(|line| line.contains("invalid locale name"))?;
    unavailable(
        format!("the locale {} is not installed where the server runs", line.split('"').nth(1)?),
        "`locale -a` shows what is; `localedef` or the system's package of locales adds others",
    )
}

fn initdb_arguments(init: &InitOptions, major: u32) -> Vec<String> {
    let mut arguments = vec![
        format!("--username={ADMIN}"),
        "--auth-local=trust".to_owned(),
        "--auth-host=scram-sha-256".to_owned(),
        format!("--locale={}", init.locale),
        format!("--encoding={}", init.encoding),
    ];
    match init.checksums {
        Checksums::On => arguments.push("--data-checksums".to_owned()),
        // Older majors neither know the option nor need it.
        Checksums::Off if major >= 18 => arguments.push("--no-data-checksums".to_owned()),
        Checksums::Off => {}
    }
    arguments.extend(init.provider_options().iter().map(|(name, value)| format!("{name}={value}")));
    arguments.extend(init.wal_segment_mib.map(|size| format!("--wal-segsize={size}")));
    arguments
}

/// Name of a template's folder: everything that makes it what it is, but for the random password.
fn key(binary: &str, init: &InitOptions) -> String {
    let facts = format!("{FORMAT}\n{binary}\n{init:?}\n{ADMIN}\n{}", init_statements("").join("\n"));
    hex(&Sha256::digest(facts.as_bytes())[..10])
}

fn write_private(path: &Path, text: &str, owner: Option<(u32, u32)>) -> Result<(), EnvironmentError> {
    let what = || failed(format!("{}: writing", path.display()));
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(path).map_err(what())?;
    file.write_all(text.as_bytes()).map_err(what())?;
    if let Some((uid, gid)) = owner {
        chown(path, Some(uid), Some(gid)).map_err(what())?;
    }
    file.sync_all().map_err(what())
}

/// A file without a name that holds some text; passwords in it are on no command line.
fn anonymous_file(text: &str) -> Result<File, EnvironmentError> {
    let what = || failed("writing a temporary file");
    let mut file = tempfile::tempfile().map_err(what())?;
    file.write_all(text.as_bytes()).map_err(what())?;
    file.seek(SeekFrom::Start(0)).map_err(what())?;
    Ok(file)
}

/// Waits for an exclusive lock. The file stays: removing it would let two runs lock two files.
async fn lock(path: PathBuf) -> Result<File, EnvironmentError> {
    let what = format!("{}: waiting for another run to finish this template", path.display());
    let file = File::options().create(true).append(true).open(&path).map_err(failed(what.clone()))?;
    let locked = tokio::task::spawn_blocking(move || {
        process::wait_until(DEADLINE, || file.try_lock().is_ok()).then_some(file)
    });
    let locked = locked.await.ok().flatten();
    locked.ok_or_else(|| failed(what)(std::io::ErrorKind::TimedOut.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn init(checksums: Checksums) -> InitOptions {
        InitOptions { checksums, wal_segment_mib: Some(1), ..InitOptions::default() }
    }

    #[test]
    fn initdb_says_checksums_explicitly_where_the_default_moved() {
        let has = |checksums, major, option: &str| {
            initdb_arguments(&init(checksums), major).iter().any(|argument| argument == option)
        };
        assert!(has(Checksums::On, 15, "--data-checksums"));
        assert!(has(Checksums::Off, 18, "--no-data-checksums"));
        assert!(!has(Checksums::Off, 17, "--no-data-checksums"));
        assert!(has(Checksums::Off, 17, "--wal-segsize=1"));
    }

    #[test]
    fn a_locale_that_is_not_there_is_no_broken_server() {
        let words = "creating directory x ... ok\ninitdb: error: invalid locale name \"de_AT.UTF-8\"\n";
        let missing = locale_missing(words).expect("it is told");
        assert!(missing.to_string().contains("the locale de_AT.UTF-8 is not installed"), "{missing}");
        assert!(locale_missing("initdb: error: could not create directory").is_none());
    }

    #[test]
    fn the_key_depends_on_binary_and_options() {
        let one = key("a", &init(Checksums::On));
        assert_eq!(one, key("a", &init(Checksums::On)));
        assert_ne!(one, key("b", &init(Checksums::On)));
        assert_ne!(one, key("a", &init(Checksums::Off)));
    }
}
