//! Makes, once per image and initdb options, an image with the cluster inside.
//!
//! The user's image does it by its own entry point, so its scripts in `/docker-entrypoint-initdb.d` run
//! as always. Only its last server is used: the entry point first starts a temporary one.

use std::fs;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bollard::models::ContainerConfig;
use sha2::{Digest, Sha256};

use super::engine::ContainerEngine;
use super::folders::{Footprint, PORT, make_open_folder};
use super::image::ResolvedImage;
use super::labels::{self, BAKED_LABEL};
use super::request::{self, BAKED_DATA, BAKING_ADDRESS};
use crate::engine::postgres::{Endpoint, Secret, Session, chain, init_statements};
use crate::environment::EnvironmentError;
use crate::environment::engine::{OWNER_LABEL, RUN_LABEL};
use crate::environment::files::{ensure_folder, failed, hex, random_hex};
use crate::environment::ledger::Ledger;
use crate::environment::template::locale_missing;
use crate::model::{Checksums, InitOptions};

/// Repository of baked images; the tag is the key and a part of the password's digest, so that users (and caches)
/// of one engine do not take each other's tags away.
const REPOSITORY: &str = "loadlab/baked";
/// Part of the key: raise it when baking changes.
const FORMAT: &str = "1";
/// Label: digest of the password inside, so that image and password file are known to belong together.
const PASSWORD_LABEL: &str = "io.loadlab.password-digest";
/// Label: major version of the server inside.
const MAJOR_LABEL: &str = "io.loadlab.major";
/// initdb and the image's own scripts.
const BAKE_DEADLINE: Duration = Duration::from_mins(10);
/// A clean shutdown of a small cluster.
const STOP_DEADLINE: Duration = Duration::from_mins(1);
/// Another run bakes the same image.
const LOCK_DEADLINE: Duration = Duration::from_mins(11);

/// An image with a cluster.
#[derive(Debug, Clone)]
pub(super) struct Baked {
    /// Its id, `sha256:...`.
    pub(super) id: String,
    /// Password of both roles.
    pub(super) password: Secret,
    /// Major version of the server.
    pub(super) major: u32,
}

/// Everything that baking needs.
pub(super) struct Bakery<'a> {
    /// The engine.
    pub(super) engine: &'a ContainerEngine,
    /// The user's image.
    pub(super) image: &'a ResolvedImage,
    /// Options of initdb.
    pub(super) init: &'a InitOptions,
    /// Cache folder.
    pub(super) cache: &'a Path,
    /// Where the baking container is written down.
    pub(super) ledger: &'a Arc<Ledger>,
}

