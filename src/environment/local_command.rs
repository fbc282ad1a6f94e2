//! How a local server is started, and after a stop started again: program, settings, where it listens, its log.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::process::{Child, Command, Stdio};

use super::account::{Account, OnParentDeath, spawn};
use super::discover::Binaries;
use super::files::failed;
use super::fresh::Way;
use super::place::{Place, SOCKET_PORT};
use super::{EnvironmentError, overlay};
use crate::model::{EnvironmentSpec, Scalar};

/// Everything a server of one trial is started with.
#[derive(Clone)]
pub(crate) struct LocalCommand {
    pub(crate) binaries: Binaries,
    pub(crate) account: Account,
    pub(crate) spec: EnvironmentSpec,
    pub(crate) way: Way,
    /// Port on which it listens besides its socket.
    pub(crate) port: Option<u16>,
}

impl LocalCommand {
    /// Spawns the server; it is not ready yet.
    pub(crate) async fn spawn(&self, place: &Place) -> Result<Child, EnvironmentError> {
        let overlaid = self.way == Way::Overlay;
        let mut before = if overlaid { overlay::wrapper() } else { Vec::new() };
        if let Some(cpus) = &self.spec.limits.cpuset {
            before.extend(["taskset".into(), "-c".into(), OsString::from(cpus)]);
        }
        let death = if overlaid { OnParentDeath::Kill } else { OnParentDeath::Quit };
        let mut command = self.binaries.command(&self.account, &before, "postgres", &place.folder, death);
        add_settings(&mut command, &self.spec, place, self.port);
        let log = place.log();
        let file = OpenOptions::new().create(true).append(true).open(&log);
        let file = file.map_err(failed(format!("{}: making the server's log", log.display())))?;
        let copy = file.try_clone().map_err(failed(format!("{}: opening", log.display())))?;
        command.stdout(Stdio::from(copy)).stderr(Stdio::from(file));
        spawn(command).await.map_err(failed("starting the server"))
    }
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
}
