//! How the server in a container is reached, after each of its starts.

use std::path::PathBuf;
use std::time::Duration;

use bollard::models::ContainerInspectResponse;

use super::engine::ContainerEngine;
use super::folders::PORT;
use super::running::diagnose;
use crate::engine::postgres::{Endpoint, Secret, ready};
use crate::environment::EnvironmentError;
use crate::model::ConnectionPath;

/// From a started container to a server that answers; a cluster is there already.
const READY_DEADLINE: Duration = Duration::from_mins(1);

/// What stays the same over the starts of a container.
pub(super) struct Reach {
    /// The way clients take.
    pub(super) connection: ConnectionPath,
    /// Password of its roles.
    pub(super) password: Secret,
    /// Folder of its socket.
    pub(super) socket: PathBuf,
    /// The data directory, as the container sees it.
    pub(super) data: &'static str,
    /// Whether that is lost when the container stops.
    pub(super) in_memory: bool,
}

/// A container whose server answers.
pub(super) struct Up {
    /// Where the server is reached until the container stops: addresses and published ports change.
    pub(super) endpoint: Endpoint,
    /// Number of its first process.
    pub(super) pid: Option<i64>,
}

impl Reach {
    /// Waits until the server in a started container answers.
    ///
    /// # Errors
    /// When the container is gone or ends, with the end of its log.
    pub(super) async fn wait(&self, engine: &ContainerEngine, name: &str) -> Result<Up, EnvironmentError> {
        let container = engine.container(name).await?;
        let container = container
            .ok_or_else(|| not_ready(format!("container {name} is gone: somebody else removed it")))?;
        let endpoint =
            self.endpoint(&container).ok_or_else(|| not_ready(format!("container {name} has no address")))?;
        wait_until_ready(engine, &endpoint, name).await?;
        let pid = container.state.and_then(|state| state.pid).filter(|pid| *pid > 0);
        Ok(Up { endpoint, pid })
    }

    fn endpoint(&self, container: &ContainerInspectResponse) -> Option<Endpoint> {
        let network = container.network_settings.as_ref();
        let tcp = |host: String, port: u16| Endpoint::Tcp { host, port, password: self.password.clone() };
        match self.connection {
            ConnectionPath::Socket => Some(Endpoint::Socket {
                directory: self.socket.clone(),
                port: PORT,
                password: Some(self.password.clone()),
            }),
            ConnectionPath::Address => {
                let mut networks = network?.networks.as_ref()?.values();
                let address = networks.find_map(|one| one.ip_address.clone().filter(|ip| !ip.is_empty()))?;
                Some(tcp(address, PORT))
            }
            ConnectionPath::Published => {
                let bindings = network?.ports.as_ref()?.get(&format!("{PORT}/tcp"))?.as_ref()?;
                let port = bindings.first()?.host_port.as_ref()?.parse().ok()?;
                Some(tcp("127.0.0.1".to_owned(), port))
            }
        }
    }
}

async fn wait_until_ready(
    engine: &ContainerEngine,
    endpoint: &Endpoint,
    name: &str,
) -> Result<(), EnvironmentError> {
    tokio::select! {
        answer = ready(endpoint, READY_DEADLINE) => match answer {
            Ok(()) => Ok(()),
            Err(error) => {
                let log = engine.log_end(name, 12).await;
                Err(not_ready(format!("{error}; the end of its log:\n{log}")))
            }
        },
        ended = engine.exit_code(name, READY_DEADLINE * 2) => {
            let code = ended?;
            let words = diagnose(engine, name, 0).await;
            Err(not_ready(words.unwrap_or_else(|| format!("it ended with exit code {code}"))))
        }
    }
}

fn not_ready(reason: String) -> EnvironmentError {
    EnvironmentError::NotReady { reason }
}