impl Bakery<'_> {
    /// Names image and password file: what goes into the cluster.
    pub(super) fn key(&self) -> String {
        let mut hash = Sha256::new();
        let statements = init_statements("password").join(";");
        for part in [FORMAT, &self.image.id, &initdb_arguments(self.init, self.image.major), &statements] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        hex(&hash.finalize()[..8])
    }

    /// The baked image, made unless it and its password are there.
    pub(super) async fn bake(&self) -> Result<Baked, EnvironmentError> {
        let key = self.key();
        let folder = self.cache.join("baked");
        ensure_folder(&folder)?;
        // Two runs must not bake the same; the kernel gives the lock back when its holder dies.
        let _lock = lock(&folder.join(format!("{key}.lock"))).await?;
        let password_file = folder.join(&key);
        if let Some(baked) = self.existing(&key, &password_file).await? {
            return Ok(baked);
        }
        let password = random_hex(16)?;
        let mut footprint = Footprint::new(self.engine, self.ledger, self.image.digest());
        // Before the image is there: an image whose password nobody knows could never be used, nor told to be ours.
        write_private(&password_file, &password)?;
        let made = self.make(&key, &password, &mut footprint).await;
        let removed = footprint.remove().await;
        made.and(removed)?;
        self.existing(&key, &password_file).await?.ok_or_else(|| EnvironmentError::ContainerEngine {
            what: format!("image {REPOSITORY}:{key}"),
            reason: "is not there after it was made".to_owned(),
        })
    }

    async fn existing(&self, key: &str, password_file: &Path) -> Result<Option<Baked>, EnvironmentError> {
        let Ok(password) = fs::read_to_string(password_file) else { return Ok(None) };
        let tag = tag_of(key, &password);
        let Some(image) = self.engine.image(&format!("{REPOSITORY}:{tag}")).await? else { return Ok(None) };
        let labels = image.config.and_then(|config| config.labels).unwrap_or_default();
        let belongs = labels.get(PASSWORD_LABEL).is_some_and(|digest| *digest == digest_of(&password));
        let major = labels.get(MAJOR_LABEL).and_then(|major| major.parse().ok());
        Ok(match (image.id, major) {
            (Some(id), Some(major)) if belongs => Some(Baked { id, password: Secret(password), major }),
            _ => None,
        })
    }

    async fn make(
        &self,
        key: &str,
        password: &str,
        footprint: &mut Footprint,
    ) -> Result<(), EnvironmentError> {
        let folder = footprint.make_socket_folder(self.cache, "bake")?;
        make_open_folder(&folder.join("socket"))?;
        let password_path = folder.join("password");
        fs::write(&password_path, password)
            // The folder is private; the container's root may have another number than ours.
            .and_then(|()| fs::set_permissions(&password_path, fs::Permissions::from_mode(0o644)))
            .map_err(failed(format!("{}: writing", password_path.display())))?;

        let name = labels::container_name(self.ledger.run_id(), &format!("bake-{key}"));
        footprint.will_make_container(&name)?;
        let arguments = initdb_arguments(self.init, self.image.major);
        let labels = labels::of_run(self.ledger);
        let request = request::baking(self.image.digest(), &name, labels, &folder, &arguments);
        request::start(request, &name).await?;

        let endpoint = Endpoint::Socket {
            directory: folder.join("socket"),
            port: PORT,
            password: Some(Secret(password.to_owned())),
        };
        let major = tokio::select! {
            major = fill(&endpoint, password) => major.map_err(|reason| not_baked(&self.image.name, &reason))?,
            ended = self.engine.exit_code(&name, BAKE_DEADLINE) => {
                let log = self.engine.log_end(&name, 20).await;
                let reason = format!("it ended with exit code {}; its log:\n{log}", ended?);
                return Err(locale_missing(&log).unwrap_or_else(|| not_baked(&self.image.name, &reason)));
            }
        };
        self.stop_cleanly(&name).await?;
        let config = baked_config(key, &digest_of(password), major);
        self.engine.commit(&name, (REPOSITORY, &tag_of(key, password)), config).await
    }

    async fn stop_cleanly(&self, name: &str) -> Result<(), EnvironmentError> {
        self.engine.signal(name, "SIGINT").await?;
        match self.engine.exit_code(name, STOP_DEADLINE).await? {
            0 => Ok(()),
            code => {
                let log = self.engine.log_end(name, 20).await;
                let reason = format!("it did not shut down cleanly (exit code {code}); its log:\n{log}");
                Err(not_baked(&self.image.name, &reason))
            }
        }
    }
}

fn not_baked(image: &str, reason: &str) -> EnvironmentError {
    EnvironmentError::NotReady { reason: format!("image {image} could not make its cluster: {reason}") }
}

/// Waits for the final server, runs our statements, and gives the server's major version.
async fn fill(endpoint: &Endpoint, password: &str) -> Result<u32, String> {
    let session = final_server(endpoint).await?;
    for statement in init_statements(password) {
        session.client.batch_execute(&statement).await.map_err(|error| chain(&error))?;
    }
    let version = session.client.query_one("SELECT current_setting('server_version_num')::int / 10000", &[]);
    let major: i32 = version.await.map_err(|error| chain(&error))?.get(0);
    u32::try_from(major).map_err(|error| error.to_string())
}

