//! The container engine: one connection, every call with its own deadline.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use bollard::Docker;
use bollard::container::LogOutput;
use bollard::errors::Error as EngineError;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::{
    ContainerConfig, ContainerInspectResponse, ContainerStatsResponse, ExecConfig, ImageInspect,
    VolumeCreateRequest,
};
use bollard::query_parameters::{
    CommitContainerOptionsBuilder, CreateImageOptionsBuilder, InspectContainerOptions,
    KillContainerOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveVolumeOptionsBuilder, StartContainerOptions, StatsOptionsBuilder, WaitContainerOptions,
};
use futures_util::StreamExt;

use crate::engine::postgres::chain;
use crate::environment::EnvironmentError;

/// Deadline of the first call: a machine without an engine must be told so at once.
const CHECK_DEADLINE: Duration = Duration::from_millis(1500);
/// Deadline of calls that only ask or remove.
const CALL_DEADLINE: Duration = Duration::from_secs(20);
/// Deadline of a commit, which copies the cluster.
const COMMIT_DEADLINE: Duration = Duration::from_mins(2);
/// A pull may take long but not stand still for longer than this.
const PULL_STANDSTILL: Duration = Duration::from_secs(45);
/// The whole of a pull.
const PULL_DEADLINE: Duration = Duration::from_mins(15);
/// Oldest API that has everything used here (Docker Engine 19.03).
const OLDEST_API: (u32, u32) = (1, 40);

/// Bytes of each output of an exec that are kept: the last ones.
const EXEC_KEPT: usize = 64 * 1024;

/// What an engine said about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFacts {
    /// Version of the engine, such as `20.10.24`.
    pub version: String,
    /// Its newest API, such as `1.41`.
    pub api: String,
}

/// A connection to an engine that answered.
#[derive(Debug, Clone)]
pub struct ContainerEngine {
    docker: Docker,
    facts: EngineFacts,
}

impl ContainerEngine {
    /// Connects to the engine that testcontainers would use (`DOCKER_HOST`, else the usual sockets) and
    /// checks that it is new enough. Takes less than two seconds.
    ///
    /// # Errors
    /// [`EnvironmentError::Unavailable`] with the reason and a remedy.
    pub async fn connect() -> Result<Self, EnvironmentError> {
        let instance = testcontainers::core::client::docker_client_instance();
        let docker = tokio::time::timeout(CHECK_DEADLINE, instance)
            .await
            .map_err(|_| no_engine("no answer"))?
            .map_err(|error| no_engine(&chain(&error)))?;
        // Asked without a version in the path: testcontainers asks for its own newest API, which old
        // engines refuse; bollard 0.21 leaves the version out of the path, so it works, but the check
        // that the engine is new enough has to be ours.
        let version = tokio::time::timeout(CHECK_DEADLINE, docker.version())
            .await
            .map_err(|_| no_engine("no answer within 1.5 s"))?
            .map_err(|error| no_engine(&chain(&error)))?;
        let facts = EngineFacts {
            version: version.version.unwrap_or_else(|| "unknown".to_owned()),
            api: version.api_version.unwrap_or_default(),
        };
        if parse_api(&facts.api).is_none_or(|api| api < OLDEST_API) {
            return Err(EnvironmentError::Unavailable {
                reason: format!(
                    "container engine {} speaks API {:?}; 1.40 is needed",
                    facts.version, facts.api
                ),
                remedy: "use Docker Engine 19.03 or newer, or --on local".to_owned(),
            });
        }
        Ok(Self { docker, facts })
    }

    /// What it said about itself.
    pub fn facts(&self) -> &EngineFacts {
        &self.facts
    }

    /// An image by name or id; `None` when it is not there.
    pub(super) async fn image(&self, name: &str) -> Result<Option<ImageInspect>, EnvironmentError> {
        let call = self.docker.inspect_image(name);
        absent_is_none(timed(CALL_DEADLINE, call).await).map_err(failed(format!("image {name}: inspecting")))
    }

    /// Fetches an image; progress must never stand still.
    pub(super) async fn pull(&self, name: &str) -> Result<(), EnvironmentError> {
        let options = CreateImageOptionsBuilder::new().from_image(name).build();
        let mut progress = std::pin::pin!(self.docker.create_image(Some(options), None, None));
        let work = async {
            while let Some(step) = timed(PULL_STANDSTILL, async { Ok(progress.next().await) }).await? {
                step.map_err(Trouble::Engine)?;
            }
            Ok(())
        };
        tokio::time::timeout(PULL_DEADLINE, work)
            .await
            .unwrap_or(Err(Trouble::Deadline(PULL_DEADLINE)))
            .map_err(failed(format!("image {name}: pulling")))
    }

