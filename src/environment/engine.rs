//! The few calls to the container engine that clean-up and doctor need, each with a deadline.

use std::collections::HashMap;
use std::time::Duration;

use bollard::Docker;
use bollard::errors::Error;
use bollard::query_parameters::{
    ListContainersOptionsBuilder, ListVolumesOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveVolumeOptionsBuilder,
};

use super::ledger::{Owner, Thing};

/// Label with the run that made a container, volume or image.
pub const RUN_LABEL: &str = "io.loadlab.run";
/// Label with the process that made it, see [`Owner`].
pub const OWNER_LABEL: &str = "io.loadlab.owner";

/// How long a healthy engine may take for its version.
const QUICK: Duration = Duration::from_secs(2);
/// How long it may take to remove a container with its storage.
const REMOVAL: Duration = Duration::from_secs(30);

/// An engine that answered.
pub(crate) struct Engine {
    docker: Docker,
    /// Its version, such as `20.10.24`.
    pub(crate) version: String,
    /// Its API version, such as `1.41`.
    pub(crate) api: String,
}

impl Engine {
    /// Connects by `DOCKER_HOST` or the usual socket; the error says why there is none.
    pub(crate) async fn connect() -> Result<Self, String> {
        let docker = Docker::connect_with_defaults().map_err(|error| error.to_string())?;
        let facts = tokio::time::timeout(QUICK, docker.version())
            .await
            .map_err(|_| format!("no answer within {QUICK:?}"))?
            .map_err(|error| crate::engine::postgres::chain(&error))?;
        let known = |text: Option<String>| text.unwrap_or_else(|| "unknown".to_owned());
        Ok(Self { docker, version: known(facts.version), api: known(facts.api_version) })
    }

    /// Removes a container with its anonymous volumes; whether there was one.
    pub(crate) async fn remove_container(&self, name: &str) -> Result<bool, String> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        gone(tokio::time::timeout(REMOVAL, self.docker.remove_container(name, Some(options))).await)
    }

    /// Removes a volume; whether there was one.
    pub(crate) async fn remove_volume(&self, name: &str) -> Result<bool, String> {
        let options = RemoveVolumeOptionsBuilder::default().force(true).build();
        gone(tokio::time::timeout(REMOVAL, self.docker.remove_volume(name, Some(options))).await)
    }

    /// Labelled containers and volumes whose owner is provably gone. What carries no readable owner is
    /// not ours to judge.
    pub(crate) async fn orphans(&self) -> Result<Vec<Thing>, String> {
        let labelled = HashMap::from([("label", vec![RUN_LABEL])]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&labelled).build();
        let containers = within(self.docker.list_containers(Some(options))).await?;
        let options = ListVolumesOptionsBuilder::default().filters(&labelled).build();
        let volumes = within(self.docker.list_volumes(Some(options))).await?;
        let containers = containers
            .into_iter()
            .filter(|container| container.labels.as_ref().is_some_and(is_orphan))
            .filter_map(|container| container.id.map(Thing::Container));
        let volumes = volumes.volumes.unwrap_or_default().into_iter();
        let volumes = volumes.filter(|v| is_orphan(&v.labels)).map(|v| Thing::Volume(v.name));
        Ok(containers.chain(volumes).collect())
    }
}

fn is_orphan(labels: &HashMap<String, String>) -> bool {
    labels.contains_key(RUN_LABEL)
        && labels.get(OWNER_LABEL).and_then(|text| Owner::parse(text)).is_some_and(|owner| owner.is_gone())
}

async fn within<T>(call: impl Future<Output = Result<T, Error>>) -> Result<T, String> {
    tokio::time::timeout(REMOVAL, call)
        .await
        .map_err(|_| format!("the container engine gave no answer within {REMOVAL:?}"))?
        .map_err(|error| crate::engine::postgres::chain(&error))
}

fn gone(answer: Result<Result<(), Error>, tokio::time::error::Elapsed>) -> Result<bool, String> {
    match answer {
        Err(_) => Err(format!("not removed within {REMOVAL:?}")),
        Ok(Ok(())) => Ok(true),
        Ok(Err(Error::DockerResponseServerError { status_code: 404, .. })) => Ok(false),
        // 409: somebody else is removing it at this moment.
        Ok(Err(Error::DockerResponseServerError { status_code: 409, message }))
            if message.contains("already in progress") =>
        {
            Ok(true)
        }
        Ok(Err(error)) => Err(crate::engine::postgres::chain(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_dead_process_of_this_boot_made_is_an_orphan() {
        let labels = |owner: Option<String>| {
            let mut labels = HashMap::from([(RUN_LABEL.to_owned(), "r".to_owned())]);
            labels.extend(owner.map(|owner| (OWNER_LABEL.to_owned(), owner)));
            labels
        };
        let this = Owner::this().to_string();
        let (pid, rest) = this.split_once(':').expect("parts");
        let (_, boot) = rest.split_once(':').expect("parts");
        assert!(is_orphan(&labels(Some(format!("{pid}:1:{boot}")))));
        assert!(!is_orphan(&labels(Some(this.clone()))), "alive");
        assert!(!is_orphan(&labels(Some(format!("{pid}:1:elsewhere")))));
        assert!(!is_orphan(&labels(Some("rubbish".to_owned()))));
        assert!(!is_orphan(&labels(None)));
        assert!(!is_orphan(&HashMap::from([(OWNER_LABEL.to_owned(), format!("{pid}:1:{boot}"))])), "foreign");
    }
}
