//! One fresh container per trial.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Mutex, OnceCell};

use super::bake::{Baked, Bakery};
use super::engine::ContainerEngine;
use super::folders::{Footprint, make_open_folder};
use super::image::ResolvedImage;
use super::labels;
use super::programs;
use super::reach::{Reach, Up};
use super::request::{self, Data};
use super::running::RunningContainer;
use crate::engine::postgres::Exchange;
use crate::environment::engine::RUN_LABEL;
use crate::environment::files::{file_system, random_hex};
use crate::environment::ledger::Ledger;
use crate::environment::{Boxed, EnvironmentError, Instance, InstanceFacts, Launch, Provider};
use crate::model::{Backend, ConnectionPath, EnvironmentSpec, InitOptions, ServerPin, Storage, UNKNOWN};

/// Starts containers of one image, which is resolved once: a name that moves later changes nothing.
pub struct ContainerProvider {
    engine: ContainerEngine,
    image: ResolvedImage,
    spec: EnvironmentSpec,
    cache: PathBuf,
    ledger: Arc<Ledger>,
    /// By key; holding the lock while baking makes a second caller wait.
    baked: Mutex<HashMap<String, Baked>>,
    layer_storage: OnceCell<String>,
    /// Set when the image is known to have the programs that dumps need.
    programs: OnceCell<()>,
}

impl ContainerProvider {
    /// A provider of an environment's image. Nothing is made yet.
    pub fn new(
        engine: ContainerEngine,
        image: ResolvedImage,
        spec: &EnvironmentSpec,
        cache: PathBuf,
        ledger: &Arc<Ledger>,
    ) -> Self {
        Self {
            engine,
            image,
            spec: spec.clone(),
            cache,
            ledger: Arc::clone(ledger),
            baked: Mutex::default(),
            layer_storage: OnceCell::new(),
            programs: OnceCell::new(),
        }
    }

    async fn baked(&self, init: &InitOptions) -> Result<Baked, EnvironmentError> {
        let bakery = Bakery {
            engine: &self.engine,
            image: &self.image,
            init,
            cache: &self.cache,
            ledger: &self.ledger,
        };
        let key = bakery.key();
        let mut known = self.baked.lock().await;
        if let Some(baked) = known.get(&key) {
            return Ok(baked.clone());
        }
        let baked = bakery.bake().await?;
        if !self.spec.versions.contains(baked.major) {
            return Err(EnvironmentError::Unavailable {
                reason: format!(
                    "image {}: is PostgreSQL {}, the environment allows {}",
                    self.image.name, baked.major, self.spec.versions
                ),
                remedy: "name another image in the environment".to_owned(),
            });
        }
        known.insert(key, baked.clone());
        Ok(baked)
    }

    async fn start_one(&self, launch: &Launch) -> Result<Instance, EnvironmentError> {
        let baked = self.baked(&launch.environment.init).await?;
        let mut footprint =
            Footprint::new(&self.engine, &self.ledger, baked.id.trim_start_matches("sha256:"));
        match self.run(launch, &baked, &mut footprint).await {
            Ok((up, reach, exchange)) => Ok(Instance {
                endpoint: up.endpoint.clone(),
                facts: self.facts(&launch.environment).await,
                exchange: Some(exchange),
                running: Box::new(RunningContainer::new(self.engine.clone(), footprint, reach, &up)),
            }),
            Err(error) => {
                // The first failure is the one to tell; what cannot be removed stays in the ledger.
                drop(footprint.remove().await);
                Err(error)
            }
        }
    }

    async fn run(
        &self,
        launch: &Launch,
        baked: &Baked,
        footprint: &mut Footprint,
    ) -> Result<(Up, Reach, Exchange), EnvironmentError> {
        let environment = &launch.environment;
        let name = labels::container_name(&launch.run_id, &launch.trial.to_string());
        let folder = footprint.make_socket_folder(&self.cache, &name)?;
        make_open_folder(&folder.join("socket"))?;
        let client_dir = folder.join("exchange");
        make_open_folder(&client_dir)?;
        let data = place_data(environment, &name, footprint).await?;

        // First the check: from the next line on a container of this name is ours to remove.
        self.remove_leftover(&name, &launch.run_id).await?;
        footprint.will_make_container(&name)?;
        let request = request::trial(request::Trial {
            digest: baked.id.trim_start_matches("sha256:"),
            entrypoint: &self.image.entrypoint,
            name: &name,
            labels: labels::of_run(&self.ledger),
            environment,
            folder: &folder,
            data,
        });
        request::start(request, &name).await?;
        let reach = Reach {
            connection: environment.connection,
            password: baked.password.clone(),
            socket: folder.join("socket"),
            data: request::data_directory(environment),
            in_memory: environment.storage == Storage::Tmpfs,
        };
        let up = reach.wait(&self.engine, &name).await?;
        Ok((up, reach, Exchange { client_dir, server_dir: request::EXCHANGE.to_owned() }))
    }

