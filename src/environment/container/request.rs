//! What is asked of testcontainers: image, command, mounts, limits, network.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::models::{HostConfig, PortBinding};
use testcontainers::core::{Healthcheck, IntoContainerPort, Mount};
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerRequest, GenericImage, ImageExt};

use super::folders::PORT;
use crate::engine::postgres::{ADMIN, chain};
use crate::environment::EnvironmentError;
use crate::model::{ConnectionPath, EnvironmentSpec, Limits};

/// Data directory of baked images; outside every volume that an image of PostgreSQL declares.
pub(super) const BAKED_DATA: &str = "/loadlab/data";
/// Data directory where it is not in the container's layer.
const LIVE_DATA: &str = "/loadlab/live";
/// The socket's folder, as the container sees it.
pub(super) const SOCKET: &str = "/loadlab/socket";
/// The exchange folder, as the container sees it.
pub(super) const EXCHANGE: &str = "/loadlab/exchange";
/// The superuser's password while an image is baked.
const PASSWORD_FILE: &str = "/loadlab/password";
/// Socket folder of the official image's server and psql.
const USUAL_SOCKET: &str = "/var/run/postgresql";
/// Address of the final server while an image is baked; its temporary server has none.
pub(super) const BAKING_ADDRESS: &str = "127.0.0.1";
/// /dev/shm where the environment does not say: the engine's own default of 64 MiB makes parallel
/// queries and index builds fail.
const SHARED_MEMORY: u64 = 1 << 30;
/// Creating and starting a container, without waiting for the server.
const START_DEADLINE: Duration = Duration::from_secs(45);

/// Where the data directory is, with what was made for it.
#[derive(Debug, Clone)]
pub(super) enum Data {
    /// In the container's layer.
    Layer,
    /// In a volume of this name.
    Volume(String),
    /// In memory.
    Tmpfs,
    /// In a folder of the host.
    Bind(PathBuf),
}

/// What a trial's container is made of.
pub(super) struct Trial<'a> {
    /// Digits of the baked image's id.
    pub(super) digest: &'a str,
    /// Entry point of the image.
    pub(super) entrypoint: &'a [String],
    /// Name of the container.
    pub(super) name: &'a str,
    /// Its labels.
    pub(super) labels: HashMap<String, String>,
    /// The environment with this treatment's settings.
    pub(super) environment: &'a EnvironmentSpec,
    /// Private folder with `socket` and `exchange`.
    pub(super) folder: &'a Path,
    /// Where the data directory is.
    pub(super) data: Data,
}

/// The request for a trial's server.
pub(super) fn trial(trial: Trial<'_>) -> ContainerRequest<GenericImage> {
    let environment = trial.environment;
    let server = server_command(environment);
    let mut image = GenericImage::new("sha256", trial.digest);
    if environment.connection != ConnectionPath::Socket {
        image = image.with_exposed_port(PORT.tcp());
    }
    let mut request = match trial.data {
        Data::Layer => image.with_cmd(server),
        _ => image.with_entrypoint("sh").with_cmd(copying_command(trial.entrypoint, server)),
    };
    request = match trial.data {
        Data::Layer => request,
        Data::Volume(name) => request.with_mount(Mount::volume_mount(name, LIVE_DATA)),
        Data::Tmpfs => request.with_mount(Mount::tmpfs_mount(LIVE_DATA)),
        Data::Bind(folder) => request.with_mount(bind(&folder, LIVE_DATA)),
    }
    .with_env_var("PGDATA", data_directory(environment));
    if environment.connection == ConnectionPath::Socket {
        request = request.with_mount(bind(&trial.folder.join("socket"), SOCKET));
    }
    let limits = environment.limits.clone();
    let connection = environment.connection;
    common(request, trial.name, trial.labels)
        .with_mount(bind(&trial.folder.join("exchange"), EXCHANGE))
        .with_shm_size(limits.shared_memory_bytes.unwrap_or(SHARED_MEMORY))
        .with_host_config_modifier(move |host| {
            apply_network(host, connection);
            apply_limits(host, &limits);
        })
}

