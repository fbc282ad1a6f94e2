//! A server that already runs: nothing is started, and nothing is touched but a schema of our own.
//!
//! Each trial works in `loadlab_<run>_<trial>`, which is dropped with everything in it at the end. A run
//! that is killed leaves its schema; a note in the cache, written before the schema is made, lets the
//! next start on the same server drop it. Only schemas with such a note are ever dropped.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use super::files::{ensure_folder, failed, hex};
use super::ledger::{Ledger, Owner};
use super::program::Pipeline;
use super::{Boxed, EnvironmentError, Instance, InstanceFacts, Launch, Programs, Provider, Running, Usage};
use crate::engine::postgres::{Endpoint, Role, Secret, Session};
use crate::model::{Backend, EnvironmentSpec, ServerPin, UNKNOWN};

/// Connecting and asking.
const CALL_DEADLINE: Duration = Duration::from_secs(15);
/// Dropping a schema with large tables.
const DROP_DEADLINE: Duration = Duration::from_mins(5);
/// Longest name PostgreSQL keeps whole, in bytes.
const NAME_LIMIT: usize = 63;

/// Gives schemas on one server.
pub struct ExternalProvider {
    url: Secret,
    /// Notes about schemas on this server.
    notes: PathBuf,
    owner: Owner,
    /// What the server said about itself.
    server: OnceCell<Server>,
}

#[derive(Debug, Clone)]
struct Server {
    version: String,
    major: u32,
}

impl ExternalProvider {
    /// A provider for the server whose URL stands in the environment variable that the spec names.
    ///
    /// # Errors
    /// When the variable is not set or is no URL of a PostgreSQL server; the URL is never shown.
    pub async fn new(
        spec: &EnvironmentSpec,
        cache: &Path,
        ledger: &Arc<Ledger>,
    ) -> Result<Self, EnvironmentError> {
        let variable = &spec.url_variable;
        let url = std::env::var(variable).map_err(|_| EnvironmentError::Unavailable {
            reason: format!("environment variable {variable} is not set"),
            remedy: format!(
                "{variable}=postgres://user:password@host/database, a database you may make schemas in"
            ),
        })?;
        Self::at(Secret(url), spec, cache, ledger).await
    }

    /// A provider for the server at a URL.
    ///
    /// # Errors
    /// When it cannot be reached or is of another version; the URL is never shown.
    pub async fn at(
        url: Secret,
        spec: &EnvironmentSpec,
        cache: &Path,
        ledger: &Arc<Ledger>,
    ) -> Result<Self, EnvironmentError> {
        let key = hex(&Sha256::digest(url.0.as_bytes())[..8]);
        let notes = cache.join("external").join(key);
        let provider = Self { url, notes, owner: ledger.owner().clone(), server: OnceCell::new() };
        let server = provider.server().await?;
        if !spec.versions.contains(server.major) {
            return Err(EnvironmentError::Unavailable {
                reason: format!(
                    "the server that already runs is PostgreSQL {}, the environment allows {}",
                    server.version, spec.versions
                ),
                remedy: "name another server, or widen `versions` of the environment".to_owned(),
            });
        }
        Ok(provider)
    }

    async fn server(&self) -> Result<&Server, EnvironmentError> {
        self.server
            .get_or_try_init(|| async {
                let query = "SELECT current_setting('server_version'), \
                             current_setting('server_version_num')::int / 10000";
                let session = connect(&self.url, "public").await?;
                let row = bounded(CALL_DEADLINE, session.client.query_one(query, &[])).await;
                let row = row.map_err(|why| trouble("asking for its version", &why))?;
                let major: i32 = row.get(1);
                Ok(Server { version: row.get(0), major: u32::try_from(major).unwrap_or_default() })
            })
            .await
    }

    /// Drops the schemas of dead runs on this server.
    async fn sweep(&self) -> Result<(), EnvironmentError> {
        for note in notes(&self.notes) {
            if note.owner.is_gone() {
                drop_schema(&self.url, &note.schema).await?;
                drop(fs::remove_file(self.notes.join(&note.schema)));
            }
        }
        Ok(())
    }

    async fn start_one(&self, launch: &Launch) -> Result<Instance, EnvironmentError> {
        let server = self.server().await?.clone();
        let schema = schema_name(&launch.run_id, launch.trial);
        ensure_folder(&self.notes)?;
        let note = self.notes.join(&schema);
        fs::write(&note, self.owner.to_string())
            .map_err(failed(format!("{}: noting the schema", note.display())))?;
        let running = RunningSchema { url: self.url.clone(), schema: schema.clone(), note };
        if let Err(error) = make_schema(&self.url, &schema).await {
            drop(Box::new(running).stop().await);
            return Err(error);
        }
        let endpoint = Endpoint::External { url: self.url.clone(), schema };
        let connection = if endpoint.uses_socket() { "socket" } else { "address" };
        Ok(Instance {
            endpoint,
            facts: InstanceFacts {
                backend: Backend::External,
                identity: format!("postgres {} already running", server.version),
                fresh: "already running".to_owned(),
                storage: "unknown".to_owned(),
                connection: connection.to_owned(),
                cpuset: None,
            },
            exchange: None,
            running: Box::new(running),
        })
    }
}