    /// A container by name or id; `None` when it is not there.
    pub(super) async fn container(
        &self,
        name: &str,
    ) -> Result<Option<ContainerInspectResponse>, EnvironmentError> {
        let call = self.docker.inspect_container(name, None::<InspectContainerOptions>);
        absent_is_none(timed(CALL_DEADLINE, call).await)
            .map_err(failed(format!("container {name}: inspecting")))
    }

    /// Kills a container and removes it with its anonymous volumes; one that is not there is fine.
    pub(super) async fn remove_container(&self, name: &str) -> Result<(), EnvironmentError> {
        let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
        let call = self.docker.remove_container(name, Some(options));
        match absent_is_none(timed(CALL_DEADLINE, call).await) {
            // Somebody else (a clean-up) removes it already.
            Err(Trouble::Engine(EngineError::DockerResponseServerError { status_code: 409, message }))
                if message.contains("in progress") =>
            {
                Ok(())
            }
            other => other.map(drop).map_err(failed(format!("container {name}: removing"))),
        }
    }

    /// Sends a signal to the first process of a container.
    pub(super) async fn signal(&self, name: &str, signal: &str) -> Result<(), EnvironmentError> {
        let options = KillContainerOptionsBuilder::new().signal(signal).build();
        timed(CALL_DEADLINE, self.docker.kill_container(name, Some(options)))
            .await
            .map_err(failed(format!("container {name}: sending {signal}")))
    }

    /// Starts a container that has ended.
    pub(super) async fn start_again(&self, name: &str) -> Result<(), EnvironmentError> {
        timed(CALL_DEADLINE, self.docker.start_container(name, None::<StartContainerOptions>))
            .await
            .map_err(failed(format!("container {name}: starting again")))
    }

    /// Waits until a container has ended and gives its exit code.
    pub(super) async fn exit_code(&self, name: &str, deadline: Duration) -> Result<i64, EnvironmentError> {
        let mut answers = std::pin::pin!(self.docker.wait_container(name, None::<WaitContainerOptions>));
        let answer = timed(deadline, async { Ok(answers.next().await) }).await;
        match answer {
            Ok(Some(Ok(answer))) => Ok(answer.status_code),
            Ok(Some(Err(EngineError::DockerContainerWaitError { code, .. }))) => Ok(code),
            Ok(Some(Err(error))) => Err(Trouble::Engine(error)),
            Ok(None) => {
                Err(Trouble::Engine(EngineError::IOError { err: std::io::ErrorKind::UnexpectedEof.into() }))
            }
            Err(trouble) => Err(trouble),
        }
        .map_err(failed(format!("container {name}: waiting for its end")))
    }

    /// The last lines of a container's log.
    pub(super) async fn log_end(&self, name: &str, lines: usize) -> String {
        let options = LogsOptionsBuilder::new()
            .stdout(true)
            .stderr(true)
            .tail(&lines.to_string())
            .follow(false)
            .build();
        let mut log = std::pin::pin!(self.docker.logs(name, Some(options)));
        let mut text = String::new();
        let work = async {
            while let Some(Ok(chunk)) = log.next().await {
                text.push_str(&String::from_utf8_lossy(chunk.as_ref()));
            }
        };
        // Whatever came until the deadline is better than nothing.
        drop(tokio::time::timeout(CALL_DEADLINE, work).await);
        text.trim_end().to_owned()
    }

    /// Makes an exec of a command in a container; it does not run yet. Returns its id.
    pub(super) async fn prepare_exec(
        &self,
        container: &str,
        command: Vec<String>,
        variables: Vec<String>,
    ) -> Result<String, EnvironmentError> {
        let config = ExecConfig {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(command),
            env: Some(variables),
            ..ExecConfig::default()
        };
        timed(CALL_DEADLINE, self.docker.create_exec(container, config))
            .await
            .map(|exec| exec.id)
            .map_err(failed(format!("container {container}: making an exec")))
    }

    /// Runs an exec until its outputs are closed, which is when it ends: nothing is polled. Returns the last of both.
    pub(super) async fn run_exec(&self, exec: &str) -> Result<(String, String), EnvironmentError> {
        let failed = |error| failed("running a program in the container".to_owned())(Trouble::Engine(error));
        let started = self.docker.start_exec(exec, None::<StartExecOptions>).await.map_err(failed)?;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        if let StartExecResults::Attached { mut output, .. } = started {
            while let Some(chunk) = output.next().await {
                let chunk = chunk.map_err(failed)?;
                let kept = if matches!(chunk, LogOutput::StdErr { .. }) { &mut stderr } else { &mut stdout };
                kept.extend_from_slice(chunk.as_ref());
                kept.drain(..kept.len().saturating_sub(EXEC_KEPT));
            }
        }
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok((text(stdout), text(stderr)))
    }

