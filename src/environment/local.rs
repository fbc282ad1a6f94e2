//! The local backend: one fresh cluster per trial from binaries of this machine.
//!
//! Once: account, way to make data directories fresh, template. Per trial: a private folder, a data
//! directory over or from the template, a server that dies with this process, a socket.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, OnceCell};

use super::account::Account;
use super::discover::{Binaries, discover};
use super::files::{failed, file_system};
use super::fresh::Way;
use super::install::install;
use super::ledger::Ledger;
use super::local_command::LocalCommand;
use super::local_programs::{LocalPrograms, with_programs};
use super::local_server::LocalServer;
use super::place::{Place, SOCKET_PORT};
use super::template::{Maker, Template};
use super::wanted::Wanted;
use super::{Boxed, EnvironmentError, Instance, InstanceFacts, Launch, Provider, fresh, overlay};
use crate::engine::postgres::{Endpoint, Exchange, Secret};
use crate::model::{
    Backend, ConnectionPath, EnvironmentSpec, FreshMethod, InitOptions, ServerPin, block_size_words,
};

/// How long a server may take to answer.
pub(super) const START_DEADLINE: Duration = Duration::from_mins(1);
/// How often another port is tried when somebody else took the one that was free.
const PORT_TRIES: u32 = 5;

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
    /// The binaries whose client programs are used.
    programs: OnceCell<Binaries>,
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
            programs: OnceCell::new(),
        }
    }

    /// Finds binaries for an environment, or fetches some unless `offline`; of several, those of an `earlier` server,
    /// or of its version, are preferred. Returns the provider and, as
    /// a sentence without paths, why these were taken.
    ///
    /// # Errors
    /// When there are none: everything that was found and tried.
    pub async fn find_like(
        spec: &EnvironmentSpec,
        cache: &Path,
        offline: bool,
        ledger: &Arc<Ledger>,
        earlier: Option<&ServerPin>,
    ) -> Result<(Self, String), EnvironmentError> {
        let found = discover(spec.binaries.as_deref(), cache).await?;
        let wanted = Wanted::of(spec);
        let preferred = earlier.and_then(|earlier| found.like(&wanted, earlier, cache));
        let (binaries, why) = match preferred.map_or_else(|| found.choose(&wanted), Ok) {
            Ok(binaries) => {
                let why = format!("PostgreSQL {} found by: {}", binaries.version, binaries.source);
                (binaries.clone(), why)
            }
            // Of a folder the user named, nothing else is taken silently.
            Err(nothing) if offline || spec.binaries.is_some() || !wanted.can_be_fetched() => {
                return Err(nothing);
            }
            Err(nothing) => {
                let allowed = |major: &u32| spec.versions.contains(*major);
                let major = earlier.and_then(ServerPin::major).filter(allowed).unwrap_or(spec.versions.max);
                let binaries = install(major, spec.builder, cache, offline, ledger)
                    .await
                    .map_err(|error| both(&nothing, &error))?;
                let why = format!("PostgreSQL {} was fetched: {}", binaries.version, binaries.source);
                (binaries, why)
            }
        };
        Ok((Self::new(spec, cache, binaries, ledger), why))
    }

    /// [`LocalProvider::find_like`] without an earlier server.
    ///
    /// # Errors
    /// As there.
    pub async fn find(
        spec: &EnvironmentSpec,
        cache: &Path,
        offline: bool,
        ledger: &Arc<Ledger>,
    ) -> Result<(Self, String), EnvironmentError> {
        Self::find_like(spec, cache, offline, ledger, None).await
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
        let trials = fresh::open_cache(&self.cache, &account).await?;
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
        let way = fresh::way(launch.environment.fresh, &prepared.overlay)?;
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
        let command = LocalCommand {
            binaries: self.binaries.clone(),
            account: account.clone(),
            spec: spec.clone(),
            way,
            port,
        };
        let child = command.spawn(&place).await?;
        let exchange = Exchange {
            client_dir: place.exchange.clone(),
            server_dir: place.exchange.to_string_lossy().into_owned(),
        };
        let at = exchange.client_dir.clone();
        let mut server = LocalServer::new(child, place, command, endpoint.clone(), &self.ledger)?;
        if let Some(binaries) = self.programs.get() {
            server = server.with_programs(LocalPrograms::new(binaries, &endpoint, &at));
        }
        server.ready(START_DEADLINE).await?;
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
            fresh::copy(&template.data, place, &prepared.account).await?;
        }
        Ok(template.password)
    }
}

impl Provider for LocalProvider {
    fn backend(&self) -> Backend {
        Backend::Local
    }

    fn major(&self) -> Option<u32> {
        Some(self.binaries.major)
    }

    fn prepare(&self) -> Boxed<'_, Result<(), EnvironmentError>> {
        Box::pin(async move {
            let prepared = self.prepared().await?;
            if fresh::way(self.fresh, &prepared.overlay)? != Way::Initdb {
                self.template(&self.init, prepared).await?;
            }
            Ok(())
        })
    }

    fn pin(&self) -> Boxed<'_, Result<ServerPin, EnvironmentError>> {
        Box::pin(async {
            Ok(ServerPin {
                backend: Backend::Local,
                version: self.binaries.version.clone(),
                image: None,
                image_id: None,
                image_digest: None,
                builder: Some(self.binaries.builder.word().to_owned()),
                block_size: Some(block_size_words(self.binaries.block_size)),
                binary: Some(format!("sha256:{}", self.binaries.checksum(&self.cache)?)),
            })
        })
    }

    fn find_programs(&self) -> Boxed<'_, Result<(), EnvironmentError>> {
        Box::pin(async {
            let find = || with_programs(&self.binaries, &self.cache);
            self.programs.get_or_try_init(find).await.map(drop)
        })
    }

    fn start<'a>(&'a self, launch: &'a Launch) -> Boxed<'a, Result<Instance, EnvironmentError>> {
        Box::pin(self.start_fresh(launch))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free() {
        let port = free_port().expect("a port");
        std::net::TcpListener::bind(("127.0.0.1", port)).expect("it is free");
    }
}