impl Provider for ExternalProvider {
    fn backend(&self) -> Backend {
        Backend::External
    }

    fn major(&self) -> Option<u32> {
        self.server.get().map(|server| server.major)
    }

    fn prepare(&self) -> Boxed<'_, Result<(), EnvironmentError>> {
        Box::pin(async {
            self.server().await?;
            self.sweep().await
        })
    }

    fn pin(&self) -> Boxed<'_, Result<ServerPin, EnvironmentError>> {
        Box::pin(async {
            Ok(ServerPin {
                backend: Backend::External,
                version: self.server().await?.version.clone(),
                image: None,
                image_id: None,
                image_digest: None,
                builder: None,
                block_size: None,
                binary: Some(UNKNOWN.to_owned()),
            })
        })
    }

    fn find_programs(&self) -> Boxed<'_, Result<(), EnvironmentError>> {
        Box::pin(async { Err(no_programs()) })
    }

    fn start<'a>(&'a self, launch: &'a Launch) -> Boxed<'a, Result<Instance, EnvironmentError>> {
        Box::pin(self.start_one(launch))
    }
}

fn no_programs() -> EnvironmentError {
    EnvironmentError::Unavailable {
        reason: "a dump or restore needs a folder beside the server and programs of its version, which a server that \
                 already runs does not share"
            .to_owned(),
        remedy: "use --on local or --on container for experiments with `dump` and `restore`".to_owned(),
    }
}

/// The schema of one trial.
struct RunningSchema {
    url: Secret,
    schema: String,
    note: PathBuf,
}

impl Running for RunningSchema {
    fn usage(&self) -> Boxed<'_, Usage> {
        // Other clients use the server too, and it may be on another machine.
        Box::pin(async { Usage::default() })
    }

    fn diagnose(&self) -> Boxed<'_, Option<String>> {
        Box::pin(async {
            let session = connect(&self.url, "public").await;
            session.err().map(|error| format!("the server does not answer any more: {error}"))
        })
    }

    fn programs(&self, _: Pipeline) -> Boxed<'_, Result<Programs<'_>, EnvironmentError>> {
        Box::pin(async { Err(no_programs()) })
    }

    fn data_directory(&self) -> Option<PathBuf> {
        None
    }

    fn restart(&self) -> Boxed<'_, Result<Endpoint, EnvironmentError>> {
        Box::pin(async {
            Err(EnvironmentError::Unavailable {
                reason: "a server that already runs is not restarted: others may use it".to_owned(),
                remedy: "use the local or the container backend".to_owned(),
            })
        })
    }

    fn stop(self: Box<Self>) -> Boxed<'static, Result<(), EnvironmentError>> {
        Box::pin(async move {
            drop_schema(&self.url, &self.schema).await?;
            drop(fs::remove_file(&self.note));
            Ok(())
        })
    }
}

/// A schema that a run has made, or was about to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaNote {
    /// Its name.
    pub schema: String,
    /// The process that made it.
    pub owner: Owner,
}

/// Schemas on external servers that dead runs left: `loadlab clean` cannot reach them without their
/// URL, the next start on the same server drops them.
pub fn abandoned_schemas(cache: &Path) -> Vec<SchemaNote> {
    let Ok(servers) = fs::read_dir(cache.join("external")) else { return Vec::new() };
    servers.flatten().flat_map(|server| notes(&server.path())).filter(|note| note.owner.is_gone()).collect()
}

fn notes(folder: &Path) -> Vec<SchemaNote> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let read = |file: fs::DirEntry| {
        let schema = file.file_name().into_string().ok().filter(|name| name.starts_with("loadlab_"))?;
        Some(SchemaNote { schema, owner: Owner::parse(&fs::read_to_string(file.path()).ok()?)? })
    };
    files.flatten().filter_map(read).collect()
}

/// `loadlab_<run>_<trial>`, of lower-case letters, digits and `_`; a long run id is cut in its middle
/// and told apart by a digest.
fn schema_name(run_id: &str, trial: u64) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let run: String = run_id.chars().map(plain).collect();
    let name = format!("loadlab_{run}_{trial}");
    if name.len() <= NAME_LIMIT {
        return name;
    }
    let digest = hex(&Sha256::digest(run_id.as_bytes())[..6]);
    format!("loadlab_{}_{digest}_{trial}", run.get(..20).unwrap_or_default())
}

