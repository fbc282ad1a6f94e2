//! The machine of a run, with what its servers' data lie on.

use std::path::{Path, PathBuf};

use crate::cli::servers::Servers;
use crate::environment::container::ContainerEngine;
use crate::model::Backend;
use crate::store::{DeviceFacts, HostFacts};

/// Facts about the machine, and about what the chosen backends use of it.
pub(super) async fn facts(results: &Path, servers: &Servers) -> HostFacts {
    let used = |backend| servers.chosen.iter().any(|choice| choice.backend == backend);
    let mut host = HostFacts::read(results);
    if used(Backend::Local) {
        host.data_devices.push(DeviceFacts::below(servers.cache(), Backend::Local));
    }
    if used(Backend::Container)
        && let Ok(engine) = ContainerEngine::connect().await
    {
        host.container_engine = Some(engine.facts().version.clone());
        let folder = engine.data_folder().await.filter(|_| engine_is_here());
        let folder = folder.map(PathBuf::from).filter(|folder| folder.is_dir());
        host.data_devices.extend(folder.map(|folder| DeviceFacts::below(&folder, Backend::Container)));
    }
    host
}

/// Whether paths that the engine names are paths of this machine.
fn engine_is_here() -> bool {
    std::env::var("DOCKER_HOST").map_or(true, |place| place.is_empty() || place.starts_with("unix:"))
}