    /// One answer of the statistics API, without waiting for a second one.
    pub(super) async fn stats(&self, name: &str) -> Option<ContainerStatsResponse> {
        let options = StatsOptionsBuilder::new().stream(false).one_shot(true).build();
        let mut answers = std::pin::pin!(self.docker.stats(name, Some(options)));
        tokio::time::timeout(CALL_DEADLINE, answers.next()).await.ok()??.ok()
    }

    /// Makes an image from a stopped container.
    pub(super) async fn commit(
        &self,
        container: &str,
        (repository, tag): (&str, &str),
        config: ContainerConfig,
    ) -> Result<(), EnvironmentError> {
        let options =
            CommitContainerOptionsBuilder::new().container(container).repo(repository).tag(tag).build();
        timed(COMMIT_DEADLINE, self.docker.commit_container(options, config))
            .await
            .map(drop)
            .map_err(failed(format!("container {container}: making image {repository}:{tag}")))
    }

    /// Makes a volume.
    pub(super) async fn create_volume(
        &self,
        name: &str,
        labels: HashMap<String, String>,
    ) -> Result<(), EnvironmentError> {
        let request = VolumeCreateRequest {
            name: Some(name.to_owned()),
            labels: Some(labels),
            ..VolumeCreateRequest::default()
        };
        timed(CALL_DEADLINE, self.docker.create_volume(request))
            .await
            .map(drop)
            .map_err(failed(format!("volume {name}: making")))
    }

    /// Removes a volume; one that is not there is fine.
    pub(super) async fn remove_volume(&self, name: &str) -> Result<(), EnvironmentError> {
        let options = RemoveVolumeOptionsBuilder::new().force(false).build();
        absent_is_none(timed(CALL_DEADLINE, self.docker.remove_volume(name, Some(options))).await)
            .map(drop)
            .map_err(failed(format!("volume {name}: removing")))
    }

    /// The engine's folder for containers and volumes, on the machine it runs on.
    pub async fn data_folder(&self) -> Option<String> {
        timed(CALL_DEADLINE, self.docker.info()).await.ok()?.docker_root_dir
    }

    /// The file system below containers' layers, such as `overlay2 on extfs`.
    pub(super) async fn layer_storage(&self) -> String {
        let Ok(info) = timed(CALL_DEADLINE, self.docker.info()).await else { return "layer".to_owned() };
        let driver = info.driver.unwrap_or_else(|| "layer".to_owned());
        let status = info.driver_status.unwrap_or_default();
        let backing = status.iter().find(|pair| pair.first().is_some_and(|key| key == "Backing Filesystem"));
        match backing.and_then(|pair| pair.get(1)) {
            Some(backing) => format!("{driver} on {backing}"),
            None => driver,
        }
    }
}

/// Why a call gave nothing.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{}", chain(.0))]
    Engine(EngineError),
    #[error("the container engine gave no answer within {0:?}")]
    Deadline(Duration),
}

async fn timed<T>(
    deadline: Duration,
    call: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, Trouble> {
    match tokio::time::timeout(deadline, call).await {
        Ok(answer) => answer.map_err(Trouble::Engine),
        Err(_) => Err(Trouble::Deadline(deadline)),
    }
}

fn absent_is_none<T>(answer: Result<T, Trouble>) -> Result<Option<T>, Trouble> {
    match answer {
        Ok(found) => Ok(Some(found)),
        Err(Trouble::Engine(EngineError::DockerResponseServerError { status_code: 404, .. })) => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

fn failed(what: String) -> impl FnOnce(Trouble) -> EnvironmentError {
    move |trouble| EnvironmentError::ContainerEngine { what, reason: trouble.to_string() }
}

fn no_engine(why: &str) -> EnvironmentError {
    let place = std::env::var("DOCKER_HOST").map_or_else(
        |_| "at its usual socket (DOCKER_HOST is not set)".to_owned(),
        |host| format!("at DOCKER_HOST={host}"),
    );
    let remedy = if why.to_lowercase().contains("permission denied") {
        "add yourself to the group that owns the socket (often `docker`), or use --on local"
    } else {
        "start Docker (systemctl start docker), or use --on local"
    };
    EnvironmentError::Unavailable {
        reason: format!("no container engine answers {place}: {why}"),
        remedy: remedy.to_owned(),
    }
}

fn parse_api(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn api_versions_are_compared_as_numbers() {
        assert_eq!(parse_api("1.41"), Some((1, 41)));
        assert!(parse_api("1.9") < parse_api("1.40"));
        assert_eq!(parse_api("x"), None);
    }
}
