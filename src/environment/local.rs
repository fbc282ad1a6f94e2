//! The local backend: one fresh cluster per trial from binaries of this machine.
//!
//! Once: account, way to make data directories fresh, template. Per trial: a private folder, a data
//! directory over or from the template, a server that dies with this process, a socket.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OnceCell};

use super::account::{Account, OnParentDeath, run, spawn, words};
use super::discover::{Binaries, discover};
use super::files::{copy_tree, ensure_folder, failed, file_system, give_to};
use super::install::install;
use super::ledger::Ledger;
use super::local_server::LocalServer;
use super::place::{Place, SOCKET_PORT};
use super::template::{Maker, Template};
use super::{Boxed, EnvironmentError, Instance, InstanceFacts, Launch, Provider, overlay};
use crate::engine::postgres::{Endpoint, Secret};
use crate::model::{Backend, ConnectionPath, EnvironmentSpec, FreshMethod, InitOptions, Scalar};

/// How long a server may take to answer.
const START_DEADLINE: Duration = Duration::from_mins(1);
/// How long copying a template may take.
const COPY_DEADLINE: Duration = Duration::from_mins(5);
/// How often another port is tried when somebody else took the one that was free.
const PORT_TRIES: u32 = 5;

/// How a data directory is made fresh, once it is decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Overlay,
    Copy,
    Initdb,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Overlay => "overlay",
            Self::Copy => "copy",
            Self::Initdb => "initdb",
        }
    }
}

/// What is found out and made once.
struct Prepared {
    account: Account,
    trials: PathBuf,
    /// Whether overlays work here; else why not.
    overlay: Result<(), String>,
    /// `postgres 15.18 sha256:...`.
    identity: String,
    /// File system of the trials.
    file_system: String,
}

/// Starts fresh local clusters from one set of binaries.
pub struct LocalProvider {
    cache: PathBuf,
    binaries: Binaries,
    init: InitOptions,
    fresh: FreshMethod,
    ledger: Arc<Ledger>,
    prepared: OnceCell<Prepared>,
    templates: Mutex<HashMap<InitOptions, Template>>,
}

impl LocalProvider {
    /// A provider for an environment from given binaries.
    pub fn new(spec: &EnvironmentSpec, cache: &Path, binaries: Binaries, ledger: &Arc<Ledger>) -> Self {
        Self {
            cache: cache.to_owned(),
            binaries,
            init: spec.init.clone(),
            fresh: spec.fresh,
            ledger: Arc::clone(ledger),
            prepared: OnceCell::new(),
            templates: Mutex::default(),
        }
    }

    /// Finds binaries for an environment, or fetches some unless `offline`. Returns the provider and, as
    /// a sentence without paths, why these were taken.
    ///
    /// # Errors
    /// When there are none: everything that was found and tried.
    pub async fn find(
        spec: &EnvironmentSpec,
        cache: &Path,
        offline: bool,
        ledger: &Arc<Ledger>,
    ) -> Result<(Self, String), EnvironmentError> {
        let found = discover(spec.binaries.as_deref(), cache).await?;
        let (binaries, why) = match found.choose(spec.versions) {
            Ok(binaries) => {
                let why = format!("PostgreSQL {} found by: {}", binaries.version, binaries.source);
                (binaries.clone(), why)
            }
            // Of a folder the user named, nothing else is taken silently.
            Err(nothing) if offline || spec.binaries.is_some() => return Err(nothing),
            Err(nothing) => {
                let binaries = install(spec.versions.max, cache, offline, ledger)
                    .await
                    .map_err(|error| both(&nothing, &error))?;
                let why = format!("PostgreSQL {} was fetched: {}", binaries.version, binaries.source);
                (binaries, why)
            }
        };
        Ok((Self::new(spec, cache, binaries, ledger), why))
    }

    /// The binaries it starts.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// Why overlays do not work here, when they were looked for and do not.
    pub fn overlay_refused(&self) -> Option<&str> {
        self.prepared.get()?.overlay.as_ref().err().map(String::as_str)
    }

    async fn prepared(&self) -> Result<&Prepared, EnvironmentError> {
        self.prepared.get_or_try_init(|| self.find_out()).await
    }