/// The request for the container in which an image's own entry point makes the cluster. `folder` holds
/// `socket` and the file `password`.
pub(super) fn baking(
    digest: &str,
    name: &str,
    labels: HashMap<String, String>,
    folder: &Path,
    initdb_arguments: &str,
) -> ContainerRequest<GenericImage> {
    let sockets = format!("unix_socket_directories={USUAL_SOCKET},{SOCKET}");
    let address = format!("listen_addresses={BAKING_ADDRESS}");
    let request = GenericImage::new("sha256", digest)
        .with_cmd(["postgres", "-c", &sockets, "-c", &address])
        .with_env_var("PGDATA", BAKED_DATA)
        .with_env_var("POSTGRES_USER", ADMIN)
        .with_env_var("POSTGRES_DB", "postgres")
        .with_env_var("POSTGRES_PASSWORD_FILE", PASSWORD_FILE)
        .with_env_var("POSTGRES_INITDB_ARGS", initdb_arguments)
        .with_mount(bind(&folder.join("socket"), SOCKET))
        .with_mount(bind(&folder.join("password"), PASSWORD_FILE));
    common(request, name, labels)
        .with_host_config_modifier(|host| apply_network(host, ConnectionPath::Socket))
}

/// The request for a container that empties a folder as root.
pub(super) fn emptying(
    digest: &str,
    name: &str,
    folder: &Path,
    labels: HashMap<String, String>,
) -> ContainerRequest<GenericImage> {
    let request = GenericImage::new("sha256", digest)
        .with_entrypoint("find")
        .with_cmd(["/loadlab/rest", "-mindepth", "1", "-delete"])
        .with_user("0")
        .with_mount(bind(folder, "/loadlab/rest"));
    common(request, name, labels)
        .with_host_config_modifier(|host| apply_network(host, ConnectionPath::Socket))
}

/// The request for a container that looks for programs.
pub(super) fn looking(
    digest: &str,
    name: &str,
    script: &str,
    labels: HashMap<String, String>,
) -> ContainerRequest<GenericImage> {
    let request = GenericImage::new("sha256", digest).with_entrypoint("sh").with_cmd(["-c", script]);
    common(request, name, labels)
        .with_host_config_modifier(|host| apply_network(host, ConnectionPath::Socket))
}

/// Creates and starts a container.
pub(super) async fn start(
    request: ContainerRequest<GenericImage>,
    name: &str,
) -> Result<(), EnvironmentError> {
    let failed = |reason: String| EnvironmentError::ContainerEngine {
        what: format!("container {name}: starting"),
        reason,
    };
    let container = tokio::time::timeout(START_DEADLINE, request.start())
        .await
        .map_err(|_| failed(format!("the container engine gave no answer within {START_DEADLINE:?}")))?
        .map_err(|error| failed(chain(&error)))?;
    // Its destructor would remove the container by a blocking call with a deadline of two minutes, which
    // a hung engine would make us wait for. Removal is ours: explicit, with the ledger as the net.
    std::mem::forget(container);
    Ok(())
}

/// Data directory of the server in an environment.
pub(super) fn data_directory(environment: &EnvironmentSpec) -> &'static str {
    match environment.storage {
        crate::model::Storage::Layer => BAKED_DATA,
        _ => LIVE_DATA,
    }
}

fn common(
    request: ContainerRequest<GenericImage>,
    name: &str,
    labels: HashMap<String, String>,
) -> ContainerRequest<GenericImage> {
    request
        .with_container_name(name)
        .with_labels(labels)
        .with_startup_timeout(START_DEADLINE)
        // A health check of the image would run beside what is measured.
        .with_health_check(Healthcheck::none())
}

fn bind(folder: &Path, target: &str) -> Mount {
    Mount::bind_mount(folder.display().to_string(), target)
}

