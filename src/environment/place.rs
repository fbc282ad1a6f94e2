//! The private folder of one trial: data directory, socket, exchange folder and server log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::EnvironmentError;
use super::account::Account;
use super::files::{failed, holds_socket, new_folder, random_hex, remove_tree};
use super::ledger::{Ledger, Thing};

/// Port number in socket names; the folder is private, so every server can have the usual one.
pub(crate) const SOCKET_PORT: u16 = 5432;

/// A private folder. Removed, and forgotten by the ledger, when dropped; [`Place::remove`] says how it went.
pub(crate) struct Place {
    /// The folder, mode 0700, of the server's account.
    pub(crate) folder: PathBuf,
    /// Folder of the socket.
    pub(crate) socket: PathBuf,
    /// Folder that client and server see.
    pub(crate) exchange: PathBuf,
    things: Vec<Thing>,
    ledger: Arc<Ledger>,
}

impl Place {
    /// Makes the folder of a trial under `trials`. Where that path is too long for a socket, the socket
    /// gets a folder in the system's temporary folder.
    ///
    /// # Errors
    /// When a folder cannot be made or recorded.
    pub(crate) fn new(
        trials: &Path,
        name: &str,
        account: &Account,
        ledger: &Arc<Ledger>,
    ) -> Result<Self, EnvironmentError> {
        let folder = trials.join(format!("{name}-{}", random_hex(4)?));
        let mut place = Self {
            socket: folder.join("socket"),
            exchange: folder.join("exchange"),
            folder,
            things: Vec::new(),
            ledger: Arc::clone(ledger),
        };
        let folder = place.folder.clone();
        place.make_recorded(&folder, account)?;
        if holds_socket(&place.socket, SOCKET_PORT) {
            new_folder(&place.socket, 0o700, account.owner())?;
        } else {
            place.socket = std::env::temp_dir().join(format!("loadlab-{}", random_hex(6)?));
            if !holds_socket(&place.socket, SOCKET_PORT) {
                return Err(EnvironmentError::Unavailable {
                    reason: format!("{}: too long, or with characters that a socket's folder cannot have", place.socket.display()),
                    remedy: "name a shorter temporary folder in TMPDIR, or a shorter cache folder in LOADLAB_CACHE".to_owned(),
                });
            }
            let socket = place.socket.clone();
            place.make_recorded(&socket, account)?;
        }
        new_folder(&place.exchange, 0o755, account.owner())?;
        Ok(place)
    }

    fn make_recorded(&mut self, folder: &Path, account: &Account) -> Result<(), EnvironmentError> {
        let thing = Thing::Directory(folder.to_owned());
        self.ledger.record(&thing)?;
        self.things.push(thing);
        new_folder(folder, 0o700, account.owner())
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The server's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// Removes everything. The server must have ended.
    ///
    /// # Errors
    /// When something stays; the ledger still lists it then.
    pub(crate) fn remove(&mut self) -> Result<(), EnvironmentError> {
        let mut outcome = Ok(());
        for thing in std::mem::take(&mut self.things) {
            let Thing::Directory(folder) = &thing else { continue };
            let removed = remove_tree(folder)
                .map_err(failed(format!("{}: removing the folder of a trial", folder.display())))
                .and_then(|()| self.ledger.forget(&thing));
            outcome = outcome.and(removed);
        }
        outcome
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What stays is listed and removed by the next clean-up.
        drop(self.remove());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn deep_caches_get_their_socket_elsewhere_and_nothing_stays() {
        let cache = tempfile::tempdir().expect("temporary folder");
        let ledger = Ledger::open(cache.path(), "r").expect("ledger");
        let account = Account::detect().await.expect("account");
        let deep = cache.path().join("x".repeat(100));
        std::fs::create_dir(&deep).expect("folder");
        let place = Place::new(&deep, "r-1", &account, &ledger).expect("place");
        assert!(!place.socket.starts_with(&deep));
        assert!(place.socket.is_dir() && place.exchange.is_dir());
        let socket = place.socket.clone();
        assert_eq!(ledger.remaining().expect("list").len(), 2);
        drop(place);
        assert!(!socket.exists());
        assert!(ledger.remaining().expect("list").is_empty());
        assert_eq!(std::fs::read_dir(&deep).expect("folder").count(), 0);
    }
}