    async fn find_out(&self) -> Result<Prepared, EnvironmentError> {
        let account = Account::detect().await?;
        let trials = open_cache(&self.cache, &account).await?;
        let overlay = match self.fresh {
            FreshMethod::Auto | FreshMethod::Overlay => {
                overlay::probe(&trials, &account, &self.ledger).await?
            }
            FreshMethod::Copy | FreshMethod::Initdb => {
                Err("not looked for: another way is asked for".to_owned())
            }
        };
        let checksum = self.binaries.checksum(&self.cache)?;
        let identity = format!("postgres {} sha256:{}", self.binaries.version, &checksum[..12]);
        let file_system = file_system(&trials);
        Ok(Prepared { account, trials, overlay, identity, file_system })
    }

    fn maker<'a>(&'a self, prepared: &'a Prepared) -> Maker<'a> {
        Maker {
            cache: &self.cache,
            binaries: &self.binaries,
            account: &prepared.account,
            ledger: &self.ledger,
        }
    }

    async fn template(&self, init: &InitOptions, prepared: &Prepared) -> Result<Template, EnvironmentError> {
        let mut known = self.templates.lock().await;
        if let Some(template) = known.get(init) {
            return Ok(template.clone());
        }
        let template = self.maker(prepared).template(init).await?;
        known.insert(init.clone(), template.clone());
        Ok(template)
    }

    async fn start_fresh(&self, launch: &Launch) -> Result<Instance, EnvironmentError> {
        let prepared = self.prepared().await?;
        let way = way(launch.environment.fresh, &prepared.overlay)?;
        let mut tries = 0;
        loop {
            tries += 1;
            match self.attempt(launch, prepared, way).await {
                // Between our look and the server's bind somebody else may have taken the port.
                Err(EnvironmentError::NotReady { reason })
                    if tries < PORT_TRIES && reason.contains("could not bind IPv4 address") => {}
                other => return other,
            }
        }
    }

    async fn attempt(
        &self,
        launch: &Launch,
        prepared: &Prepared,
        way: Way,
    ) -> Result<Instance, EnvironmentError> {
        let spec = &launch.environment;
        let account = &prepared.account;
        let name = format!("{}-{}", launch.run_id, launch.trial);
        let place = Place::new(&prepared.trials, &name, account, &self.ledger)?;
        let password = self.make_data(way, &spec.init, prepared, &place).await?;
        let (endpoint, connection, port) = endpoint(spec.connection, &place, password)?;
        let child = self.launch(spec, account, way, &place, port).await?;
        let exchange = super::Exchange {
            client_dir: place.exchange.clone(),
            server_dir: place.exchange.to_string_lossy().into_owned(),
        };
        let server = LocalServer::new(child, place, &self.ledger)?;
        server.ready(&endpoint, START_DEADLINE).await?;
        let storage = match way {
            Way::Overlay => format!("overlayfs on {}", prepared.file_system),
            Way::Copy | Way::Initdb => prepared.file_system.clone(),
        };
        let facts = InstanceFacts {
            backend: Backend::Local,
            identity: prepared.identity.clone(),
            fresh: way.name().to_owned(),
            storage,
            connection: connection.to_owned(),
            cpuset: spec.limits.cpuset.clone(),
        };
        Ok(Instance { endpoint, facts, exchange: Some(exchange), running: Box::new(server) })
    }

    /// Makes the data directory in a trial's folder; returns the password of its roles.
    async fn make_data(
        &self,
        way: Way,
        init: &InitOptions,
        prepared: &Prepared,
        place: &Place,
    ) -> Result<Secret, EnvironmentError> {
        if way == Way::Initdb {
            return Ok(self.maker(prepared).cluster(&place.folder, init).await?.password);
        }
        let template = self.template(init, prepared).await?;
        if way == Way::Overlay {
            overlay::lay_out(&place.folder, &template.data, prepared.account.owner())?;
        } else {
            copy(&template.data, place, &prepared.account).await?;
        }
        Ok(template.password)
    }