/// The temporary server of the entry point answers on the socket as well, for as long as the image's
/// scripts run; it alone has no address to listen on.
async fn final_server(endpoint: &Endpoint) -> Result<Session, String> {
    let start = Instant::now();
    loop {
        let last = match Session::open_maintenance(endpoint).await {
            Ok(session) => {
                let query = "SELECT current_setting('listen_addresses')";
                match session.client.query_one(query, &[]).await {
                    Ok(row) if row.get::<_, &str>(0) == BAKING_ADDRESS => return Ok(session),
                    Ok(_) => "only the temporary server answers".to_owned(),
                    Err(error) => chain(&error),
                }
            }
            Err(error) => error.to_string(),
        };
        if start.elapsed() > BAKE_DEADLINE {
            return Err(format!("not ready within {BAKE_DEADLINE:?}; last try: {last}"));
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}

/// The image's configuration: what the baking container was started with must not come along.
fn baked_config(key: &str, password_digest: &str, major: u32) -> ContainerConfig {
    let owned = |text: &str| text.to_owned();
    ContainerConfig {
        env: Some(vec![
            format!("PGDATA={BAKED_DATA}"),
            // Both would be read again at every start.
            owned("POSTGRES_PASSWORD_FILE="),
            owned("POSTGRES_INITDB_ARGS="),
        ]),
        cmd: Some(vec![owned("postgres")]),
        labels: Some(
            [
                (BAKED_LABEL, key),
                (PASSWORD_LABEL, password_digest),
                (MAJOR_LABEL, &major.to_string()),
                // The image outlives the run that made it.
                (RUN_LABEL, ""),
                (OWNER_LABEL, ""),
            ]
            .into_iter()
            .map(|(name, value)| (owned(name), owned(value)))
            .collect(),
        ),
        ..ContainerConfig::default()
    }
}

/// Options of initdb as a line for a shell, which is what `POSTGRES_INITDB_ARGS` is.
pub(super) fn initdb_arguments(init: &InitOptions, major: Option<u32>) -> String {
    let mut words =
        vec![format!("--locale={}", quoted(&init.locale)), format!("--encoding={}", quoted(&init.encoding))];
    match init.checksums {
        Checksums::On => words.push("--data-checksums".to_owned()),
        // On by default from 18; older ones do not know the option.
        Checksums::Off if major.is_some_and(|major| major >= 18) => {
            words.push("--no-data-checksums".to_owned());
        }
        Checksums::Off => {}
    }
    words.extend(init.provider_options().iter().map(|(name, value)| format!("{name}={}", quoted(value))));
    words.extend(init.wal_segment_mib.map(|size| format!("--wal-segsize={size}")));
    words.join(" ")
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn tag_of(key: &str, password: &str) -> String {
    format!("{key}-{}", &digest_of(password)[..8])
}

fn digest_of(password: &str) -> String {
    hex(&Sha256::digest(password.as_bytes()))
}

async fn lock(path: &Path) -> Result<fs::File, EnvironmentError> {
    let locking = || failed(format!("{}: locking", path.display()));
    let file = fs::File::create(path).map_err(locking())?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) if start.elapsed() < LOCK_DEADLINE => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(error) => return Err(locking()(error.into())),
        }
    }
}

fn write_private(path: &Path, text: &str) -> Result<(), EnvironmentError> {
    let writing = || failed(format!("{}: writing", path.display()));
    let new: PathBuf = path.with_extension("new");
    drop(fs::remove_file(&new));
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(&new).map_err(writing())?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(writing())?;
    fs::rename(&new, path).map_err(writing())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn init(checksums: Checksums) -> InitOptions {
        InitOptions { checksums, ..InitOptions::default() }
    }

    #[test]
    fn options_are_explicit_and_fit_the_version() {
        let on = initdb_arguments(&init(Checksums::On), Some(15));
        assert_eq!(on, "--locale='C' --encoding='UTF8' --data-checksums");
        assert!(!initdb_arguments(&init(Checksums::Off), Some(17)).contains("checksums"));
        assert!(initdb_arguments(&init(Checksums::Off), Some(18)).ends_with("--no-data-checksums"));
    }

    #[test]
    fn words_cannot_leave_their_quotes() {
        let mut options = init(Checksums::On);
        options.locale = "C'; rm -rf /; '".to_owned();
        options.wal_segment_mib = Some(64);
        let line = initdb_arguments(&options, None);
        assert!(line.starts_with(r"--locale='C'\''; rm -rf /; '\''' --encoding"), "{line}");
        assert!(line.ends_with("--wal-segsize=64"));
    }

    #[test]
    fn the_password_file_is_private() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("key");
        write_private(&path, "secret").expect("written");
        write_private(&path, "newer").expect("replaced");
        assert_eq!(fs::read_to_string(&path).expect("read"), "newer");
        assert_eq!(fs::metadata(&path).expect("facts").permissions().mode() & 0o777, 0o600);
    }
}