async fn make_schema(url: &Secret, schema: &str) -> Result<(), EnvironmentError> {
    let session = connect(url, schema).await?;
    // Without IF NOT EXISTS: a schema that is there already is not ours.
    let statement = format!("CREATE SCHEMA {schema}");
    bounded(CALL_DEADLINE, session.client.batch_execute(&statement))
        .await
        .map_err(|why| trouble(&format!("making schema {schema}"), &why))
}

async fn drop_schema(url: &Secret, schema: &str) -> Result<(), EnvironmentError> {
    let session = connect(url, "public").await?;
    let statement = format!("DROP SCHEMA IF EXISTS {schema} CASCADE");
    bounded(DROP_DEADLINE, session.client.batch_execute(&statement))
        .await
        .map_err(|why| trouble(&format!("dropping schema {schema}"), &why))
}

async fn connect(url: &Secret, schema: &str) -> Result<Session, EnvironmentError> {
    let endpoint = Endpoint::External { url: url.clone(), schema: schema.to_owned() };
    let opened = tokio::time::timeout(CALL_DEADLINE, Session::open(&endpoint, Role::Owner)).await;
    let why = match opened {
        Ok(Ok(session)) => return Ok(session),
        Ok(Err(error)) => scrubbed(&error.to_string(), url),
        Err(_) => format!("no answer within {CALL_DEADLINE:?}"),
    };
    Err(EnvironmentError::Unavailable {
        reason: format!("the server that already runs cannot be used: {why}"),
        remedy:
            "check the URL (postgres://user:password@host/database; without TLS) and the server's pg_hba.conf"
                .to_owned(),
    })
}

async fn bounded<T, E: std::error::Error + 'static>(
    deadline: Duration,
    call: impl Future<Output = Result<T, E>>,
) -> Result<T, String> {
    match tokio::time::timeout(deadline, call).await {
        Ok(answer) => answer.map_err(|error| crate::engine::postgres::chain(&error)),
        Err(_) => Err(format!("no answer within {deadline:?}")),
    }
}

fn trouble(what: &str, why: &str) -> EnvironmentError {
    EnvironmentError::NotReady { reason: format!("{what} on the server that already runs: {why}") }
}

/// An error's words without the URL and without the password in it.
fn scrubbed(words: &str, url: &Secret) -> String {
    let mut text = words.replace(&url.0, "***");
    let endpoint = Endpoint::External { url: url.clone(), schema: "public".to_owned() };
    if let Ok(config) = endpoint.config(Role::Owner)
        && let Some(password) = config.get_password().filter(|password| !password.is_empty())
    {
        text = text.replace(&*String::from_utf8_lossy(password), "***");
    }
    // A URL that cannot be parsed: the part between the first colon after `//` and the last `@`.
    let after = url.0.split_once("//").map_or("", |(_, rest)| rest);
    if let Some((user, _)) = after.rsplit_once('@')
        && let Some((_, password)) = user.split_once(':')
        && !password.is_empty()
    {
        text = text.replace(password, "***");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_schemas_are_plain_short_and_different() {
        assert_eq!(schema_name("2026-05-01T10.00-Ab", 3), "loadlab_2026_05_01t10_00_ab_3");
        let (first, second) = (schema_name(&"r".repeat(80), 1), schema_name(&"r".repeat(81), 1));
        assert!(first.len() <= NAME_LIMIT && first != second);
        assert!(schema_name(&"é\"; DROP".repeat(30), u64::MAX).len() <= NAME_LIMIT);
    }

    #[test]
    fn passwords_never_show() {
        let url = Secret("postgres://me:s3cr%40t@host/db".to_owned());
        let words = scrubbed("failed for s3cr@t at postgres://me:s3cr%40t@host/db, s3cr%40t", &url);
        assert_eq!(words, "failed for *** at ***, ***");
        let broken = Secret("postgres://me:canary@host:notaport/db".to_owned());
        assert!(!scrubbed("invalid canary", &broken).contains("canary"));
    }

    #[test]
    fn only_noted_schemas_of_dead_owners_are_abandoned() {
        let cache = tempfile::tempdir().expect("folder");
        let server = cache.path().join("external/abc");
        fs::create_dir_all(&server).expect("folder");
        let this = Owner::this().to_string();
        let (pid, rest) = this.split_once(':').expect("parts");
        let (_, boot) = rest.split_once(':').expect("parts");
        fs::write(server.join("loadlab_dead_1"), format!("{pid}:1:{boot}")).expect("note");
        fs::write(server.join("loadlab_alive_1"), &this).expect("note");
        fs::write(server.join("public"), format!("{pid}:1:{boot}")).expect("foreign");
        fs::write(server.join("loadlab_torn_1"), "").expect("torn");
        let found: Vec<_> = abandoned_schemas(cache.path()).into_iter().map(|note| note.schema).collect();
        assert_eq!(found, ["loadlab_dead_1"]);
    }
}