    /// A run that was killed and is resumed has the same names.
    async fn remove_leftover(&self, name: &str, run_id: &str) -> Result<(), EnvironmentError> {
        let Some(old) = self.engine.container(name).await? else { return Ok(()) };
        let labels = old.config.and_then(|config| config.labels).unwrap_or_default();
        if labels.get(RUN_LABEL).is_some_and(|run| run == run_id) {
            return self.engine.remove_container(name).await;
        }
        Err(EnvironmentError::ContainerEngine {
            what: format!("container {name}: making"),
            reason: "a container of that name exists and is not ours".to_owned(),
        })
    }

    async fn facts(&self, environment: &EnvironmentSpec) -> InstanceFacts {
        let storage = match &environment.storage {
            Storage::Layer => self.layer_storage.get_or_init(|| self.engine.layer_storage()).await.clone(),
            Storage::Volume => "volume".to_owned(),
            Storage::Tmpfs => "tmpfs".to_owned(),
            Storage::Bind(folder) => format!("bind on {}", file_system(folder)),
        };
        InstanceFacts {
            backend: Backend::Container,
            identity: self.image.identity(),
            fresh: "baked image".to_owned(),
            storage,
            connection: match environment.connection {
                ConnectionPath::Socket => "socket",
                ConnectionPath::Address => "address",
                ConnectionPath::Published => "published",
            }
            .to_owned(),
            cpuset: environment.limits.cpuset.clone(),
        }
    }
}

impl Provider for ContainerProvider {
    fn backend(&self) -> Backend {
        Backend::Container
    }

    fn major(&self) -> Option<u32> {
        // An image need not declare it; then the one that was baked of it tells.
        let baked = || self.baked.try_lock().ok()?.values().next().map(|baked| baked.major);
        self.image.major.or_else(baked)
    }

    fn prepare(&self) -> Boxed<'_, Result<(), EnvironmentError>> {
        Box::pin(async { self.baked(&self.spec.init).await.map(drop) })
    }

    fn pin(&self) -> Boxed<'_, Result<ServerPin, EnvironmentError>> {
        Box::pin(async {
            let major = || self.major().map(|major| major.to_string());
            Ok(ServerPin {
                backend: Backend::Container,
                version: self.image.version.clone().or_else(major).unwrap_or_else(|| UNKNOWN.to_owned()),
                image: Some(self.image.name.clone()),
                image_id: Some(self.image.id.clone()),
                image_digest: self.image.repository_digest.clone(),
                builder: None,
                block_size: None,
                binary: None,
            })
        })
    }

    fn find_programs(&self) -> Boxed<'_, Result<(), EnvironmentError>> {
        Box::pin(async {
            let look = || programs::look_for(&self.engine, &self.image, &self.ledger);
            self.programs.get_or_try_init(look).await.copied()
        })
    }

    fn start<'a>(&'a self, launch: &'a Launch) -> Boxed<'a, Result<Instance, EnvironmentError>> {
        Box::pin(self.start_one(launch))
    }
}

async fn place_data(
    environment: &EnvironmentSpec,
    name: &str,
    footprint: &mut Footprint,
) -> Result<Data, EnvironmentError> {
    match &environment.storage {
        Storage::Layer => Ok(Data::Layer),
        Storage::Tmpfs => Ok(Data::Tmpfs),
        Storage::Volume => {
            // Random: a volume of the same name would be taken as it is, with whatever it holds.
            let volume = format!("{name}-data-{}", random_hex(4)?);
            footprint.make_volume(&volume).await?;
            Ok(Data::Volume(volume))
        }
        Storage::Bind(parent) => {
            let absolute = std::path::absolute(parent).unwrap_or_else(|_| parent.clone());
            // The server's user becomes the owner of the inner folder; the outer one stays ours to remove.
            let data = footprint.make_folder(&absolute, name)?.join("data");
            make_open_folder(&data)?;
            Ok(Data::Bind(data))
        }
    }
}