fn server_command(environment: &EnvironmentSpec) -> Vec<String> {
    let mut command = vec!["postgres".to_owned()];
    let mut set = |setting: String| command.extend(["-c".to_owned(), setting]);
    for (name, value) in &environment.settings {
        set(format!("{name}={value}"));
    }
    match environment.connection {
        ConnectionPath::Socket => {
            set("listen_addresses=".to_owned());
            set(format!("unix_socket_directories={SOCKET}"));
        }
        ConnectionPath::Address | ConnectionPath::Published => set("listen_addresses=*".to_owned()),
    }
    command
}

/// The baked cluster is copied to where the data shall be, then the image's entry point goes on as usual.
fn copying_command(entrypoint: &[String], server: Vec<String>) -> Vec<String> {
    // Not a second time when the container is started again.
    let script = format!(
        "if [ ! -e {LIVE_DATA}/PG_VERSION ]; then cp -a {BAKED_DATA}/. {LIVE_DATA}/; fi && exec \"$@\""
    );
    ["-c".to_owned(), script, "loadlab".to_owned()]
        .into_iter()
        .chain(entrypoint.iter().cloned())
        .chain(server)
        .collect()
}

fn apply_network(host: &mut HostConfig, connection: ConnectionPath) {
    // testcontainers publishes every exposed port on every address of the machine.
    host.publish_all_ports = Some(false);
    host.port_bindings = None;
    match connection {
        ConnectionPath::Socket => host.network_mode = Some("none".to_owned()),
        ConnectionPath::Address => {}
        ConnectionPath::Published => {
            let loopback =
                PortBinding { host_ip: Some("127.0.0.1".to_owned()), host_port: Some(String::new()) };
            host.port_bindings = Some(HashMap::from([(format!("{PORT}/tcp"), Some(vec![loopback]))]));
        }
    }
}

fn apply_limits(host: &mut HostConfig, limits: &Limits) {
    host.nano_cpus = limits.cpus.map(nano_cpus);
    host.cpuset_cpus.clone_from(&limits.cpuset);
    let memory = limits.memory_bytes.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    host.memory = memory;
    // The same value: no swap beyond the memory.
    host.memory_swap = memory;
}

#[expect(clippy::cast_possible_truncation, reason = "a float saturates; no machine has 9e9 CPUs")]
fn nano_cpus(cpus: f64) -> i64 {
    (cpus * 1e9).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_published_beyond_loopback() {
        for connection in [ConnectionPath::Socket, ConnectionPath::Address, ConnectionPath::Published] {
            let mut host = HostConfig { publish_all_ports: Some(true), ..HostConfig::default() };
            apply_network(&mut host, connection);
            assert_eq!(host.publish_all_ports, Some(false));
            let bindings = host.port_bindings.unwrap_or_default();
            let addresses: Vec<_> = bindings.into_values().flatten().flatten().map(|b| b.host_ip).collect();
            assert!(addresses.iter().all(|address| address.as_deref() == Some("127.0.0.1")));
            assert_eq!(addresses.is_empty(), connection != ConnectionPath::Published);
        }
    }

    #[test]
    fn limits_reach_the_engine() {
        let limits = Limits {
            cpus: Some(1.5),
            cpuset: Some("0".to_owned()),
            memory_bytes: Some(64 << 20),
            shared_memory_bytes: None,
        };
        let mut host = HostConfig::default();
        apply_limits(&mut host, &limits);
        assert_eq!(host.nano_cpus, Some(1_500_000_000));
        assert_eq!(host.memory, host.memory_swap);
        assert_eq!(host.cpuset_cpus.as_deref(), Some("0"));
    }

    #[test]
    fn the_entry_point_goes_on_after_the_copy() {
        let command = copying_command(&["entry.sh".to_owned()], vec!["postgres".to_owned()]);
        assert_eq!(command[2..], ["loadlab", "entry.sh", "postgres"]);
        assert!(command[1].contains("cp -a /loadlab/data/. /loadlab/live/; fi && exec"));
    }
}
