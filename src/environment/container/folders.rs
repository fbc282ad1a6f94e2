//! What one container leaves on the machine, and how all of it is removed again.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::engine::ContainerEngine;
use super::request;
use crate::environment::EnvironmentError;
use crate::environment::files::{ensure_folder, failed, holds_socket, new_folder, random_hex, remove_tree};
use crate::environment::ledger::{Ledger, Thing};

/// Port in the socket's name, and the port inside containers.
pub(super) const PORT: u16 = 5432;
/// Only we may enter; the container gets there by its bind mounts.
const PRIVATE: u32 = 0o700;
/// The server's user inside the container has a number of its own.
const OPEN: u32 = 0o777;
/// Removing files as the container's root.
const REMOVAL_DEADLINE: Duration = Duration::from_secs(30);

/// Everything made for one container. Written down in the ledger before it is made; removed by
/// [`Footprint::remove`], or in the background when it is dropped before that.
pub(super) struct Footprint {
    engine: ContainerEngine,
    ledger: Arc<Ledger>,
    /// Id of the image, for removing files that only the container's users may remove.
    image: String,
    container: Option<String>,
    volume: Option<String>,
    folders: Vec<PathBuf>,
    /// Whether dropping it starts a removal.
    net: bool,
}

impl Footprint {
    /// Nothing yet.
    pub(super) fn new(engine: &ContainerEngine, ledger: &Arc<Ledger>, image: &str) -> Self {
        Self {
            engine: engine.clone(),
            ledger: Arc::clone(ledger),
            image: image.to_owned(),
            container: None,
            volume: None,
            folders: Vec::new(),
            net: true,
        }
    }

    /// The container's name.
    pub(super) fn container(&self) -> &str {
        self.container.as_deref().unwrap_or_default()
    }

    /// Writes the container down; it is made by the caller.
    pub(super) fn will_make_container(&mut self, name: &str) -> Result<(), EnvironmentError> {
        self.ledger.record(&Thing::Container(name.to_owned()))?;
        self.container = Some(name.to_owned());
        Ok(())
    }

    /// Makes a volume that is removed with the container.
    pub(super) async fn make_volume(&mut self, name: &str) -> Result<(), EnvironmentError> {
        self.ledger.record(&Thing::Volume(name.to_owned()))?;
        self.volume = Some(name.to_owned());
        self.engine.create_volume(name, super::labels::of_run(&self.ledger)).await
    }

    /// Makes a private folder below `parent`; its name starts with `name`.
    pub(super) fn make_folder(&mut self, parent: &Path, name: &str) -> Result<PathBuf, EnvironmentError> {
        let folder = parent.join(format!("{name}-{}", random_hex(3)?));
        self.ledger.record(&Thing::Directory(folder.clone()))?;
        self.folders.push(folder.clone());
        new_folder(&folder, PRIVATE, None)?;
        Ok(folder)
    }

    /// A private folder short enough for a socket: in the cache, else in the system's temporary folder.
    pub(super) fn make_socket_folder(
        &mut self,
        cache: &Path,
        name: &str,
    ) -> Result<PathBuf, EnvironmentError> {
        let trials = cache.join("trials");
        let longest = trials.join(format!("{name}-000000")).join("socket");
        if holds_socket(&longest, PORT) {
            ensure_folder(&trials)?;
            self.make_folder(&trials, name)
        } else {
            self.make_folder(&std::env::temp_dir(), "loadlab")
        }
    }

    /// Removes all of it: container with its anonymous volumes, volume, folders. Tries everything and
    /// reports the first failure; what could not be removed stays in the ledger.
    pub(super) async fn remove(&mut self) -> Result<(), EnvironmentError> {
        let mut first = Ok(());
        if let Some(name) = self.container.take() {
            let gone = self.engine.remove_container(&name).await;
            first = first.and(self.settle(gone, &Thing::Container(name)));
        }
        if let Some(name) = self.volume.take() {
            let gone = self.engine.remove_volume(&name).await;
            first = first.and(self.settle(gone, &Thing::Volume(name)));
        }
        for folder in std::mem::take(&mut self.folders) {
            let gone = remove_folder(&folder, &self.engine, &self.image, &self.ledger).await;
            first = first.and(self.settle(gone, &Thing::Directory(folder)));
        }
        first
    }

    fn settle(&self, gone: Result<(), EnvironmentError>, thing: &Thing) -> Result<(), EnvironmentError> {
        gone.and_then(|()| self.ledger.forget(thing))
    }

    fn is_empty(&self) -> bool {
        self.container.is_none() && self.volume.is_none() && self.folders.is_empty()
    }
}

impl Drop for Footprint {
    /// A start that was cancelled half way. Without a runtime the ledger remembers.
    fn drop(&mut self) {
        if self.is_empty() || !self.net {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut rest = Self {
            engine: self.engine.clone(),
            ledger: Arc::clone(&self.ledger),
            image: self.image.clone(),
            container: self.container.take(),
            volume: self.volume.take(),
            folders: std::mem::take(&mut self.folders),
            // A runtime that ends drops the task at once; it must not start another one for ever.
            net: false,
        };
        runtime.spawn(async move {
            let gone = rest.remove().await;
            // A failure leaves the thing in the ledger, where the next clean-up finds it.
            drop(gone);
        });
    }
}

/// Makes a folder inside a private one that the server's user may write to.
pub(super) fn make_open_folder(path: &Path) -> Result<(), EnvironmentError> {
    fs::create_dir(path)
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(OPEN)))
        .map_err(failed(format!("{}: making the folder", path.display())))
}

async fn remove_folder(
    folder: &Path,
    engine: &ContainerEngine,
    image: &str,
    ledger: &Ledger,
) -> Result<(), EnvironmentError> {
    match remove_tree(folder) {
        // Files of the server's user, and we are not root: the container's root may remove them.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            empty_as_root(folder, engine, image, ledger).await?;
            remove_tree(folder)
        }
        other => other,
    }
    .map_err(failed(format!("{}: removing", folder.display())))
}

async fn empty_as_root(
    folder: &Path,
    engine: &ContainerEngine,
    image: &str,
    ledger: &Ledger,
) -> Result<(), EnvironmentError> {
    let name = format!("loadlab-remove-{}", random_hex(4)?);
    let thing = Thing::Container(name.clone());
    ledger.record(&thing)?;
    let request = request::emptying(image, &name, folder, super::labels::of_run(ledger));
    let done = async {
        request::start(request, &name).await?;
        engine.exit_code(&name, REMOVAL_DEADLINE).await
    };
    let done = done.await;
    engine.remove_container(&name).await?;
    ledger.forget(&thing)?;
    done.map(drop)
}