    /// Spawns the server; it is not ready yet.
    async fn launch(
        &self,
        spec: &EnvironmentSpec,
        account: &Account,
        way: Way,
        place: &Place,
        port: Option<u16>,
    ) -> Result<Child, EnvironmentError> {
        let mut before = if way == Way::Overlay { overlay::wrapper() } else { Vec::new() };
        if let Some(cpus) = &spec.limits.cpuset {
            before.extend(["taskset".into(), "-c".into(), OsString::from(cpus)]);
        }
        let death = if way == Way::Overlay { OnParentDeath::Kill } else { OnParentDeath::Quit };
        let mut command = self.binaries.command(account, &before, "postgres", &place.folder, death);
        add_settings(&mut command, spec, place, port);
        let log = place.log();
        let file =
            File::create(&log).map_err(failed(format!("{}: making the server's log", log.display())))?;
        let copy = file.try_clone().map_err(failed(format!("{}: opening", log.display())))?;
        command.stdout(Stdio::from(copy)).stderr(Stdio::from(file));
        spawn(command).await.map_err(failed("starting the server"))
    }
}

impl Provider for LocalProvider {
    fn backend(&self) -> Backend {
        Backend::Local
    }

    fn prepare(&self) -> Boxed<'_, Result<(), EnvironmentError>> {
        Box::pin(async move {
            let prepared = self.prepared().await?;
            if way(self.fresh, &prepared.overlay)? != Way::Initdb {
                self.template(&self.init, prepared).await?;
            }
            Ok(())
        })
    }

    fn start<'a>(&'a self, launch: &'a Launch) -> Boxed<'a, Result<Instance, EnvironmentError>> {
        Box::pin(self.start_fresh(launch))
    }
}

/// What to do where a method is asked for and overlays work, or do not.
fn way(asked: FreshMethod, overlay: &Result<(), String>) -> Result<Way, EnvironmentError> {
    match (asked, overlay) {
        (FreshMethod::Auto | FreshMethod::Overlay, Ok(())) => Ok(Way::Overlay),
        (FreshMethod::Auto | FreshMethod::Copy, _) => Ok(Way::Copy),
        (FreshMethod::Initdb, _) => Ok(Way::Initdb),
        (FreshMethod::Overlay, Err(why)) => Err(EnvironmentError::Unavailable {
            reason: format!("the environment asks for a data directory by overlay, but {why}"),
            remedy: "use `fresh: auto` or `fresh: copy`".to_owned(),
        }),
    }
}

/// Both reasons in one: what was found, and why nothing could be fetched.
fn both(nothing: &EnvironmentError, fetching: &EnvironmentError) -> EnvironmentError {
    match (nothing, fetching) {
        (
            EnvironmentError::Unavailable { reason, .. },
            EnvironmentError::Unavailable { reason: fetching, remedy },
        ) => EnvironmentError::Unavailable {
            reason: format!("{reason}\n  and {fetching}"),
            remedy: remedy.clone(),
        },
        (_, other) => EnvironmentError::Unavailable {
            reason: format!("{nothing}\n  and {other}"),
            remedy: "install PostgreSQL, or start a container engine".to_owned(),
        },
    }
}

/// Makes the cache's folders for templates and trials, such that the server's account can enter them;
/// returns that of the trials.
pub(crate) async fn open_cache(cache: &Path, account: &Account) -> Result<PathBuf, EnvironmentError> {
    let trials = cache.join("trials");
    for folder in [cache, &trials, &cache.join("templates")] {
        ensure_folder(folder)?;
        if account.owner().is_some() {
            open_to_all(folder)?;
        }
    }
    account.must_reach(&trials).await?;
    Ok(trials)
}

/// Lets other accounts pass through a folder of the cache.
fn open_to_all(folder: &Path) -> Result<(), EnvironmentError> {
    let what = || failed(format!("{}: opening the folder to the server's account", folder.display()));
    let mode = fs::metadata(folder).map_err(what())?.permissions().mode();
    if mode & 0o055 == 0o055 {
        return Ok(());
    }
    fs::set_permissions(folder, fs::Permissions::from_mode(mode | 0o055)).map_err(what())
}

/// Copies a template, sharing blocks where the file system can.
async fn copy(template: &Path, place: &Place, account: &Account) -> Result<(), EnvironmentError> {
    let data = place.data();
    let mut command = account.command("cp", &place.folder, OnParentDeath::Nothing);
    command.args(["-a", "--reflink=auto"]).arg(template).arg(&data);
    let refused = match run(command, COPY_DEADLINE).await {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => words(&output),
        Err(error) => error.to_string(),
    };
    // A `cp` without these options, as on macOS; a full disk fails here again, with the reason.
    drop(super::files::remove_tree(&data));
    let (from, to, owner) = (template.to_owned(), data.clone(), account.owner());
    let copied = tokio::task::spawn_blocking(move || {
        copy_tree(&from, &to)?;
        owner.map_or(Ok(()), |owner| give_to(&to, owner))
    });
    let copied = copied.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    copied.map_err(failed(format!("{}: copying the template (cp: {refused})", data.display())))
}

/// Where the server will be reached, the word for it, and the TCP port it has to listen on.
fn endpoint(
    connection: ConnectionPath,
    place: &Place,
    password: Secret,
) -> Result<(Endpoint, &'static str, Option<u16>), EnvironmentError> {
    match connection {
        ConnectionPath::Socket => {
            let directory = place.socket.clone();
            Ok((Endpoint::Socket { directory, port: SOCKET_PORT, password: None }, "socket", None))
        }
        ConnectionPath::Address => {
            let port = free_port()?;
            Ok((Endpoint::Tcp { host: "127.0.0.1".to_owned(), port, password }, "address", Some(port)))
        }
        ConnectionPath::Published => Err(EnvironmentError::Unavailable {
            reason: "`connection: published` means a port published by a container engine; a local server has none"
                .to_owned(),
            remedy: "use `connection: address` or `socket`, or the container backend".to_owned(),
        }),
    }
}

fn free_port() -> Result<u16, EnvironmentError> {
    let address = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    Ok(address.map_err(failed("127.0.0.1: looking for a free port"))?.port())
}

/// Data directory, settings asked for, then where to listen: of repeated settings the last one counts,
/// and where loadlab looks for the server is not for an experiment to say.
fn add_settings(command: &mut Command, spec: &EnvironmentSpec, place: &Place, port: Option<u16>) {
    command.arg("-D").arg(place.data());
    for (name, value) in &spec.settings {
        if let Some(value) = setting_text(value) {
            command.arg("-c").arg(format!("{name}={value}"));
        }
    }
    let mut socket = OsString::from("unix_socket_directories=");
    socket.push(&place.socket);
    command.arg("-c").arg(socket);
    let listen = if port.is_some() { "127.0.0.1" } else { "" };
    command.arg("-c").arg(format!("listen_addresses={listen}"));
    command.arg("-c").arg(format!("port={}", port.unwrap_or(SOCKET_PORT)));
}

/// A setting's value as the server reads it; `null` leaves the server's default.
fn setting_text(value: &Scalar) -> Option<String> {
    match value {
        Scalar::Null => None,
        Scalar::Bool(true) => Some("on".to_owned()),
        Scalar::Bool(false) => Some("off".to_owned()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_written_as_the_server_reads_them() {
        assert_eq!(setting_text(&Scalar::Bool(false)).as_deref(), Some("off"));
        assert_eq!(setting_text(&Scalar::Int(5)).as_deref(), Some("5"));
        assert_eq!(setting_text(&Scalar::Text("8GB".to_owned())).as_deref(), Some("8GB"));
        assert_eq!(setting_text(&Scalar::Null), None);
    }

    #[test]
    fn only_a_forced_overlay_fails_where_there_is_none() {
        let no: Result<(), String> = Err("user namespaces are not allowed here".to_owned());
        assert_eq!(way(FreshMethod::Auto, &Ok(())).expect("way"), Way::Overlay);
        assert_eq!(way(FreshMethod::Auto, &no).expect("way"), Way::Copy);
        assert_eq!(way(FreshMethod::Copy, &Ok(())).expect("way"), Way::Copy);
        let error = way(FreshMethod::Overlay, &no).expect_err("forced").to_string();
        assert!(error.contains("not allowed here") && error.contains("fresh: copy"), "{error}");
    }

    #[test]
    fn ports_are_free() {
        let port = free_port().expect("a port");
        std::net::TcpListener::bind(("127.0.0.1", port)).expect("it is free");
    }
}
